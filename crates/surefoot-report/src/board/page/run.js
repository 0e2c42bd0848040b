// The page of a run.

import { LineChart } from "./chart.js";
import { capital, count, get, h, lineColour, metric, metricName, number, setMarkup, setText, time } from "./dom.js";
import { HeatMap } from "./heat.js";
import { chartTools, runLink } from "./runs.js";

const QUANTITIES = [["gradients", "Gradients"], ["weights", "Weights"], ["outputs", "Outputs"], ["update_ratios", "Update ratios"], ["dead_units", "Dead units"]];

export class RunPage {
  constructor(root, id) {
    this.id = id;
    this.range = null;
    this.quantity = "gradients";
    this.attempts = new Map();
    const zoom = (range) => this.zoom(range);
    this.loss = new LineChart({ title: "Loss (lower is better)", height: 300, margin: { top: 24 }, onZoom: zoom });
    this.metric = new LineChart({ title: "Metric", height: 240, margin: { top: 24 }, onZoom: zoom });
    this.rate = new LineChart({ title: "Learning rate", height: 150, onZoom: zoom });
    this.metric.isFixed = true;
    this.rate.isFixed = true;
    this.heat = new HeatMap({ onZoom: zoom });
    this.name = h("h1");
    this.progress = h("div", { class: "progress" });
    this.summary = h("div");
    this.findings = h("div");
    this.ledger = h("div");
    this.reproduction = h("div");
    this.problem = h("div");
    this.grid = h("div", { class: "side-by-side" });
    this.beside = h("section", { hidden: true }, h("h2", {}, "Attempts side by side"), this.grid);
    const choose = h("div", { class: "segmented", role: "group", "aria-label": "Quantity of layers" }, QUANTITIES.map(([value, label]) => {
      const button = h("button", { type: "button", "aria-pressed": String(value === this.quantity) }, label);
      button.addEventListener("click", () => {
        this.quantity = value;
        for (const other of choose.children) other.setAttribute("aria-pressed", String(other === button));
        this.curves();
      });
      return button;
    }));
    this.layers = h("section", {}, h("h2", {}, "Layers"), choose,
      h("p", { class: "quiet", hidden: true }, "Layers were not observed in this run."), this.heat.figure);
    const download = h("a", { class: "button", href: `report?${new URLSearchParams({ id })}`, download: true }, "Download report");
    root.replaceChildren(
      h("nav", { "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Runs")),
      h("div", { class: "headline" }, this.name, download), this.problem, this.progress, this.summary,
      h("section", {}, h("h2", {}, "Training curves"), chartTools([this.loss, this.metric, this.rate], () => this.zoom(null)),
        this.loss.figure, this.metric.figure, this.rate.figure,
        h("p", { class: "note" }, "Drag over a chart to zoom, double-click to show everything. The shaded band is the range of the single steps; × marks NaN or infinite values.")),
      this.layers, this.findings, this.beside, this.ledger, this.reproduction);
  }

  get source() {
    return { run: this.id };
  }

  async update() {
    const data = await get("api/run", { id: this.id });
    this.data = data;
    this.title = data.name;
    this.name.replaceChildren(data.name, " ", h("span", { class: `tag ${data.running ? "live" : data.class}` }, data.status), ...data.tags.map((tag) => h("span", { class: "tag" }, tag)));
    setMarkup(this.summary, data.html.summary);
    setMarkup(this.findings, data.html.findings);
    setMarkup(this.ledger, data.html.attempts);
    setMarkup(this.reproduction, data.html.reproduction);
    this.drawProgress(data);
    await Promise.all([this.curves(), this.drawAttempts(data)]);
  }

  drawProgress(data) {
    const share = data.planned ? Math.min(1, data.step / data.planned) : null;
    const parts = [data.planned ? `Step ${count(data.step)} of ${count(data.planned)}` : `Step ${count(data.step)}`];
    if (data.rate) parts.push(`${number(data.rate)} steps per second`);
    if (data.left !== null) parts.push(`about ${time(data.left)} left`);
    if (data.loading) parts.push("reading the record…");
    const bar = share === null ? "" : h("progress", { value: String(share), max: "1", "aria-label": "Progress" });
    if (!this.progressText) this.progress.replaceChildren(this.progressBar = h("span"), this.progressText = h("span"));
    this.progressBar.replaceChildren(bar);
    setText(this.progressText, parts.join(" · "));
  }

  zoom(range) {
    this.range = range;
    this.curves();
  }

