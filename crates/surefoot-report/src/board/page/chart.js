// Charts on a canvas: axes, hover, drag to zoom, keyboard, and a table behind each chart.

import { capital, colour, count, h, number } from "./dom.js";
import { Scale } from "./scale.js";

const plots = new Set();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.draw()));

/** A figure with a canvas. Subclasses paint it, and say what is at a place. */
export class Plot {
  constructor({ title, height = 260, margin = {}, hint = "", table = null }) {
    this.margin = { top: 10, right: 12, bottom: 38, left: 56, ...margin };
    this.height = height;
    this.title = h("span", { class: "figure-title" }, title);
    this.legend = h("span", { class: "legend" });
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.over = h("canvas", { "aria-hidden": "true", class: "over" });
    this.tip = h("div", { class: "tip", role: "status", hidden: true });
    this.box = h("div", { class: "box", tabindex: "0", role: "group", "aria-label": `${title}. ${hint}` }, this.canvas, this.over, this.tip);
    this.figure = h("figure", { class: "chart live" }, h("figcaption", {}, this.title, this.legend), this.box);
    if (table) {
      this.details = h("details", {}, h("summary", {}, "Values as a table"));
      this.details.addEventListener("toggle", () => this.fillTable(table));
      this.figure.append(this.details);
      this.tableOf = table;
    }
    this.box.style.height = `${height}px`;
    this.box.addEventListener("pointermove", (event) => this.move(event));
    this.box.addEventListener("pointerleave", () => this.leave());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("blur", () => this.leave());
    new ResizeObserver(() => this.draw()).observe(this.box);
    // Charts out of view are drawn when they come near.
    this.observer = new IntersectionObserver(([entry]) => {
      this.isNear = entry.isIntersecting;
      if (this.isNear && this.isDirty) this.draw();
    }, { rootMargin: "300px" });
    this.observer.observe(this.box);
    plots.add(this);
  }

  /** Ends the updates of a chart that is no longer on the page. */
  close() {
    plots.delete(this);
    this.observer.disconnect();
  }

  setTitle(title) {
    this.title.textContent = title;
  }

  setHeight(height) {
    if (this.height === height) return;
    this.height = height;
    this.box.style.height = `${height}px`;
  }

  fillTable(table) {
    if (!this.details.open) return;
    const { columns, rows } = table();
    const most = 1000;
    const cells = (row) => row.map((cell, i) => h(i ? "td" : "th", { class: i ? "figure" : null, scope: i ? null : "row" }, String(cell)));
    this.details.replaceChildren(
      this.details.firstChild,
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
        h("table", {}, h("thead", {}, h("tr", {}, columns.map((name, i) => h("th", { scope: "col", class: i ? "figure" : null }, name)))),
          h("tbody", {}, rows.slice(0, most).map((row) => h("tr", {}, cells(row)))))),
      rows.length > most ? h("p", { class: "note" }, `The first ${count(most)} of ${count(rows.length)} rows are shown.`) : "",
    );
  }

  get area() {
    const { top, right, bottom, left } = this.margin;
    const [width, height] = [this.box.clientWidth, this.height];
    return { left, top, width: Math.max(10, width - left - right), height: Math.max(10, height - top - bottom) };
  }

  context(canvas) {
    const [width, height, ratio] = [this.box.clientWidth, this.height, window.devicePixelRatio || 1];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return context;
  }

  draw() {
    this.isDirty = !this.isNear || !this.box.clientWidth;
    if (this.isDirty) return;
    const begun = performance.now();
    this.paint(this.context(this.canvas), this.area);
    this.context(this.over);
    if (this.details?.open) this.fillTable(this.tableOf);
    this.box.dataset.drawn = (performance.now() - begun).toFixed(1);
  }

  /** Draws grid lines and labels of both axes. */
  axes(context, area, x, y, { xName = "", yLabel = null, xLabel = null } = {}) {
    context.strokeStyle = colour("--rule");
    context.fillStyle = colour("--quiet");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of y.ticks(Math.max(2, Math.round(area.height / 50)), yLabel)) {
      const at = Math.round(area.top + area.height * (1 - tick.place)) + 0.5;
      context.beginPath();
      context.moveTo(area.left, at);
      context.lineTo(area.left + area.width, at);
      context.stroke();
      context.fillText(tick.label, area.left - 8, at);
    }
    context.textBaseline = "top";
    for (const tick of x.ticks(Math.max(2, Math.round(area.width / 110)), xLabel)) {
      const at = area.left + area.width * tick.place;
      if (at < area.left - 1 || at > area.left + area.width + 1) continue;
      context.textAlign = at > area.left + area.width - 20 ? "right" : at < area.left + 12 ? "left" : "center";
      context.fillText(tick.label, at, area.top + area.height + 6);
    }
    context.textAlign = "right";
    if (xName) context.fillText(xName, area.left + area.width, area.top + area.height + 22);
  }

  /** Restricts drawing to the area of the plot. */
  clipped(context, area, paint) {
    context.save();
    context.beginPath();
    context.rect(area.left, area.top - 4, area.width, area.height + 8);
    context.clip();
    paint();
    context.restore();
  }

  /** Shows lines of text at a place. */
  show(lines, left, top) {
    this.tip.replaceChildren(...lines.map((line) => {
      if (typeof line === "string") return h("div", {}, line);
      const swatch = h("i", { class: "swatch" });
      if (line.colour) swatch.style.background = colour(line.colour);
      return h("div", { class: "entry" }, line.colour ? swatch : "", h("span", {}, line.name), h("b", {}, line.value));
    }));
    this.tip.hidden = false;
    const [width, height] = [this.tip.offsetWidth, this.tip.offsetHeight];
    const room = this.box.clientWidth;
    const at = left + 14 + width > room ? Math.max(0, left - 14 - width) : left + 14;
    this.tip.style.left = `${at}px`;
    this.tip.style.top = `${Math.max(0, Math.min(top - height / 2, this.height - height))}px`;
  }

  leave() {
    this.tip.hidden = true;
    this.context(this.over);
  }

  move(event) {
    const box = this.box.getBoundingClientRect();
    this.hover(event.clientX - box.left, event.clientY - box.top);
  }

  hover() {}

  key() {}
}

