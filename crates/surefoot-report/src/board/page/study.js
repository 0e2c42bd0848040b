// The page of a study.

import { count, get, h, number, setMarkup, time } from "./dom.js";
import { Parallel } from "./parallel.js";
import { runLink } from "./runs.js";
import { DataTable } from "./table.js";
import { Curves, FixedScale, Scatter, Timeline, status } from "./trials.js";

const SLICES = 12;

export class StudyPage {
  constructor(root, id) {
    this.id = id;
    this.title = "Study";
    this.revision = 0;
    this.trials = [];
    this.slices = new Map();
    const pick = (trial) => this.openRun(trial);
    this.pick = pick;
    this.history = new Scatter({ title: "Optimization history", height: 280, best: true, onPick: pick, column: [], place: (trial, x) => x.place(trial.number) });
    this.curves = new Curves({ onPick: pick });
    this.parallel = new Parallel({ onBrush: (inside) => this.brush(inside) });
    this.timeline = new Timeline({ onPick: pick });
    this.parts = Object.fromEntries(["summary", "importance", "ended", "study"].map((name) => [name, h("div", { class: `part-${name}` })]));
    this.problem = h("div");
    this.note = h("p", { class: "note" });
    this.parallelNote = h("p", { class: "note" });
    this.selected = h("p", { class: "picked-bar", role: "status" });
    this.grid = h("div", { class: "slices" });
    this.search = h("input", { type: "search", placeholder: "Filter trials by number, state or reason", "aria-label": "Filter trials" });
    this.search.addEventListener("input", () => this.filter());
    this.tableBox = h("section", { id: "trials" }, h("h2", {}, "Trials"));
    const download = h("a", { class: "button", href: `report?${new URLSearchParams({ study: id })}`, download: true }, "Download report");
    root.replaceChildren(
      h("nav", { "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Runs and studies")),
      this.problem, h("div", { class: "headline" }, this.parts.summary, download),
      h("section", {}, h("h2", {}, "Optimization history"), this.history.figure),
      h("section", {}, h("h2", {}, "Learning curves"), this.curves.figure, this.note),
      this.parts.importance,
      h("section", { id: "parallel" }, h("h2", {}, "Parallel coordinates"),
        h("p", { class: "quiet" }, "Each line is a trial. Drag along an axis to select trials; the table and the other charts follow."),
        this.selected, this.parallel.figure, this.parallelNote),
      h("section", {}, h("h2", {}, "Slices"), this.grid),
      h("section", {}, h("h2", {}, "Timeline"), this.timeline.figure),
      this.tableBox, this.parts.ended, this.parts.study);
  }

  get source() {
    return { study: this.id };
  }

  async update() {
    const data = await get("api/study", { id: this.id, since: this.revision });
    this.title = data.name;
    const study = { objective: data.objective, better: data.better, maximize: data.maximize, count: 0 };
    if (data.whole) this.trials = [];
    this.merge(data.trials);
    study.count = this.trials.length;
    Object.assign(this, { study, data, revision: data.revision });
    for (const [name, part] of Object.entries(this.parts)) setMarkup(part, data.html[name]);
    this.parts.summary.querySelector(".eyebrow")?.remove();
    this.draw();
  }

  /** Takes over the trials that changed. */
  merge(columns) {
    const names = ["number", "state", "value", "counts", "epochs", "planned", "seconds", "why", "run", "attempts"];
    columns.number.forEach((number, i) => {
      const trial = { points: columns.points.map((column) => column[i]), places: columns.places.map((column) => column[i]) };
      for (const name of names) trial[name] = columns[name][i];
      this.trials[number] = trial;
    });
  }

  draw() {
    const { study, data, trials, inside } = this;
    const scale = new FixedScale(data.scale);
    this.history.set({ study, trials, y: scale, inside });
    const lines = data.curves.lines.filter(([number]) => trials[number]).map(([number, points]) => [trials[number], points]);
    this.curves.set({ study, lines, scale: data.curves.scale, epochs: data.epochs, best: data.best_trial, inside });
    this.note.textContent = [data.curves.note, "Hover over a curve to see its trial and why it ended."].filter(Boolean).join(" ");
    this.parallel.set({ study, trials, axes: data.axes, scale, order: data.html.order });
    this.parallelNote.textContent = this.parallel.note;
    this.drawSlices(scale);
    if (trials.some((trial) => trial.attempts.length)) this.timeline.set({ study, trials });
    this.drawTable();
  }

