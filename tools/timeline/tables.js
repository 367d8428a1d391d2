// The sums: figures beside the title, and the tables.

const MOST_PASSES = 1000;  // rows of the table of passes

function htmlElement(tag, text = '', classes = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  if (classes) element.className = classes;
  return element;
}

function rowOf(tag, cells) {
  const row = document.createElement('tr');
  for (const cell of cells) {
    row.append(cell instanceof Element ? cell : htmlElement(tag, cell));
  }
  return row;
}

function fillTable(id, head, body, foot = undefined) {
  const table = document.getElementById(id);
  const part = (tag, rows) => {
    const element = document.createElement(tag);
    element.append(...rows);
    table.append(element);
  };
  if (head) part('thead', [rowOf('th', head)]);
  part('tbody', body);
  if (foot) part('tfoot', [rowOf('td', foot)]);
}

// Names may be of any length: the whole of one is its title.
function nameCell(name) {
  const cell = htmlElement('td', name, 'name');
  cell.title = name;
  return cell;
}

function swatchCell(name, color) {
  const cell = nameCell('');
  cell.title = name;
  const swatch = htmlElement('span', '', 'swatch');
  swatch.style.background = color;
  cell.append(swatch, name);
  return cell;
}

function shareCell(share, color) {
  const cell = htmlElement('td');
  const track = htmlElement('span', '', 'share');
  const fill = htmlElement('i');
  fill.style.width = `${Math.min(100, share * 100)}%`;
  fill.style.background = color;
  track.append(fill);
  cell.append(track, formatShare(share));
  return cell;
}

function noneRow(text, columns) {
  const cell = htmlElement('td', text, 'none');
  cell.colSpan = columns;
  return rowOf('td', [cell]);
}

function fillFigures(summary) {
  const disk = summary.lanes.find(({lane}) => lane === 'disk');
  const figures = [
    ['wall time', formatTime(summary.wall_ns)],
    ['passes', formatCount(summary.passes.length)],
    ['median pass', summary.passes.length > 0 ?
        formatTime(summary.median_pass_ns) : ''],
    ['read from disk', disk ? formatBytes(disk.bytes) : ''],
    ['disk, while busy', disk ? formatRate(disk.bytes, disk.busy_ns) : ''],
    ['stalled', formatShare(summary.stall_share), 'stalled'],
  ];
  const list = document.getElementById('figures');
  for (const [term, value, classes] of figures) {
    if (!value) continue;
    const group = htmlElement('div', '', classes);
    group.append(htmlElement('dt', term), htmlElement('dd', value));
    list.append(group);
  }
}

function fillStalls(summary, colors) {
  const body = summary.stalls.map((stall) => rowOf('td', [
    swatchCell(stall.cause, colors.ofCause(stall.cause)),
    formatCount(stall.count),
    formatTime(stall.total_ns),
    shareCell(stall.share, colors.ofCause(stall.cause)),
    formatTime(stall.longest_ns),
    nameCell(stall.longest_for),
  ]));
  if (body.length === 0) body.push(noneRow('It never waited.', 6));
  const count = summary.stalls.reduce((sum, stall) => sum + stall.count, 0);
  fillTable('stalls', ['cause', 'times', 'total', 'of wall', 'longest', 'for'],
            body, ['all', formatCount(count), formatTime(summary.stall_ns),
                   formatShare(summary.stall_share), '', '']);
}

function fillLanes(summary, colors) {
  const body = summary.lanes.map((lane) => rowOf('td', [
    swatchCell(lane.lane, colors.ofLane(lane.lane)),
    formatCount(lane.spans),
    formatTime(lane.busy_ns),
    shareCell(lane.share, colors.ofLane(lane.lane)),
    lane.bytes > 0 ? formatBytes(lane.bytes) : '',
    formatRate(lane.bytes, lane.busy_ns),
  ]));
  if (body.length === 0) body.push(noneRow('No spans.', 6));
  fillTable('lanes', ['lane', 'spans', 'busy', 'of wall', 'bytes', 'rate'], body);
}

// show(begin_ns, end_ns) brings a pass into view.
function fillPasses(summary, show) {
  const {passes} = summary;
  const times = passes.map((pass) => pass.end_ns - pass.begin_ns);
  const figure = (term, value) => rowOf('td', [term, value]);
  const figures = [figure('passes', formatCount(passes.length))];
  if (passes.length > 0) {
    const sum = times.reduce((total, time) => total + time, 0);
    const ordered = [...times].sort((a, b) => a - b);
    figures.push(
        figure('median', formatTime(summary.median_pass_ns)),
        figure('mean', formatTime(sum / passes.length)),
        figure('fastest, slowest', `${formatTime(ordered[0])}, ` +
            formatTime(ordered[ordered.length - 1])));
  }
  fillTable('pass-figures', undefined, figures);
  const body = passes.slice(0, MOST_PASSES).map((pass, i) => {
    const row = rowOf('td', [
      String(pass.pass), formatTime(times[i]), formatTime(pass.stall_ns),
      pass.read_bytes > 0 ? formatBytes(pass.read_bytes) : '',
    ]);
    row.addEventListener('click', () => show(pass.begin_ns, pass.end_ns));
    return row;
  });
  if (passes.length > MOST_PASSES)
    body.push(noneRow(`and ${formatCount(passes.length - MOST_PASSES)} more`, 4));
  if (passes.length > 0)
    fillTable('passes', ['pass', 'time', 'stalled', 'read for it'], body);
}