/** Exponential moving average of values, with nulls left out. */
export function smoothed(values, weight) {
  if (!weight) return values;
  let mean = 0;
  let norm = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return mean / norm;
  });
}

/** Curves over steps. */
export class LineChart extends Plot {
  constructor({ xName = "step", format = number, onZoom = null, ...rest }) {
    super({
      hint: "Arrow keys move the cursor, plus and minus zoom, 0 shows everything.",
      table: () => this.table(),
      ...rest,
    });
    Object.assign(this, { xName, format, onZoom, lines: [], marks: [], reference: null, log: false, smooth: 0, range: null, cursor: null, hiddenLines: new Set() });
    this.box.addEventListener("pointerdown", (event) => this.begin(event));
    this.box.addEventListener("pointerup", (event) => this.end(event));
    this.box.addEventListener("dblclick", () => this.zoom(null));
  }

  /** Sets lines `{ label, colour, x, mean, low, high, dots, dashed, broken }` and draws. */
  set(changes) {
    Object.assign(this, changes);
    this.drawLegend();
    this.draw();
  }

  drawLegend() {
    const names = this.lines.map((line) => `${line.label}${line.colour}`).join("|");
    if (this.legend.dataset.names === names) return;
    this.legend.dataset.names = names;
    this.legend.replaceChildren(...this.lines.map((line) => {
      const swatch = h("i", { class: line.dashed ? "swatch dashed" : "swatch" });
      swatch.style.color = `var(${line.colour})`;
      const button = h("button", { class: "key", type: "button", "aria-pressed": String(!this.hiddenLines.has(line.label)) }, swatch, line.label);
      button.addEventListener("click", () => {
        const shown = !this.hiddenLines.delete(line.label);
        if (shown) this.hiddenLines.add(line.label);
        button.setAttribute("aria-pressed", String(!shown));
        this.draw();
      });
      return button;
    }));
  }

  get shown() {
    return this.lines.filter((line) => !this.hiddenLines.has(line.label) && line.x.length);
  }

  /** First and last step on the axis. */
  get extent() {
    if (this.range) return this.range;
    let [low, high] = [Infinity, -Infinity];
    for (const line of this.lines) {
      if (!line.x.length) continue;
      low = Math.min(low, line.x[0]);
      high = Math.max(high, line.x[line.x.length - 1]);
    }
    return low <= high ? [Math.min(low, 0), Math.max(high, low + 1)] : [0, 1];
  }

