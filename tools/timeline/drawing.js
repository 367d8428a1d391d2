// The chart: what is in the part of time in view, as SVG.
//
// A path for each colour of a row, not an element for each span: what is drawn
// is bounded by the width of the chart, whatever the number of spans. Spans
// under a pixel are merged; how much of the stretch they cover is its opacity.

const GUTTER = 116;  // pixels; names of rows
const AXIS = 26;
const PASSES = 20;
const ROW = 22;
const COUNTER = 40;
// A stretch of spans under a pixel: its greatest width, and its opacities.
const SMEAR = 3;
const DENSITY_LEVELS = [0.35, 0.5, 0.65, 0.8, 0.92];

function svgElement(parent, tag, attributes = {}, text = undefined) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const px = (x) => Math.round(x * 10) / 10;

function rectPath(x, y, width, height) {
  return `M${px(x)} ${y}h${px(width)}v${height}h${px(-width)}z`;
}

// Path data collected by how it is painted.
class Paths {
  constructor() { this.parts = new Map(); }
  add(color, opacity, path) {
    const key = `${color}|${opacity}`;
    if (!this.parts.has(key)) this.parts.set(key, []);
    this.parts.get(key).push(path);
  }
  drawIn(parent) {
    for (const [key, paths] of this.parts) {
      const [color, opacity] = key.split('|');
      svgElement(parent, 'path',
                 {d: paths.join(''), style: `fill:${color}`, opacity});
    }
  }
}

class Drawing {
  // view: {from, to, wall}, in ns.
  constructor(svg, rows, counters, passes, colors, view) {
    Object.assign(this, {svg, rows, counters, passes, colors, view});
    this.placeRows();
  }

  placeRows() {
    let y = AXIS + (this.passes.length > 0 ? PASSES + 6 : 0);
    this.top = y;
    let lane;
    for (const row of this.rows) {
      y += lane === undefined || row.lane === lane ? 2 : 7;
      lane = row.lane;
      row.y = y;
      y += ROW;
    }
    for (const counter of this.counters) {
      y += 10;
      counter.y = y;
      y += COUNTER;
    }
    this.bottom = y + 4;
    this.height = this.bottom + 14;
    this.svg.setAttribute('height', this.height);
  }

  x(ns) {
    const {from, to} = this.view;
    return GUTTER + (ns - from) / (to - from) * this.plotWidth;
  }
  ns(x) {
    const {from, to} = this.view;
    return from + (x - GUTTER) / this.plotWidth * (to - from);
  }
  rowAt(y) { return this.rows.find((row) => y >= row.y && y < row.y + ROW); }
  counterAt(y) {
    return this.counters.find((c) => y >= c.y && y < c.y + COUNTER);
  }

  draw() {
    this.width = this.svg.clientWidth || 1200;
    this.plotWidth = Math.max(50, this.width - GUTTER - 2);
    this.svg.replaceChildren();
    this.svg.dataset.from = this.view.from;
    this.svg.dataset.to = this.view.to;
    const clip = svgElement(this.svg, 'clipPath', {id: 'plot'});
    svgElement(clip, 'rect', {x: GUTTER, y: 0, width: this.plotWidth,
                              height: this.height});
    this.drawNames();
    const plot = svgElement(this.svg, 'g', {'clip-path': 'url(#plot)'});
    this.drawAxis(plot);
    for (const row of this.rows) {
      svgElement(plot, 'rect', {class: 'ground', x: GUTTER, y: row.y,
                                width: this.plotWidth, height: ROW});
    }
    this.drawStallBands(plot);
    this.drawPasses(plot);
    for (const row of this.rows) this.drawRow(plot, row);
    for (const counter of this.counters) this.drawCounter(plot, counter);
    this.drawTrack();
    this.overlay = svgElement(plot, 'g');
  }