  drawSlices(scale) {
    const { study, data, trials, inside } = this;
    const shown = data.html.order.slice(0, SLICES);
    for (const index of shown) {
      let slice = this.slices.get(index);
      if (!slice) {
        const axis = data.axes[index];
        slice = new Scatter({
          title: axis.name, height: 190, margin: { left: 48, bottom: 26 }, onPick: this.pick,
          place: (trial) => trial.places[index], column: [[axis.name, (trial) => number(trial.points[index])]],
        });
        this.slices.set(index, slice);
      }
      slice.set({ study, trials, y: scale, axis: data.axes[index], inside });
    }
    const figures = shown.map((index) => this.slices.get(index).figure);
    if (figures.some((figure, i) => this.grid.children[i] !== figure)) this.grid.replaceChildren(...figures);
  }

  drawTable() {
    const { study, data } = this;
    if (!this.table) {
      const columns = [
        { id: "number", label: "Trial", head: true, figure: true, value: (trial) => trial.number, cell: (trial) => this.link(trial) },
        { id: "state", label: "State", value: (trial) => trial.state, cell: (trial) => h("span", { class: `tag outcome ${status(trial.state)}` }, trial.state) },
        { id: "value", label: study.objective, figure: true, value: (trial) => trial.value, cell: (trial) => number(trial.value) },
        { id: "epochs", label: "Epochs", figure: true, wide: true, value: (trial) => trial.epochs, cell: (trial) => (trial.planned ? `${trial.epochs} of ${trial.planned}` : String(trial.epochs)) },
        ...data.axes.map((axis, i) => ({
          id: `p${i}`, label: axis.name, figure: data.trials.points[i].some((value) => typeof value === "number"), wide: i > 0,
          value: (trial) => trial.points[i], cell: (trial) => number(trial.points[i]),
        })),
        { id: "seconds", label: "Time", figure: true, wide: true, value: (trial) => trial.seconds, cell: (trial) => time(trial.seconds) },
        { id: "why", label: "Why it ended", wide: true, class: "clip", value: (trial) => trial.why, cell: (trial) => h("span", { title: trial.why }, trial.why ?? "") },
      ];
      this.table = new DataTable({ label: "Trials", columns, sort: "value", descending: study.maximize, height: 560, empty: "No trial matches." });
      this.tableBox.append(h("div", { class: "tools" }, this.search, this.table.menu()), this.table.element);
    }
    this.filter(this.trials);
  }

  link(trial) {
    if (!trial.run) return count(trial.number);
    const link = h("a", { href: "#", "data-key": String(trial.number) }, count(trial.number));
    link.addEventListener("click", (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.openRun(trial);
    });
    return link;
  }

  /** Selects rows of the table; with `rows`, the trials have changed. */
  filter(rows = null) {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (trial) => {
      if (this.inside && !this.inside(trial)) return false;
      if (!words.length) return true;
      const text = `${trial.number} ${trial.state} ${trial.why ?? ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    if (rows) this.table.set(rows, matches);
    else this.table.setFilter(matches);
  }

  brush(inside) {
    this.inside = inside;
    const chosen = inside ? this.trials.filter(inside) : [];
    const clear = h("button", { type: "button" }, "Clear the selection");
    clear.addEventListener("click", () => this.parallel.clear());
    const sign = this.study.maximize ? -1 : 1;
    const best = chosen.filter((trial) => trial.value !== null).sort((a, b) => sign * (a.value - b.value))[0];
    this.selected.replaceChildren(...(inside ? [h("span", {}, `${count(chosen.length)} of ${count(this.trials.length)} trials selected${best ? `, best ${number(best.value)}` : ""}`), clear] : []));
    // The charts follow when the browser is idle, so that the selection stays smooth.
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.filter();
      for (const chart of [this.history, this.curves, ...this.slices.values()]) {
        chart.inside = inside;
        chart.draw();
      }
    });
  }

  async openRun(trial) {
    try {
      const { id } = await get("api/trial", { id: this.id, number: trial.number });
      location.hash = runLink(id);
    } catch (error) {
      this.fail(`the run of trial ${trial.number} cannot be opened: ${error.message}`, true);
    }
  }

  fail(message, isWhole = false) {
    this.problem.replaceChildren(h("p", { class: "notice", role: "alert" }, isWhole ? message.charAt(0).toUpperCase() + message.slice(1) : `This study cannot be read: ${message}.`));
    this.problem.scrollIntoView({ block: "nearest" });
  }

  recover() {
    this.problem.replaceChildren();
  }

  close() {
    [this.history, this.curves, this.parallel, this.timeline, ...this.slices.values()].forEach((chart) => chart.close());
  }
}