  paint(context, area) {
    const shown = this.shown;
    const [from, to] = this.extent;
    const values = [];
    for (const line of shown) {
      line.drawn = smoothed(line.mean, line.dots || line.exact ? 0 : this.smooth);
      for (let i = 0; i < line.x.length; i++) {
        if (line.x[i] < from || line.x[i] > to) continue;
        if (this.smooth || line.dots || !line.low) values.push(line.drawn[i]);
        else values.push(line.low[i], line.high[i]);
      }
    }
    if (this.reference && !this.log) values.push(this.reference.value);
    this.x = new Scale(from, to);
    this.y = Scale.around(values, this.log);
    if (!this.log && this.top !== undefined && this.y.high > this.top) this.y.high = this.top;
    this.axes(context, area, this.x, this.y, { xName: this.xName, yLabel: this.tickFormat ?? null });
    const X = (value) => area.left + area.width * this.x.place(value);
    const Y = (value) => area.top + area.height * (1 - this.y.place(value));
    this.clipped(context, area, () => {
      for (const mark of this.marks) this.paintMark(context, area, X, mark);
      if (this.reference) {
        context.strokeStyle = colour("--quiet");
        context.setLineDash([2, 4]);
        this.path(context, [X(from), X(to)], [Y(this.reference.value), Y(this.reference.value)]);
        context.setLineDash([]);
        context.fillStyle = colour("--quiet");
        context.textAlign = "right";
        context.textBaseline = "bottom";
        context.fillText(this.reference.label, area.left + area.width - 4, Y(this.reference.value) - 2);
      }
      for (const line of shown) this.paintLine(context, area, X, Y, line);
    });
    this.paintNumbers(context, area, X);
    if (!shown.length) {
      context.fillStyle = colour("--quiet");
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(this.empty ?? "No values yet.", area.left + area.width / 2, area.top + area.height / 2);
    }
    this.box.setAttribute("aria-label", `${this.title.textContent}. ${this.described()} Arrow keys move the cursor, plus and minus zoom, 0 shows everything.`);
  }

  described() {
    return this.shown.map((line) => {
      const known = line.mean.filter((value) => value !== null);
      return known.length ? `${capital(line.label)}: from ${this.format(known[0])} to ${this.format(known[known.length - 1])}.` : "";
    }).join(" ");
  }