  drawNames() {
    let lane;
    for (const row of this.rows) {
      const more = row.lane === lane;
      lane = row.lane;
      svgElement(this.svg, 'text',
                 {class: more ? 'row-more' : 'row-name', x: GUTTER - 10,
                  y: row.y + 15, 'text-anchor': 'end'}, shortened(row.name, 100));
    }
    for (const counter of this.counters) {
      svgElement(this.svg, 'text', {class: 'row-name', x: GUTTER - 10,
                                    y: counter.y + 16, 'text-anchor': 'end'},
                 shortened(counter.name, 100));
      svgElement(this.svg, 'text', {x: GUTTER - 10, y: counter.y + 31,
                                    'text-anchor': 'end'},
                 `max ${counter.format(counter.most)}`);
    }
  }

  drawAxis(plot) {
    const {from, to} = this.view;
    const step = roundStep(to - from, this.plotWidth / 95);
    for (let i = Math.ceil(from / step); i * step <= to; ++i) {
      const x = px(this.x(i * step));
      svgElement(plot, 'line', {class: 'grid', x1: x, x2: x, y1: AXIS - 6,
                                y2: this.bottom});
      svgElement(plot, 'text', {x: x + 4, y: 13}, formatTick(i * step, to, step));
    }
  }

  drawPasses(plot) {
    for (const {pass, begin_ns, end_ns} of this.passes) {
      if (end_ns < this.view.from || begin_ns > this.view.to) continue;
      const x0 = Math.max(this.x(begin_ns), GUTTER - 5);
      const x1 = Math.min(this.x(end_ns), this.width + 5);
      if (x1 - x0 < 3) continue;
      svgElement(plot, 'rect', {class: 'pass', x: px(x0 + 0.5), y: AXIS, rx: 3,
                                width: px(x1 - x0 - 1), height: PASSES});
      svgElement(plot, 'line', {class: 'pass-edge', x1: px(x1), x2: px(x1),
                                y1: AXIS, y2: this.bottom});
      const room = x1 - Math.max(x0, GUTTER) - 10;
      const name = `pass ${pass}`;
      const label =
          fitting(name, room) === name ? name : fitting(String(pass), room);
      svgElement(plot, 'text', {class: 'pass-name',
                                x: px(Math.max(x0, GUTTER) + 7), y: AXIS + 14},
                 label);
    }
  }

  // Calls bar(x0, x1, i) for spans that show, and smear(x0, x1, i, covered)
  // for stretches of smaller ones, with the longest of them.
  visitSpans(row, bar, smear) {
    let run = null;
    const flush = () => {
      if (run) smear(run.x0, Math.max(run.x1, run.x0 + 0.75), run.i, run.covered);
      run = null;
    };
    for (let i = row.firstAfter(this.view.from);
         i < row.begin.length && row.begin[i] <= this.view.to; ++i) {
      const x0 = Math.max(this.x(row.begin[i]), GUTTER - 4);
      const x1 = Math.min(this.x(row.end[i]), this.width + 4);
      const width = x1 - x0;
      if (width < 0) continue;
      if (width >= 1) {
        flush();
        bar(x0, x1, i);
      } else if (run && x0 - run.x1 < 0.75 && x0 - run.x0 < SMEAR) {
        run.x1 = Math.max(run.x1, x1);
        run.covered += width;
        if (width > run.longest) Object.assign(run, {longest: width, i});
      } else {
        flush();
        run = {x0, x1, i, longest: width, covered: width};
      }
    }
    flush();
  }

  drawRow(plot, row) {
    const paths = new Paths();
    const labels = [];
    this.visitSpans(row, (x0, x1, i) => {
      // A hair between neighbours.
      const width = x1 - x0 > 4 ? x1 - x0 - 0.8 : x1 - x0;
      paths.add(this.colors.ofSpan(row, i), 1, rectPath(x0, row.y, width, ROW));
      if (x1 - x0 > 26) labels.push([x0, x1, i]);
    }, (x0, x1, i, covered) => {
      const share = Math.min(1, covered / (x1 - x0));
      const level = Math.min(DENSITY_LEVELS.length - 1,
                             Math.floor(share * DENSITY_LEVELS.length));
      paths.add(this.colors.ofSpan(row, i), DENSITY_LEVELS[level],
                rectPath(x0, row.y, x1 - x0, ROW));
    });
    paths.drawIn(plot);
    for (const [x0, x1, i] of labels) {
      const left = Math.max(x0, GUTTER);
      const text = fitting(row.labelOf(i), Math.min(x1, this.width) - left - 8);
      if (text !== '')
        svgElement(plot, 'text', {class: 'on-bar', x: px(left + 4),
                                  y: row.y + 15}, text);
    }
  }

