// Charts of trials: values, learning curves and workers.

import { Plot } from "./chart.js";
import { colour, count, h, number, time } from "./dom.js";
import { Scale } from "./scale.js";

export const STATUSES = ["complete", "unfinished", "paused", "pruned", "failed"];

/** One of five statuses of a state. */
export function status(state) {
  return STATUSES.includes(state) ? state : "unfinished";
}

/** An axis whose ends and ticks the server has chosen. */
export class FixedScale {
  constructor({ low, high, log, ticks }) {
    Object.assign(this, { low, high, log, marks: ticks });
  }

  place(value) {
    const scaled = this.log ? (value > 0 ? Math.log10(value) : this.low) : value;
    return Math.min(1, Math.max(0, (scaled - this.low) / (this.high - this.low)));
  }

  ticks() {
    return this.marks.map(([place, label]) => ({ place, label })).filter(({ place }) => place >= 0 && place <= 1);
  }
}

/** Lines for the tooltip of a trial. */
export function describe(trial, study) {
  const epochs = trial.planned ? `${count(trial.epochs)} of ${count(trial.planned)} epochs` : `${count(trial.epochs)} epochs`;
  const lines = [`Trial ${count(trial.number)}, ${trial.state}`, { name: study.objective, value: number(trial.value) }, epochs];
  if (trial.why) lines.push(trial.why);
  return lines;
}

function legend(plot, statuses, more = []) {
  const key = (name, text) => h("span", { class: `key ${name}` }, h("i", { class: "swatch" }), text);
  plot.legend.replaceChildren(...STATUSES.filter((name) => statuses.has(name)).map((name) => key(name, name)), ...more.map(([name, text]) => key(name, text)));
}

function trialTable(trials, study, column) {
  return {
    columns: ["Trial", ...column.map(([name]) => name), study.objective, "State", "Why"],
    rows: trials.map((trial) => [trial.number, ...column.map(([, of]) => of(trial)), number(trial.value), trial.state, trial.why ?? ""]),
  };
}

/** Dots of trials: the value against the number or a parameter. */
export class Scatter extends Plot {
  constructor({ place, column, best = false, onPick, ...rest }) {
    super({ hint: "Arrow keys move between trials, Enter opens the run.", table: () => trialTable(this.trials, this.study, this.column), ...rest });
    Object.assign(this, { placeOf: place, column, hasBest: best, onPick, trials: [], axis: null });
    this.box.addEventListener("click", () => this.near && this.onPick(this.near));
  }

  set({ study, trials, y, axis, inside }) {
    // Complete trials are drawn on top.
    const order = [...trials].sort((a, b) => STATUSES.indexOf(status(b.state)) - STATUSES.indexOf(status(a.state)));
    Object.assign(this, { study, trials, y, axis, inside, order });
    if (this.hasBest) legend(this, new Set(trials.map((trial) => status(trial.state))), [["best", "best so far"]]);
    this.draw();
  }

  paint(context, area) {
    if (!this.study) return;
    this.x = this.axis ? { ticks: () => this.axis.ticks.map(([place, label]) => ({ place, label })) } : new Scale(0, Math.max(1, this.study.count - 1));
    this.axes(context, area, this.x, this.y, { xName: this.axis ? "" : "trial" });
    const seen = new Set();
    this.dots = [];
    const tints = Object.fromEntries(STATUSES.map((name) => [name, colour(`--${name}`)]));
    const size = this.axis ? 3 : 4;
    for (const trial of this.order) {
      const place = this.placeOf(trial, this.x);
      if (place === null || trial.value === null) continue;
      const x = area.left + area.width * place;
      const y = area.top + area.height * (1 - this.y.place(trial.value));
      this.dots.push([x, y, trial]);
      // Dots on top of others of the same colour are not drawn.
      const name = status(trial.state);
      const isInside = Number(!this.inside || this.inside(trial));
      const key = ((2 * STATUSES.indexOf(name) + isInside) * 8192 + Math.round(x)) * 8192 + Math.round(y);
      if (seen.has(key)) continue;
      seen.add(key);
      context.globalAlpha = isInside ? 0.8 : 0.12;
      context.fillStyle = tints[name];
      context.fillRect(x - size / 2, y - size / 2, size, size);
    }
    context.globalAlpha = 1;
    if (this.hasBest) this.paintBest(context, area);
  }

