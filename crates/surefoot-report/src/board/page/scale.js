// Axis scales with round ticks.

import { count, number } from "./dom.js";

/** A linear or logarithmic axis from `low` to `high`. */
export class Scale {
  constructor(low, high, log = false) {
    this.log = log;
    if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - (Math.abs(low) || 1) / 2, low + (Math.abs(low) || 1) / 2];
    this.low = log ? Math.log10(low) : low;
    this.high = log ? Math.log10(high) : high;
  }

  /** A scale around values, with a margin. */
  static around(values, log) {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (!(low <= high)) return new Scale(log ? 0.1 : 0, 1, log);
    if (log) {
      low = Math.max(low, high / 1e12);
      const margin = 10 ** (0.04 * (Math.log10(high) - Math.log10(low)) || 0.1);
      return new Scale(low / margin, high * margin, true);
    }
    // Rounding errors are no difference.
    if (high - low <= 1e-9 * Math.abs(high)) return new Scale(low, low, false);
    const margin = (high - low) * 0.06;
    const bottom = low >= 0 && low < (high - low) * 0.5 ? 0 : low - margin;
    return new Scale(bottom, high + margin, false);
  }

  /** Position of a value from 0 to 1. */
  place(value) {
    const scaled = this.log ? (value > 0 ? Math.log10(value) : this.low) : value;
    return (scaled - this.low) / (this.high - this.low);
  }

  /** The value at a position. */
  at(place) {
    const scaled = this.low + place * (this.high - this.low);
    return this.log ? 10 ** scaled : scaled;
  }

  /** About `wanted` round ticks: position and label. */
  ticks(wanted, label) {
    const span = this.high - this.low;
    if (this.log && span >= 1.5) {
      const every = Math.ceil(span / wanted);
      const ticks = [];
      for (let power = Math.ceil(this.low); power <= this.high; power++) {
        if (power % every === 0) ticks.push({ place: (power - this.low) / span, label: number(10 ** power) });
      }
      return ticks;
    }
    const [low, high] = this.log ? [10 ** this.low, 10 ** this.high] : [this.low, this.high];
    const rough = (high - low) / wanted;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * unit).find((each) => each >= rough * (1 - 1e-9)) ?? 10 * unit;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
      const value = Math.abs(i * step) < step * 1e-6 ? 0 : Number((i * step).toPrecision(12));
      ticks.push({ place: this.place(value), label: label ? label(value, step) : tickLabel(value, step) });
    }
    return ticks;
  }
}

function tickLabel(value, step) {
  if (Number.isInteger(value) && Math.abs(value) >= 1000 && Math.abs(value) < 1e9) return count(value);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return decimals > 4 || Math.abs(value) >= 1e6 ? number(value) : value.toFixed(decimals).replace("-", "−");
}