  drawStallBands(plot) {
    const paths = new Paths();
    const band = (row) => (x0, x1, i) =>
        paths.add(this.colors.ofSpan(row, i), 0.13,
                  rectPath(x0, this.top, x1 - x0, this.bottom - this.top));
    for (const row of this.rows) {
      if (row.isStall) this.visitSpans(row, band(row), () => {});
    }
    paths.drawIn(plot);
  }

  // At most one step for each half pixel, with the extremes of those it hides.
  drawCounter(plot, counter) {
    const base = counter.y + COUNTER;
    const y = (value) =>
        px(base - 1 - Math.max(0, value) / (counter.most || 1) * (COUNTER - 3));
    let i = Math.max(0, counter.indexAt(this.view.from));
    if (i >= counter.at.length) return;
    const start = px(Math.max(this.x(counter.at[i]), GUTTER - 4));
    let path = `M${start} ${y(counter.value[i])}`;
    for (++i; i < counter.at.length && counter.at[i] <= this.view.to;) {
      const x = this.x(counter.at[i]);
      let low = counter.value[i];
      let high = low;
      let last = low;
      for (++i; i < counter.at.length && this.x(counter.at[i]) < x + 0.5; ++i) {
        last = counter.value[i];
        low = Math.min(low, last);
        high = Math.max(high, last);
      }
      path += `H${px(x)}`;
      if (low !== high) path += `V${y(low)}V${y(high)}`;
      path += `V${y(last)}`;
    }
    path += `H${px(Math.min(this.x(this.view.wall), this.width))}`;
    svgElement(plot, 'path', {class: 'step-area',
                              d: `${path}V${base}H${start}Z`});
    svgElement(plot, 'path', {class: 'step', d: path});
    svgElement(plot, 'line', {class: 'grid', x1: GUTTER, x2: this.width,
                              y1: base, y2: base});
  }

  // Which part of the whole is in view.
  drawTrack() {
    const {from, to, wall} = this.view;
    const at = (ns) => Math.min(1, Math.max(0, ns / wall)) * this.plotWidth;
    const box = {x: GUTTER, y: this.height - 7, height: 5, rx: 2.5};
    svgElement(this.svg, 'rect', {...box, class: 'track',
                                  width: this.plotWidth});
    svgElement(this.svg, 'rect',
               {...box, class: 'thumb', x: px(GUTTER + at(from)),
                width: px(Math.max(4, at(to) - at(from)))});
  }

  // The line under the pointer, and a frame around span i of `row`, if any.
  point(x, row, i) {
    this.overlay.replaceChildren();
    if (x < GUTTER) return;
    svgElement(this.overlay, 'line', {class: 'cursor', x1: px(x), x2: px(x),
                                      y1: AXIS, y2: this.bottom});
    if (!row || i < 0) return;
    const x0 = this.x(row.begin[i]);
    svgElement(this.overlay, 'rect',
               {class: 'hover', x: px(x0), y: row.y, height: ROW,
                width: px(Math.max(1, this.x(row.end[i]) - x0))});
  }
}

// `text` cut to what fits in `width` pixels at the chart's size of type.
function fitting(text, width) {
  const characters = Math.floor(width / 6.1);
  if (text.length <= characters) return text;
  return characters < 3 ? '' : `${text.slice(0, characters - 1)}…`;
}

const shortened = (text, width) => fitting(text, width) || text.slice(0, 1);