  paintBest(context, area) {
    context.strokeStyle = colour("--best");
    context.lineWidth = 1.5;
    context.beginPath();
    let best = null;
    for (const trial of this.trials) {
      if (!trial.counts || trial.value === null) continue;
      const better = best === null || (this.study.maximize ? trial.value > best : trial.value < best);
      if (!better) continue;
      const x = area.left + area.width * this.x.place(trial.number);
      if (best === null) context.moveTo(x, area.top + area.height * (1 - this.y.place(trial.value)));
      else context.lineTo(x, area.top + area.height * (1 - this.y.place(best)));
      best = trial.value;
      context.lineTo(x, area.top + area.height * (1 - this.y.place(best)));
    }
    if (best !== null) context.lineTo(area.left + area.width, area.top + area.height * (1 - this.y.place(best)));
    context.stroke();
  }

  hover(left, top) {
    let [nearest, distance] = [null, 15 ** 2];
    for (const dot of this.dots ?? []) {
      const away = (dot[0] - left) ** 2 + (dot[1] - top) ** 2;
      if (away < distance) [nearest, distance] = [dot, away];
    }
    if (nearest) this.point(nearest);
    else {
      this.near = null;
      this.leave();
    }
  }

  point([x, y, trial]) {
    this.near = trial;
    const context = this.context(this.over);
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, 6, 0, 7);
    context.stroke();
    const more = this.column.map(([name, of]) => ({ name, value: String(of(trial)) }));
    this.show([...describe(trial, this.study), ...(this.axis ? more : [])], x, y);
  }

  key(event) {
    if (event.key === "Enter" && this.near) return this.onPick(this.near);
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || !this.dots?.length) return;
    const dots = [...this.dots].sort((a, b) => a[0] - b[0]);
    const at = dots.findIndex((dot) => dot[2] === this.near);
    this.point(dots[Math.min(dots.length - 1, Math.max(0, at + move))]);
    event.preventDefault();
  }
}

/** Learning curves, coloured by status. */
export class Curves extends Plot {
  constructor({ onPick }) {
    super({
      title: "Learning curves", height: 320, hint: "Hover over a curve to see its trial and why it ended; the table has all of them.",
      table: () => trialTable(this.lines.map(([trial]) => trial), this.study, [["Epochs", (trial) => trial.epochs]]),
    });
    Object.assign(this, { lines: [], onPick });
    this.box.addEventListener("click", () => this.near && this.onPick(this.near));
  }

  set({ study, lines, scale, epochs, best, inside }) {
    Object.assign(this, { study, lines, y: new FixedScale(scale), epochs, best, inside });
    this.setTitle(`${study.objective.charAt(0).toUpperCase()}${study.objective.slice(1)} after each epoch (${study.better})`);
    legend(this, new Set(lines.map(([trial]) => status(trial.state))), best === null ? [] : [["best", "best trial"]]);
    this.draw();
  }

  trace(context, area, points) {
    context.beginPath();
    let pen = "moveTo";
    for (let i = 0; i < points.length; i += 2) {
      if (points[i + 1] === null) {
        pen = "moveTo";
        continue;
      }
      const [x, y] = this.at(area, points[i], points[i + 1]);
      context[pen](x, y);
      if (pen === "moveTo" && points[i + 3] === undefined) context.lineTo(x + 2, y);
      pen = "lineTo";
    }
    context.stroke();
  }

  at(area, step, value) {
    return [area.left + area.width * this.x.place(step), area.top + area.height * (1 - this.y.place(value))];
  }

  paint(context, area) {
    if (!this.study) return;
    this.x = new Scale(this.epochs > 1 ? 1 : 0, Math.max(1, this.epochs));
    this.axes(context, area, this.x, this.y, { xName: "epoch" });
    const isCrowded = this.lines.length > 60;
    // Pruned trials are short and are drawn on top.
    const order = [...this.lines].sort(([a], [b]) => STATUSES.indexOf(status(a.state)) - STATUSES.indexOf(status(b.state)));
    const tints = Object.fromEntries(STATUSES.map((name) => [name, colour(`--${name}`)]));
    for (const [trial, points] of order) {
      const isInside = !this.inside || this.inside(trial);
      context.strokeStyle = tints[status(trial.state)];
      context.globalAlpha = !isInside ? 0.06 : isCrowded ? 0.5 : 0.9;
      context.lineWidth = isCrowded ? 1 : 1.5;
      this.trace(context, area, points);
    }
    context.globalAlpha = 1;
    const best = this.lines.find(([trial]) => trial.number === this.best);
    if (best) {
      context.strokeStyle = colour("--best");
      context.lineWidth = 2.5;
      this.trace(context, area, best[1]);
    }
  }

