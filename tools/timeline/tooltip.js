// The box beside the pointer. All text goes in as text, never as HTML.

class Tooltip {
  constructor(box) { this.box = box; }

  // facts: [term, value]; those without a value are left out.
  show(title, facts, x, y) {
    const heading = document.createElement('strong');
    heading.textContent = title;
    const list = document.createElement('dl');
    for (const [term, value] of facts) {
      if (value === '' || value === undefined) continue;
      for (const [tag, text] of [['dt', term], ['dd', value]]) {
        const element = document.createElement(tag);
        element.textContent = text;
        list.append(element);
      }
    }
    this.box.replaceChildren(heading, list);
    this.box.hidden = false;
    // Inside the card, on the side with room.
    const card = this.box.parentElement;
    const left = x + 16 + this.box.offsetWidth > card.clientWidth ?
        x - 16 - this.box.offsetWidth : x + 16;
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${y + 18}px`;
  }

  showSpan(row, i, hidden, x, y) {
    const ns = row.end[i] - row.begin[i];
    this.show(row.nameOf(i) || '(no name)', [
      ['lane', row.name],
      ['pass', row.pass[i] >= 0 ? String(row.pass[i]) : ''],
      ['duration', formatTime(ns)],
      ['begins at', formatTime(row.begin[i])],
      [row.isStall ? 'waited for' : 'bytes',
       row.bytes[i] > 0 ? formatBytes(row.bytes[i]) : ''],
      ['rate', row.isStall ? '' : formatRate(row.bytes[i], ns)],
      ['also here', hidden > 0 ? `${formatCount(hidden)} more spans` : ''],
    ], x, y);
  }

  showCounter(counter, ns, x, y) {
    const i = counter.indexAt(ns);
    if (i < 0) return this.hide();
    this.show(counter.name, [
      ['value', counter.format(counter.value[i])],
      ['at', formatTime(Math.max(0, ns))],
    ], x, y);
  }

  hide() { this.box.hidden = true; }
}
