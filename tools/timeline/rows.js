// The data of the page, made fit for looking things up by time.

// Index of the first element of sorted `values` that is above `limit`.
function firstAbove(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

function sumsOf(steps) {
  const sums = new Float64Array(steps.length);
  let sum = 0;
  for (let i = 0; i < steps.length; ++i) sums[i] = sum += steps[i];
  return sums;
}

// One row of spans, sorted by begin.
class Row {
  constructor(data, names) {
    this.name = data.name;
    this.lane = data.lane;
    this.isStall = data.lane === 'stall';
    this.begin = sumsOf(data.begin_step);
    this.end = this.begin.map((begin, i) => begin + data.duration[i]);
    // The latest end up to here: sorted, even where spans overlap.
    this.latestEnd = new Float64Array(this.end.length);
    let latest = -Infinity;
    for (let i = 0; i < this.end.length; ++i)
      this.latestEnd[i] = latest = Math.max(latest, this.end[i]);
    this.names = data.names;
    this.pass = data.pass;
    this.bytes = data.bytes;
    this.allNames = names;
  }

  nameOf(i) { return this.allNames[this.names[i]]; }

  // For where there is little room.
  labelOf(i) { return this.nameOf(i).replace(/^waits for /, ''); }

  // What a stall waited on; "waits for disk: blk.0" waited on the disk.
  causeOf(i) { return this.nameOf(i).split(': ', 1)[0]; }

  // The first span that may reach beyond `from`.
  firstAfter(from) { return firstAbove(this.latestEnd, from); }

  // The span at `ns`, or the nearest one up to `slack` away; -1: none.
  at(ns, slack) {
    let best = -1;
    let bestDistance = slack;
    const last = firstAbove(this.begin, ns + slack) - 1;
    for (let i = last; i >= 0 && i > last - 64; --i) {
      const distance = Math.max(0, this.begin[i] - ns, ns - this.end[i]);
      if (distance < bestDistance || (best < 0 && distance === bestDistance)) {
        best = i;
        bestDistance = distance;
      }
      if (distance === 0) break;
    }
    return best;
  }

  // Spans that touch [from, to].
  countIn(from, to) {
    return Math.max(0, firstAbove(this.begin, to) - this.firstAfter(from));
  }
}

// A number over time: each value holds until the next.
class Counter {
  constructor(data) {
    this.name = data.name;
    this.at = sumsOf(data.at_step);
    this.value = data.value;
    this.most = data.value.reduce((most, value) => Math.max(most, value), 0);
    this.isBytes = data.name.includes('bytes');
  }

  indexAt(ns) { return firstAbove(this.at, ns) - 1; }
  format(value) {
    return this.isBytes ? formatBytes(value) : formatCount(value);
  }
}

// Colours are style variables, so that they follow light and dark.
class Colors {
  constructor(rows, stalls) {
    const known = {
      'disk': 'disk', 'upload': 'upload', 'embedding': 'embedding',
      'attention': 'attention', 'ffn': 'ffn', 'output head': 'head',
      'sampler': 'sampler', 'stall': 'stall-1',
    };
    this.lanes = new Map();
    let others = 0;
    for (const {lane} of rows) {
      if (this.lanes.has(lane)) continue;
      const name = known[lane] ?? `other-${1 + others++ % 2}`;
      this.lanes.set(lane, `var(--${name})`);
    }
    this.causes = new Map(
        stalls.map(({cause}, i) => [cause, `var(--stall-${1 + i % 4})`]));
  }

  ofLane(lane) { return this.lanes.get(lane); }
  ofCause(cause) { return this.causes.get(cause); }
  ofSpan(row, i) {
    return row.isStall ? this.ofCause(row.causeOf(i)) : this.ofLane(row.lane);
  }
}