  /** Reads the curves of the visible part and draws them. */
  async curves() {
    const version = (this.version = (this.version ?? 0) + 1);
    const [from, to] = this.range ?? [null, null];
    const buckets = Math.max(200, Math.min(1200, this.loss.box.clientWidth || 800));
    const series = await get("api/series", { id: this.id, from, to, buckets, layers: 1, heat: this.data.layers ? this.quantity : null });
    if (version !== this.version) return;
    const { evaluations, marks, metric: name, chance } = this.data;
    const evaluated = (split, column, label, colour) => {
      const all = evaluations[split].filter((each) => each[column] !== undefined);
      return { label, colour, dots: true, x: all.map((each) => each[0]), mean: all.map((each) => each[column]) };
    };
    const some = (lines) => lines.filter((line) => line.mean.some((value) => value !== null) || line.broken?.length);
    this.loss.set({ range: this.range, marks, lines: some([
      { label: "training", colour: "--given", ...series.loss },
      evaluated("validation", 1, "validation", "--delivered"), evaluated("test", 1, "test", "--mark")]) });
    this.metric.format = (value) => metric(name, value);
    this.metric.tickFormat = name === "accuracy" ? (value, step) => `${(value * 100).toFixed(step < 0.0099 ? 1 : 0)}%` : null;
    this.metric.top = name === "accuracy" || name === "r2" ? 1 : undefined;
    this.metric.setTitle(capital(metricName(name)));
    const lines = some([
      { label: "training", colour: "--given", ...series.metric },
      evaluated("train", 2, "training split", "--line-2"), evaluated("validation", 2, "validation", "--delivered"), evaluated("test", 2, "test", "--mark")]);
    this.metric.figure.hidden = !lines.length;
    this.metric.set({ range: this.range ?? this.loss.extent, marks, lines, reference: chance === null ? null : { value: chance, label: `guessing: ${metric(name, chance)}` } });
    this.rate.figure.hidden = !series.learning_rate.x.length;
    this.rate.set({ range: this.range ?? this.loss.extent, lines: [{ label: "learning rate", colour: "--line-2", exact: true, x: series.learning_rate.x, mean: series.learning_rate.high }] });
    this.layers.querySelector(".quiet").hidden = Boolean(series.heat);
    this.heat.figure.hidden = !series.heat;
    if (series.heat) this.heat.set(series.heat, marks, this.range);
  }

  /** One small chart per attempt, all over the same steps. */
  async drawAttempts({ attempts, metric: name }) {
    this.beside.hidden = !attempts.length;
    if (!attempts.length) return;
    const all = [{ id: this.id, number: 0, remedies: [], state: "plan as given", metric: null, delivered: false }, ...attempts];
    const read = all.map(async (attempt, i) => {
      let entry = this.attempts.get(attempt.number);
      if (!entry) {
        const chart = new LineChart({ title: attempt.number ? `Attempt ${attempt.number}` : "Plan as given", height: 170, margin: { left: 48 } });
        chart.smooth = 0.6;
        const state = h("p", { class: "note" });
        const title = attempt.number ? h("a", { href: runLink(attempt.id) }, `Attempt ${attempt.number}`) : "Plan as given";
        const cell = h("div", { class: "card" }, h("h3", {}, title, ...attempt.remedies.map((id) => h("span", { class: "tag" }, id))), state, chart.figure);
        chart.setTitle("Loss");
        entry = { chart, state, cell };
        this.attempts.set(attempt.number, entry);
        this.grid.append(cell);
      }
      const result = attempt.metric === null ? "" : `, ${metricName(name)} ${metric(name, attempt.metric)}`;
      setText(entry.state, `${attempt.delivered ? "delivered, " : ""}${attempt.state}${result}`);
      entry.cell.classList.toggle("is-delivered", attempt.delivered);
      if (entry.isOver) return;
      const series = await get("api/series", { id: attempt.id, buckets: 200 }).catch(() => null);
      entry.chart.empty = series ? undefined : "The record cannot be read.";
      if (!series) return;
      entry.isOver = attempt.state !== "running" && attempt.number > 0;
      entry.line = { label: "training", colour: lineColour(i), ...series.loss };
    });
    await Promise.all(read);
    const longest = Math.max(...[...this.attempts.values()].map((entry) => entry.line?.x.at(-1) ?? 1));
    for (const entry of this.attempts.values()) entry.chart.set({ lines: entry.line ? [entry.line] : [], range: [0, longest] });
  }

  /** Shows that the run can no longer be read; what was read stays. */
  fail(message) {
    this.problem.replaceChildren(h("p", { class: "notice", role: "alert" }, `This run cannot be read: ${message}.`));
  }

  recover() {
    this.problem.replaceChildren();
  }

  close() {
    [this.loss, this.metric, this.rate, this.heat, ...[...this.attempts.values()].map((entry) => entry.chart)].forEach((chart) => chart.close());
  }
}
