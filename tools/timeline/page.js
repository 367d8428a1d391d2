// Puts the page together: data, view, mouse and keys.

const LEAST_VIEW_NS = 50;

// The part of time that is shown; never empty, never far from the data.
class View {
  constructor(wall) {
    this.wall = Math.max(wall, LEAST_VIEW_NS);
    this.fit();
  }
  fit() { this.set(0, this.wall); }
  set(from, to) {
    const margin = this.wall * 0.02;
    const most = this.wall + 2 * margin;
    const length = Math.min(Math.max(to - from, LEAST_VIEW_NS), most);
    const start = (from + to - length) / 2;
    this.from = Math.min(Math.max(start, -margin), this.wall + margin - length);
    this.to = this.from + length;
  }
  move(ns) { this.set(this.from + ns, this.to + ns); }
  // factor < 1 goes closer; the time `about` stays where it is.
  zoom(factor, about) {
    const length = Math.max((this.to - this.from) * factor, LEAST_VIEW_NS);
    const share = (about - this.from) / (this.to - this.from);
    this.set(about - share * length, about + (1 - share) * length);
  }
  get middle() { return (this.from + this.to) / 2; }
  get length() { return this.to - this.from; }
}

class Page {
  constructor(data) {
    const {summary} = data;
    const rows = data.rows.map((row) => new Row(row, data.names));
    const counters = data.counters.map((counter) => new Counter(counter));
    const colors = new Colors(rows, summary.stalls);
    this.svg = document.getElementById('chart');
    this.view = new View(summary.wall_ns);
    this.drawing = new Drawing(this.svg, rows, counters, summary.passes, colors,
                               this.view);
    this.tooltip = new Tooltip(document.getElementById('tooltip'));
    fillFigures(summary);
    fillStalls(summary, colors);
    fillLanes(summary, colors);
    fillPasses(summary, (begin, end) => {
      const margin = (end - begin) * 0.02;
      this.change(() => this.view.set(begin - margin, end + margin));
    });
    if (data.ignored > 0) {
      document.getElementById('note').textContent =
          `${formatCount(data.ignored)} events of other kinds are not drawn.`;
    }
    this.draw();
    this.listenToMouse();
    this.listenToKeys();
    new ResizeObserver(() => this.drawSoon()).observe(this.svg);
  }

  draw() {
    this.drawing.draw();
    document.getElementById('range').textContent =
        `${formatTime(Math.max(0, this.view.from))} – ` +
        `${formatTime(this.view.to)} (${formatTime(this.view.length)})`;
  }
  // Once a frame, however many events there are.
  drawSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }
  change(body) {
    body();
    this.tooltip.hide();
    this.drawSoon();
  }

  listenToMouse() {
    const {svg, view, drawing} = this;
    let grip = null;  // where the pointer went down
    svg.addEventListener('wheel', (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === 1 ? 20 : 1;
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      this.change(() => {
        if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY))
          view.move(sideways * pixels * view.length / drawing.plotWidth);
        else
          view.zoom(Math.exp(event.deltaY * pixels * 0.002),
                    drawing.ns(Math.max(GUTTER, event.offsetX)));
      });
    }, {passive: false});
    svg.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      grip = {x: event.clientX, from: view.from, to: view.to};
      svg.setPointerCapture(event.pointerId);
      svg.classList.add('dragging');
    });
    svg.addEventListener('pointermove', (event) => {
      if (!grip) return this.point(event);
      const ns = (grip.x - event.clientX) * (grip.to - grip.from) /
          drawing.plotWidth;
      this.change(() => view.set(grip.from + ns, grip.to + ns));
    });
    const release = () => {
      grip = null;
      svg.classList.remove('dragging');
    };
    svg.addEventListener('pointerup', release);
    svg.addEventListener('pointercancel', release);
    svg.addEventListener('pointerleave', () => {
      this.tooltip.hide();
      drawing.point(-1);
    });
    svg.addEventListener('dblclick', (event) => this.zoomToSpan(event));
  }

  // What is under the pointer: [row, index], or nothing.
  spanAt(event) {
    const row = this.drawing.rowAt(event.offsetY);
    if (!row || event.offsetX < GUTTER) return [undefined, -1];
    const slack = 2 * this.view.length / this.drawing.plotWidth;
    return [row, row.at(this.drawing.ns(event.offsetX), slack)];
  }

  point(event) {
    const {drawing, tooltip} = this;
    const [row, i] = this.spanAt(event);
    drawing.point(event.offsetX, row, i);
    const x = event.offsetX + this.svg.getBoundingClientRect().left -
        tooltip.box.parentElement.getBoundingClientRect().left;
    const y = event.offsetY + this.svg.getBoundingClientRect().top -
        tooltip.box.parentElement.getBoundingClientRect().top;
    const counter = drawing.counterAt(event.offsetY);
    if (i >= 0) {
      const pixel = this.view.length / drawing.plotWidth;
      const small = row.end[i] - row.begin[i] < pixel;
      const ns = drawing.ns(event.offsetX);
      const hidden = small ? row.countIn(ns - pixel, ns + pixel) - 1 : 0;
      tooltip.showSpan(row, i, hidden, x, y);
    } else if (counter && event.offsetX >= GUTTER) {
      tooltip.showCounter(counter, drawing.ns(event.offsetX), x, y);
    } else {
      tooltip.hide();
    }
  }

  zoomToSpan(event) {
    const [row, i] = this.spanAt(event);
    if (i < 0) return;
    const margin = Math.max(20, (row.end[i] - row.begin[i]) * 0.25);
    this.change(() => this.view.set(row.begin[i] - margin, row.end[i] + margin));
  }

  listenToKeys() {
    const {view} = this;
    const closer = () => view.zoom(1 / 1.6, view.middle);
    const away = () => view.zoom(1.6, view.middle);
    const fit = () => view.fit();
    const keys = {
      '+': closer, '=': closer, '-': away, '_': away,
      'f': fit, 'F': fit, '0': fit, 'Home': fit,
      'ArrowLeft': () => view.move(-view.length * 0.15),
      'ArrowRight': () => view.move(view.length * 0.15),
    };
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      this.change(keys[event.key]);
    });
    const button = (id, body) => document.getElementById(id).addEventListener(
        'click', () => this.change(body));
    button('zoom-in', closer);
    button('zoom-out', away);
    button('fit', fit);
  }
}

new Page(JSON.parse(document.getElementById('data').textContent));
document.documentElement.dataset.ready = 'true';
