// Heat map of layers over steps.

import { Plot } from "./chart.js";
import { colour, count, h, number } from "./dom.js";
import { Scale } from "./scale.js";

const VIRIDIS = ["440154", "461062", "471f71", "462e7a", "433c82", "3f4988", "3a548b", "35608d", "306b8d", "2b768e", "27818d", "238c8c",
  "21968a", "22a087", "25aa82", "34b47a", "43be71", "59c664", "71ce56", "8bd546", "a9db33", "c5e026", "e1e425", "fde725"];

/** Layers as rows, steps as columns. */
export class HeatMap extends Plot {
  constructor({ onZoom }) {
    super({
      title: "Layers", height: 200, margin: { left: 130 },
      hint: "Arrow keys move the cursor between layers and steps.",
      table: () => this.table(),
    });
    Object.assign(this, { heat: null, marks: [], range: null, onZoom, at: null });
    this.scaleBox = h("div", { class: "heat-scale" });
    this.figure.insertBefore(this.scaleBox, this.details);
    this.box.addEventListener("dblclick", () => this.onZoom?.(null));
  }

  set(heat, marks, range) {
    Object.assign(this, { heat, marks, range });
    if (heat) {
      const each = Math.min(24, Math.max(6, 480 / heat.rows.length));
      const longest = Math.max(...heat.rows.map((row) => shortened(row.layer).length));
      this.margin.left = Math.min(150, 14 + 7 * longest);
      this.setTitle(`${heat.label.charAt(0).toUpperCase()}${heat.label.slice(1)} of each layer (each column ${count(heat.width)} ${heat.width === 1 ? "step" : "steps"})`);
      this.setHeight(Math.round(each * heat.rows.length) + this.margin.top + this.margin.bottom);
      this.drawScale();
    }
    this.draw();
  }

  /** Lowest and highest colour. */
  get ends() {
    const [low, high] = this.heat.range ?? [0, 1];
    if (!this.heat.log) return [0, Math.max(1, high)];
    // At least four decades, so that noise is not mistaken for a difference.
    const lacking = Math.max(0, 4 - (high - low)) / 2;
    return [low - lacking, high + lacking];
  }

  shown(cell) {
    if (cell === null) return "not observed";
    if (cell === "nan") return "NaN or infinite";
    if (cell === "zero") return "exactly zero";
    return this.heat.log ? number(10 ** cell) : `${(100 * cell).toFixed(0)}%`;
  }

  drawScale() {
    const [low, high] = this.ends;
    const label = (value) => (this.heat.log ? number(10 ** value) : `${Math.round(100 * value)}%`);
    const bar = h("canvas", { width: VIRIDIS.length, height: 1, "aria-hidden": "true" });
    VIRIDIS.forEach((hex, i) => {
      const context = bar.getContext("2d");
      context.fillStyle = `#${hex}`;
      context.fillRect(i, 0, 1, 1);
    });
    const sample = (kind, name) => h("span", { class: "key" }, h("i", { class: `sample ${kind}` }), name);
    this.scaleBox.replaceChildren(
      h("span", { class: "key" }, label(low), bar, label(high)),
      sample("is-zero", "exactly zero"), sample("is-nan", "NaN or infinite"), sample("is-unseen", "not observed"));
  }

  paint(context, area) {
    const heat = this.heat;
    if (!heat) return;
    const first = heat.start + 0.5;
    const [from, to] = this.range ?? [0, heat.start + heat.columns * heat.width];
    this.x = new Scale(Math.max(from, 0.5), to + 0.5);
    const rowHeight = area.height / heat.rows.length;
    const [low, high] = this.ends;
    const X = (step) => area.left + area.width * this.x.place(step);
    context.fillStyle = colour("--unseen");
    context.fillRect(area.left, area.top, area.width, area.height);
    this.clipped(context, area, () => {
      heat.rows.forEach((row, r) => {
        const top = area.top + r * rowHeight;
        row.cells.forEach((cell, c) => {
          if (cell === null) return;
          const left = X(first + c * heat.width);
          const width = X(first + (c + 1) * heat.width) - left;
          if (left > area.left + area.width || left + width < area.left) return;
          if (cell === "nan") context.fillStyle = "#c4123f";
          else if (cell === "zero") context.fillStyle = "#0b0b0f";
          else {
            const place = (cell - low) / (high - low || 1);
            context.fillStyle = `#${VIRIDIS[Math.min(VIRIDIS.length - 1, Math.max(0, Math.floor(place * VIRIDIS.length)))]}`;
          }
          context.fillRect(left, top, width + 0.5, rowHeight + 0.5);
          if (cell === "nan" || cell === "zero") this.pattern(context, cell, left, top, width, rowHeight);
        });
      });
      for (const mark of this.marks) this.frame(context, area, X, rowHeight, mark);
    });
    this.labels(context, area, rowHeight);
  }

