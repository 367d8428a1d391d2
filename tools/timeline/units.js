'use strict';
// Numbers as people read them. Times are nanoseconds; GB are 10^9 bytes.

function threeDigits(value) {
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value, units) {  // units: [size, name], the largest first
  for (const [size, name] of units) {
    // What rounds to 1000 of a unit is 1.00 of the next.
    if (value >= size * 0.9995) return `${threeDigits(value / size)} ${name}`;
  }
  return `${value.toFixed(0)} ${units[units.length - 1][1]}`;
}

const TIME_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const BYTE_UNITS = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];

const formatTime = (ns) => scaled(ns, TIME_UNITS);
const formatBytes = (bytes) => scaled(bytes, BYTE_UNITS);
const formatShare = (share) => `${(share * 100).toFixed(1)} %`;
const formatCount = (count) => count.toLocaleString('en');

// '' where there is no rate.
function formatRate(bytes, ns) {
  return bytes > 0 && ns > 0 ? `${threeDigits(bytes / ns)} GB/s` : '';
}

// A round step of which `steps` or fewer are in `length`.
function roundStep(length, steps) {
  const least = length / Math.max(1, steps);
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

// The time `ns` on an axis that ends at `end` and has a tick every `step`.
function formatTick(ns, end, step) {
  const [size, name] = TIME_UNITS.find(([unit]) => end >= unit) ?? [1, 'ns'];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(decimals)} ${name}`;
}
