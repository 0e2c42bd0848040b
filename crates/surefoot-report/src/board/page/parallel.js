// Parallel coordinates with brushing.

import { Plot } from "./chart.js";
import { colour, count, number } from "./dom.js";

const ROW = 70;
const MOST = 2000;
const AXES = 14;

/** One horizontal axis per parameter and one for the value; each line is a trial, coloured by rank. */
export class Parallel extends Plot {
  constructor({ onBrush }) {
    super({
      title: "Parameters", height: 300, margin: { top: 34, bottom: 30, left: 12, right: 12 },
      hint: "Drag along an axis to select trials. Up and down choose an axis, left and right move the selection, plus and minus change its size, Escape clears it.",
      table: () => this.table(),
    });
    Object.assign(this, { onBrush, trials: [], axes: [], brushes: new Map(), row: 0 });
    this.box.addEventListener("pointerdown", (event) => this.begin(event));
    this.box.addEventListener("pointerup", () => this.end());
  }

  /** Sets trials, the axes `{ name, ticks, start, absent, index }` and the scale of the value. */
  set({ study, trials, axes, scale, order }) {
    const shown = order.slice(0, AXES).map((index) => ({ ...axes[index], index }));
    const value = { name: study.objective, ticks: scale.ticks().map(({ place, label }) => [place, label]), start: 0, absent: null, index: null };
    Object.assign(this, { study, rows: [...shown, value], scale, count: axes.length });
    const known = trials.filter((trial) => trial.value !== null && trial.places[0] !== null);
    const sign = study.maximize ? -1 : 1;
    const ranked = [...known].sort((a, b) => sign * (a.value - b.value));
    ranked.forEach((trial, rank) => (trial.rank = Math.floor(((ranked.length - 1 - rank) / ranked.length) * 10)));
    // The best, and others spread evenly.
    const best = ranked.slice(0, MOST / 4);
    const rest = ranked.slice(MOST / 4);
    const every = Math.max(1, Math.ceil(rest.length / (MOST - best.length)));
    this.all = known;
    this.trials = [...best, ...rest.filter((_, i) => i % every === 0)];
    this.setTitle(`Parameters and ${study.objective}`);
    this.setHeight(this.margin.top + this.margin.bottom + ROW * (this.rows.length - 1) + 8);
    this.draw();
  }

  get note() {
    const parts = [];
    if (this.trials.length < this.all.length) parts.push(`${count(this.trials.length)} of ${count(this.all.length)} trials are drawn: the best, and others spread evenly. Selections count all.`);
    if (this.count > AXES) parts.push(`The ${AXES} most important of ${this.count} parameters have an axis.`);
    return parts.join(" ");
  }

  place(trial, row) {
    return row.index === null ? this.scale.place(trial.value) : trial.places[row.index];
  }

  /** True if a trial is inside all selections. */
  matches(trial) {
    for (const [index, [low, high]] of this.brushes) {
      const row = this.rows[index];
      const place = row.index === null && trial.value === null ? null : this.place(trial, row);
      if (place === null || place === undefined || place < low || place > high) return false;
    }
    return true;
  }

  depth(row) {
    return this.margin.top + ROW * row;
  }