  hover(left, top) {
    const area = this.area;
    if (!this.x) return;
    let [nearest, distance] = [null, 12 ** 2];
    for (const line of this.lines) {
      const points = line[1];
      for (let i = 0; i + 1 < points.length; i += 2) {
        if (points[i + 1] === null) continue;
        const [x, y] = this.at(area, points[i], points[i + 1]);
        // On the segment to the next point.
        const next = points[i + 3] === undefined || points[i + 3] === null ? [x, y] : this.at(area, points[i + 2], points[i + 3]);
        const length = (next[0] - x) ** 2 + (next[1] - y) ** 2;
        const t = length ? Math.min(1, Math.max(0, ((left - x) * (next[0] - x) + (top - y) * (next[1] - y)) / length)) : 0;
        const away = (x + t * (next[0] - x) - left) ** 2 + (y + t * (next[1] - y) - top) ** 2;
        if (away < distance) [nearest, distance] = [line, away];
      }
    }
    this.near = nearest?.[0] ?? null;
    if (!nearest) return this.leave();
    const context = this.context(this.over);
    context.strokeStyle = colour("--ink");
    context.lineWidth = 3;
    this.trace(context, area, nearest[1]);
    this.show(describe(nearest[0], this.study), left, top);
  }
}

/** Trials of each worker over time. */
export class Timeline extends Plot {
  constructor({ onPick }) {
    super({
      title: "Trials by worker", height: 120, margin: { left: 110, top: 6 }, hint: "The table has all attempts.",
      table: () => ({
        columns: ["Worker", "Trial", "State", "Start", "Duration"],
        rows: this.bars.map(({ worker, trial, began, ended }) => [worker, trial.number, trial.state, time((began - this.start) / 1000), time((ended - began) / 1000)]),
      }),
    });
    Object.assign(this, { bars: [], onPick });
    this.box.addEventListener("click", () => this.near && this.onPick(this.near.trial));
  }

  set({ study, trials }) {
    this.study = study;
    const last = Math.max(...trials.flatMap((trial) => trial.attempts.flatMap(([, began, ended]) => [began, ended ?? began])));
    this.bars = trials.flatMap((trial) => trial.attempts.map(([worker, began, ended, state]) => ({
      trial, worker, began, ended: ended ?? last, state: state === "finished" ? status(trial.state) : status(state),
    })));
    this.start = Math.min(...this.bars.map((bar) => bar.began));
    this.end = Math.max(...this.bars.map((bar) => bar.ended), this.start + 1);
    this.workers = [...new Set(this.bars.map((bar) => bar.worker))].slice(0, 40);
    this.setHeight(this.workers.length * 20 + this.margin.top + this.margin.bottom);
    legend(this, new Set(this.bars.map((bar) => bar.state)));
    this.draw();
  }

  paint(context, area) {
    if (!this.bars.length) return;
    this.x = new Scale(0, (this.end - this.start) / 1000);
    const row = area.height / this.workers.length;
    context.fillStyle = colour("--neutral-ground");
    context.globalAlpha = 0.5;
    context.fillRect(area.left, area.top, area.width, area.height);
    context.globalAlpha = 1;
    const rows = new Map(this.workers.map((worker, i) => [worker, i]));
    const tints = Object.fromEntries(STATUSES.map((name) => [name, colour(`--${name}`)]));
    this.boxes = [];
    for (const bar of this.bars) {
      const index = rows.get(bar.worker);
      if (index === undefined) continue;
      const left = area.left + area.width * this.x.place((bar.began - this.start) / 1000);
      const right = area.left + area.width * this.x.place((bar.ended - this.start) / 1000);
      context.fillStyle = tints[bar.state];
      context.fillRect(left, area.top + index * row + 2, Math.max(1, right - left - 1), row - 4);
      this.boxes.push([left, right, index, bar]);
    }
    context.fillStyle = colour("--ink");
    context.textAlign = "right";
    context.textBaseline = "middle";
    this.workers.forEach((worker, i) => context.fillText(worker.length > 15 ? `…${worker.slice(-14)}` : worker, area.left - 8, area.top + (i + 0.5) * row));
    context.fillStyle = colour("--quiet");
    context.textBaseline = "top";
    for (const tick of this.x.ticks(Math.max(2, Math.round(area.width / 130)), (value) => time(value))) {
      context.textAlign = tick.place > 0.95 ? "right" : tick.place < 0.02 ? "left" : "center";
      context.fillText(tick.label, area.left + area.width * tick.place, area.top + area.height + 6);
    }
  }

  hover(left, top) {
    const area = this.area;
    const index = Math.floor((top - area.top) / (area.height / (this.workers?.length || 1)));
    const hit = (this.boxes ?? []).find(([from, to, row]) => row === index && left >= from - 1 && left <= Math.max(to, from + 2));
    this.near = hit?.[3] ?? null;
    if (!hit) return this.leave();
    const { trial, worker, began, ended } = hit[3];
    this.show([...describe(trial, this.study), { name: `worker ${worker}`, value: time((ended - began) / 1000) }], left, top);
  }
}