  /** Stripes or a dot, so that these cells differ by more than their colour. */
  pattern(context, cell, left, top, width, height) {
    context.fillStyle = "#ffffff";
    if (cell === "zero") {
      context.beginPath();
      context.arc(left + width / 2, top + height / 2, 1.1, 0, 7);
      context.fill();
    } else context.fillRect(left + width / 4, top, Math.max(0.5, width / 4), height);
  }

  frame(context, area, X, rowHeight, mark) {
    const rows = this.heat.rows;
    let start = -1;
    for (let r = 0; r <= rows.length; r++) {
      const inside = r < rows.length && mark.layers.includes(rows[r].layer);
      if (inside && start < 0) start = r;
      if (inside || start < 0) continue;
      for (const [width, tint] of [[4, "#ffffff"], [1.75, "#16161d"]]) {
        context.lineWidth = width;
        context.strokeStyle = tint;
        context.strokeRect(X(mark.since - 0.5), area.top + start * rowHeight, Math.max(3, X(mark.at + 0.5) - X(mark.since - 0.5)), (r - start) * rowHeight);
      }
      start = -1;
    }
  }

  labels(context, area, rowHeight) {
    context.fillStyle = colour("--ink");
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = Math.ceil(13 / rowHeight);
    this.heat.rows.forEach((row, r) => {
      if (r % every === 0) context.fillText(shortened(row.layer), area.left - 8, area.top + (r + 0.5) * rowHeight);
    });
    context.fillStyle = colour("--quiet");
    context.textBaseline = "top";
    for (const tick of this.x.ticks(Math.max(2, Math.round(area.width / 110)))) {
      const at = area.left + area.width * tick.place;
      context.textAlign = at > area.left + area.width - 20 ? "right" : at < area.left + 12 ? "left" : "center";
      context.fillText(tick.label, at, area.top + area.height + 6);
    }
    context.textAlign = "right";
    context.fillText("step", area.left + area.width, area.top + area.height + 22);
  }

  hover(left, top) {
    const area = this.area;
    if (!this.heat || !this.x) return;
    const row = Math.floor((top - area.top) / (area.height / this.heat.rows.length));
    const step = this.x.at((left - area.left) / area.width);
    const column = Math.floor((step - this.heat.start - 0.5) / this.heat.width);
    if (left < area.left || !this.heat.rows[row] || column < 0 || column >= this.heat.columns) return this.leave();
    this.cell(row, column, left, top);
  }

  cell(row, column, left, top) {
    this.at = [row, column];
    const { layer, kind, cells } = this.heat.rows[row];
    const first = this.heat.start + column * this.heat.width + 1;
    const steps = this.heat.width === 1 ? `Step ${count(first)}` : `Steps ${count(first)} to ${count(first + this.heat.width - 1)}`;
    this.show([`${layer} (${kind})`, steps, { name: this.heat.label, value: this.shown(cells[column]) }], left, top);
  }

  key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = moves[event.key];
    if (!move || !this.heat || !this.x) return;
    const [row, column] = this.at ?? [0, this.heat.columns - 1];
    const limit = (value, most) => Math.min(most - 1, Math.max(0, value));
    const [r, c] = [limit(row + move[0], this.heat.rows.length), limit(column + move[1], this.heat.columns)];
    const area = this.area;
    const left = area.left + area.width * this.x.place(this.heat.start + (c + 0.5) * this.heat.width + 0.5);
    this.cell(r, c, left, area.top + ((r + 0.5) * area.height) / this.heat.rows.length);
    event.preventDefault();
  }

  table() {
    const { rows = [], columns = 0, start = 0, width = 1 } = this.heat ?? {};
    const every = Math.max(1, Math.ceil(columns / 20));
    const picked = [...Array(columns).keys()].filter((c) => c % every === 0);
    return {
      columns: ["Layer", ...picked.map((c) => `step ${count(start + c * width + 1)}`)],
      rows: rows.map((row) => [row.layer, ...picked.map((c) => this.shown(row.cells[c]))]),
    };
  }
}

function shortened(name) {
  return name.length <= 18 ? name : `${name.slice(0, 9)}…${name.slice(-8)}`;
}