  stroke(context, area, trials, alpha) {
    context.lineWidth = 1;
    for (let rank = 0; rank < 10; rank++) {
      const lines = trials.filter((trial) => trial.rank === rank);
      if (!lines.length) continue;
      context.strokeStyle = colour(`--r${rank}`);
      context.globalAlpha = rank >= 8 ? Math.min(1, alpha * 1.5) : alpha;
      context.beginPath();
      for (const trial of lines) {
        this.rows.forEach((row, i) => {
          const x = area.left + area.width * this.place(trial, row);
          context[i ? "lineTo" : "moveTo"](x, this.depth(i));
        });
      }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  paint(context, area) {
    if (!this.rows) return;
    this.stroke(context, area, this.trials, this.trials.length > 300 ? 0.4 : 0.65);
    this.ruler(context, area);
    requestAnimationFrame(() => this.drawBrushes());
  }

  ruler(context, area) {
    this.rows.forEach((row, i) => {
      const y = this.depth(i);
      context.strokeStyle = colour("--quiet");
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(area.left + area.width * row.start, y);
      context.lineTo(area.left + area.width, y);
      context.stroke();
      context.lineWidth = 4;
      context.strokeStyle = colour("--paper");
      context.textBaseline = "middle";
      const text = (label, x, at, align, tint, font) => {
        context.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
        context.textAlign = align;
        context.fillStyle = tint;
        context.lineJoin = "round";
        context.strokeText(label, x, at);
        context.fillText(label, x, at);
      };
      text(row.name, area.left, y - 14, "left", colour("--ink"), "600 12.5px");
      if (row.absent !== null) text("absent", area.left, y + 14, "left", colour("--quiet"), "12px");
      for (const [place, label] of row.ticks) {
        const align = place < 0.06 ? "left" : place > 0.94 ? "right" : "center";
        text(label, area.left + area.width * place, y + 14, align, colour("--quiet"), "12px");
      }
    });
  }

  /** Draws the selections, and the selected lines above the dimmed others. */
  drawBrushes() {
    const area = this.area;
    const context = this.context(this.over);
    if (!this.brushes.size) return;
    const selected = this.trials.filter((trial) => this.matches(trial));
    context.fillStyle = colour("--paper");
    context.globalAlpha = 0.85;
    context.fillRect(0, 0, this.box.clientWidth, this.height);
    context.globalAlpha = 1;
    this.stroke(context, area, selected, selected.length > 300 ? 0.5 : 0.9);
    this.ruler(context, area);
    context.fillStyle = colour("--link");
    for (const [index, [low, high]] of this.brushes) {
      context.globalAlpha = 0.3;
      context.fillRect(area.left + area.width * low, this.depth(index) - 7, Math.max(2, area.width * (high - low)), 14);
    }
    context.globalAlpha = 1;
  }

  leave() {
    this.tip.hidden = true;
  }

  spot(event) {
    const box = this.box.getBoundingClientRect();
    const row = Math.round((event.clientY - box.top - this.margin.top) / ROW);
    const away = Math.abs(event.clientY - box.top - this.depth(row));
    const place = (event.clientX - box.left - this.area.left) / this.area.width;
    return { row: away < 20 && this.rows?.[row] ? row : null, place: Math.min(1, Math.max(0, place)) };
  }

  begin(event) {
    const { row, place } = this.spot(event);
    if (row === null || event.button) return;
    this.drag = { row, from: place };
    this.brushes.delete(row);
    this.box.setPointerCapture(event.pointerId);
    this.drawBrushes();
  }

  move(event) {
    if (!this.drag) {
      this.box.style.cursor = this.spot(event).row === null ? "default" : "ew-resize";
      return;
    }
    const { place } = this.spot(event);
    const [low, high] = [this.drag.from, place].sort((a, b) => a - b);
    if (high - low > 0.005) this.brushes.set(this.drag.row, [low, high]);
    this.drawBrushes();
  }

  end() {
    if (!this.drag) return;
    this.drag = null;
    this.changed();
  }

  changed() {
    this.drawBrushes();
    this.onBrush(this.brushes.size ? (trial) => this.matches(trial) : null);
  }

  clear() {
    this.brushes.clear();
    this.changed();
  }

  key(event) {
    const rows = this.rows?.length ?? 0;
    const brush = this.brushes.get(this.row) ?? [0.4, 0.6];
    const shift = (by) => {
      const width = brush[1] - brush[0];
      const low = Math.min(1 - width, Math.max(0, brush[0] + by));
      this.brushes.set(this.row, [low, low + width]);
    };
    const grow = (by) => this.brushes.set(this.row, [Math.max(0, brush[0] - by), Math.min(1, Math.max(brush[0] - by + 0.02, brush[1] + by))]);
    const actions = {
      ArrowUp: () => (this.row = (this.row + rows - 1) % rows),
      ArrowDown: () => (this.row = (this.row + 1) % rows),
      ArrowLeft: () => shift(-0.05),
      ArrowRight: () => shift(0.05),
      "+": () => grow(0.05),
      "-": () => grow(-0.05),
      Escape: () => this.brushes.clear(),
    };
    if (!actions[event.key] || !rows) return;
    actions[event.key]();
    event.preventDefault();
    this.changed();
    this.show([`Axis ${this.rows[this.row].name}`], 8, this.depth(this.row));
  }

  table() {
    const rows = (this.all ?? []).filter((trial) => this.matches(trial));
    return {
      columns: ["Trial", ...this.rows.map((row) => row.name)],
      rows: rows.map((trial) => [trial.number, ...this.rows.map((row) => (row.index === null ? number(trial.value) : number(trial.points[row.index])))]),
    };
  }
}