  paintLine(context, area, X, Y, line) {
    const tint = colour(line.colour);
    context.lineJoin = "round";
    if (line.low && !line.dots) {
      // The range of the steps behind each point.
      context.fillStyle = tint;
      context.globalAlpha = 0.18;
      context.beginPath();
      line.x.forEach((x, i) => context[i ? "lineTo" : "moveTo"](X(x), Y(line.high[i])));
      for (let i = line.x.length - 1; i >= 0; i--) context.lineTo(X(line.x[i]), Y(line.low[i]));
      context.fill();
      context.globalAlpha = 1;
    }
    context.strokeStyle = tint;
    context.lineWidth = line.thin ? 1.25 : 2;
    context.setLineDash(line.dashed ? [6, 4] : []);
    this.path(context, line.x.map(X), line.drawn.map((value) => (value === null ? null : Y(value))));
    context.setLineDash([]);
    if (line.dots && line.x.length <= 80) {
      context.fillStyle = tint;
      line.x.forEach((x, i) => {
        if (line.drawn[i] === null) return;
        context.beginPath();
        context.arc(X(x), Y(line.drawn[i]), 3, 0, 7);
        context.fill();
      });
    }
    context.fillStyle = tint;
    context.font = context.font.replace(/^\S*/, "14px");
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const step of line.broken ?? []) context.fillText("×", X(step), area.top);
    context.font = context.font.replace(/^\S*/, "12px");
  }

  path(context, xs, ys) {
    context.beginPath();
    let pen = "moveTo";
    for (let i = 0; i < xs.length; i++) {
      if (ys[i] === null) pen = "moveTo";
      else {
        context[pen](xs[i], ys[i]);
        pen = "lineTo";
      }
    }
    context.stroke();
  }

  paintMark(context, area, X, mark) {
    context.fillStyle = colour("--mark");
    context.globalAlpha = 0.1;
    context.fillRect(X(mark.since), area.top, X(mark.at) - X(mark.since), area.height);
    context.globalAlpha = 1;
    context.strokeStyle = colour("--mark");
    context.setLineDash([4, 3]);
    this.path(context, [X(mark.at), X(mark.at)], [area.top, area.top + area.height]);
    context.setLineDash([]);
  }

  /** Numbers of findings above the plot. */
  paintNumbers(context, area, X) {
    context.textAlign = "center";
    context.textBaseline = "middle";
    let last = -Infinity;
    for (const mark of this.marks) {
      const x = X(mark.at);
      if (x < area.left - 1 || x > area.left + area.width + 1 || x - last < 18) continue;
      last = x;
      context.fillStyle = colour("--mark");
      context.beginPath();
      context.arc(x, area.top - 10, 9, 0, 7);
      context.fill();
      context.fillStyle = colour("--paper");
      context.fillText(mark.number, x, area.top - 9.5);
    }
  }

  begin(event) {
    if (!this.onZoom || event.button) return;
    this.dragged = this.inside(event);
    this.box.setPointerCapture(event.pointerId);
  }

  inside(event) {
    const area = this.area;
    const x = event.clientX - this.box.getBoundingClientRect().left - area.left;
    return Math.min(1, Math.max(0, x / area.width));
  }

  end(event) {
    if (this.dragged === undefined || this.dragged === null) return;
    const [a, b] = [this.dragged, this.inside(event)].sort((x, y) => x - y);
    this.dragged = null;
    if ((b - a) * this.area.width < 6) return;
    this.zoom([Math.round(this.x.at(a)), Math.round(this.x.at(b))]);
  }

  zoom(range) {
    if (range && range[1] - range[0] < 2) range = [range[0], range[0] + 2];
    this.onZoom?.(range);
  }

  hover(left, top) {
    const area = this.area;
    if (!this.x || left < area.left - 8 || left > area.left + area.width + 8) return this.leave();
    this.cursor = this.x.at((left - area.left) / area.width);
    this.point(this.cursor, left, top);
  }

  /** Shows the values next to a step. */
  point(step, left, top) {
    const area = this.area;
    const context = this.context(this.over);
    if (this.dragged !== undefined && this.dragged !== null) {
      const from = area.left + area.width * this.dragged;
      context.fillStyle = colour("--link");
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(from, left), area.top, Math.abs(left - from), area.height);
      context.globalAlpha = 1;
    }
    const entries = [];
    let nearest = null;
    for (const line of this.shown) {
      const i = closest(line.x, step);
      const value = line.drawn?.[i] ?? null;
      if (value === null) continue;
      if (nearest === null || Math.abs(line.x[i] - step) < Math.abs(nearest - step)) nearest = line.x[i];
      const range = line.low && !line.dots && line.high[i] > line.low[i] ? ` (${this.format(line.low[i])} to ${this.format(line.high[i])})` : "";
      entries.push({ name: line.label, value: this.format(value) + range, colour: line.colour, x: line.x[i], y: value });
    }
    if (nearest === null) return this.leave();
    const x = area.left + area.width * this.x.place(nearest);
    context.strokeStyle = colour("--quiet");
    context.lineWidth = 1;
    this.path(context, [x, x], [area.top, area.top + area.height]);
    for (const entry of entries) {
      const [at, y] = [area.left + area.width * this.x.place(entry.x), area.top + area.height * (1 - this.y.place(entry.y))];
      if (y < area.top - 4 || y > area.top + area.height + 4) continue;
      context.fillStyle = colour(entry.colour);
      context.beginPath();
      context.arc(at, y, 4, 0, 7);
      context.fill();
    }
    const marks = this.marks.filter((mark) => Math.abs(this.x.place(mark.at) - this.x.place(nearest)) < 0.01);
    const titles = marks.map((mark) => `Finding ${mark.number}: ${mark.title}`);
    this.show([`${capital(this.xName)} ${count(Math.round(nearest))}`, ...titles, ...entries], x, top);
  }

  key(event) {
    const [from, to] = this.extent;
    const width = to - from;
    const middle = this.cursor ?? (from + to) / 2;
    const moves = { ArrowLeft: -width / 50, ArrowRight: width / 50 };
    if (event.key in moves) {
      this.cursor = Math.min(to, Math.max(from, middle + moves[event.key]));
      this.point(this.cursor, 0, this.height / 2);
    } else if (event.key === "+" || event.key === "=") {
      this.zoom([Math.max(0, Math.round(middle - width / 4)), Math.round(middle + width / 4)]);
    } else if (event.key === "-") {
      this.zoom([Math.max(0, Math.round(middle - width)), Math.round(middle + width)]);
    } else if (event.key === "0" || event.key === "Escape") {
      this.zoom(null);
    } else return;
    event.preventDefault();
  }

  table() {
    const steps = [...new Set(this.shown.flatMap((line) => line.x))].sort((a, b) => a - b);
    const every = Math.ceil(steps.length / 200);
    const rows = steps.filter((_, i) => i % every === 0).map((step) => [
      count(Math.round(step)),
      ...this.shown.map((line) => this.format(line.drawn[closest(line.x, step)])),
    ]);
    return { columns: [capital(this.xName), ...this.shown.map((line) => capital(line.label))], rows };
  }
}

/** Index of the value closest to `wanted` in a sorted list. */
export function closest(sorted, wanted) {
  let [low, high] = [0, sorted.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < wanted) low = middle;
    else high = middle;
  }
  return Math.abs(sorted[low] - wanted) <= Math.abs(sorted[high] - wanted) ? low : high;
}
