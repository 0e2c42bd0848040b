// The lists of runs and studies, curves of selected runs, and the difference of two plans.

import { LineChart } from "./chart.js";
import { capital, count, date, get, h, lineColour, metric, metricName, number, spark, time } from "./dom.js";
import { DataTable } from "./table.js";

const STATES = ["complete", "paused", "pruned", "failed"];
const STATUSES = ["running", "normal", "repaired", "problem", "failed", "pruned", "unfinished", "damaged"];
const CLASSES = { normal: "good", repaired: "good", problem: "bad", failed: "bad", damaged: "bad", running: "live" };

// Kept while other pages are open.
const kept = { runs: new Map(), revision: 0, text: "", status: null, selected: new Set(), columns: null };

export function runLink(id) {
  return `#/run?${new URLSearchParams({ id })}`;
}

export class RunsPage {
  constructor(root) {
    this.title = "Runs";
    this.notes = h("div", { class: "notes" });
    this.studies = h("section", { hidden: true });
    this.search = h("input", { type: "search", placeholder: "Filter by name, program, tag or problem", "aria-label": "Filter runs", value: kept.text });
    this.search.addEventListener("input", () => {
      kept.text = this.search.value;
      this.table.setFilter(this.matching());
    });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by status" });
    this.table = new DataTable({
      label: "Runs", columns: kept.columns ?? (kept.columns = columns(() => this.select())), sort: "started", descending: true,
      onPick: (row) => (location.hash = runLink(row.id)), height: Math.max(480, innerHeight - 160),
      empty: "No run matches.",
    });
    this.picked = h("div", { class: "picked-bar", role: "status" });
    this.overlay = new Overlay();
    this.diff = h("div", {});
    this.runs = h("section", { id: "runs" }, h("h1", {}, "Runs"),
      h("div", { class: "tools" }, this.search, this.chips, this.table.menu()),
      this.picked, this.overlay.element, this.diff, this.table.element);
    root.replaceChildren(this.notes, this.studies, this.runs);
    this.drawSelection();
  }

  get source() {
    return {};
  }

  async update() {
    const data = await get("api/runs", { since: kept.revision });
    // After a restart of the server the numbers start over.
    if (data.revision < kept.revision) {
      kept.runs.clear();
      kept.revision = 0;
      return this.update();
    }
    kept.revision = data.revision;
    for (const row of data.runs) kept.runs.set(row.id, row);
    for (const id of data.gone) {
      kept.runs.delete(id);
      kept.selected.delete(id);
    }
    const waiting = data.waiting ? [`${count(data.waiting)} more ${data.waiting === 1 ? "run is" : "runs are"} being read.`] : [];
    this.notes.replaceChildren(...[...data.notes, ...waiting].map((note) => h("p", { class: "notice", role: "status" }, note)));
    this.drawStudies(data.studies);
    if (data.runs.length || data.gone.length || !this.isDrawn) {
      this.isDrawn = true;
      this.drawChips();
      this.table.empty = kept.runs.size ? "No run matches." : "No runs yet. They appear here as soon as a training starts.";
      this.table.set([...kept.runs.values()], this.matching());
      if (data.runs.some((row) => kept.selected.has(row.id))) this.overlay.update(this.selection());
    }
  }

  fail(message) {
    this.notes.replaceChildren(h("p", { class: "notice", role: "alert" }, `The list cannot be read: ${message}.`));
  }

  drawChips() {
    const counts = new Map();
    for (const row of kept.runs.values()) counts.set(row.status, (counts.get(row.status) ?? 0) + 1);
    const chip = (status, label, amount) => {
      const button = h("button", { type: "button", class: "chip", "aria-pressed": String(kept.status === status) }, label, h("span", { class: "amount" }, count(amount)));
      button.addEventListener("click", () => {
        kept.status = kept.status === status ? null : status;
        this.drawChips();
        this.table.setFilter(this.matching());
      });
      return button;
    };
    this.chips.replaceChildren(chip(null, "all", kept.runs.size), ...STATUSES.filter((status) => counts.has(status)).map((status) => chip(status, status, counts.get(status))));
  }

  /** Selects runs by status and text. */
  matching() {
    const words = kept.text.toLowerCase().split(/\s+/).filter(Boolean);
    return (row) => {
      if (kept.status && row.status !== kept.status) return false;
      if (!words.length) return true;
      const text = [row.name, row.path, row.source, row.status, ...row.tags, ...row.problems, ...row.remedies].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    };
  }

  selection() {
    return [...kept.selected].map((id) => kept.runs.get(id)).filter(Boolean);
  }

  select() {
    this.diff.replaceChildren();
    this.drawSelection();
  }

  drawSelection() {
    const rows = this.selection();
    this.overlay.element.hidden = !rows.length;
    const clear = h("button", { type: "button" }, "Clear");
    clear.addEventListener("click", () => {
      kept.selected.clear();
      this.select();
      this.table.arrange();
    });
    const compare = h("button", { type: "button", disabled: rows.length !== 2 }, "Compare the plans of two runs");
    compare.addEventListener("click", () => this.compare(rows));
    this.picked.replaceChildren(...(rows.length ? [h("span", {}, `${rows.length} selected`), compare, clear] : []));
    if (rows.length) this.overlay.update(rows);
  }

  async compare([a, b]) {
    const [left, right] = await Promise.all([a, b].map((row) => get("api/run", { id: row.id })));
    const lines = difference(sourceLines(left.source), sourceLines(right.source));
    const changed = lines.some(([mark]) => mark !== " ");
    const tags = { "+": "ins", "-": "del", " ": "span" };
    this.diff.replaceChildren(
      h("h2", {}, `From ${a.name} to ${b.name}`),
      changed ? h("pre", { class: "diff", "aria-label": "Difference of the plans", tabindex: "0" }, lines.map(([mark, line]) => h(tags[mark], {}, `${mark}${line}\n`)))
        : h("p", { class: "quiet" }, "Both are the same."));
    this.diff.scrollIntoView({ block: "nearest" });
  }

  drawStudies(studies) {
    this.studies.hidden = !studies.length;
    const text = JSON.stringify(studies);
    if (!studies.length || text === this.studiesText) return;
    this.studiesText = text;
    const states = (study) => STATES.filter((state) => study[state]).map((state) => `${count(study[state])} ${state}`).join(", ");
    const card = (study) => h("a", { class: "card study-card", href: `#/study?${new URLSearchParams({ id: study.id })}` },
      h("h3", {}, study.name, study.running ? h("span", { class: "tag live" }, `${count(study.running)} running`) : ""),
      h("p", { class: "best" }, study.best === null ? "no result yet" : [h("b", {}, number(study.best)), ` best ${study.objective}`]),
      h("p", { class: "note" }, [`${count(study.trials)} trials`, states(study)].filter(Boolean).join(": ")),
      h("p", { class: "note path" }, study.store));
    this.studies.replaceChildren(h("h2", {}, "Studies"), h("div", { class: "cards" }, studies.map(card)));
  }

  close() {
    this.overlay.close();
  }
}

function columns(changed) {
  return [
    { id: "select", label: "", value: (row) => kept.selected.has(row.id), cell: (row) => {
      const box = h("input", { type: "checkbox", "aria-label": `Select ${row.name}`, "data-key": `select ${row.id}` });
      box.checked = kept.selected.has(row.id);
      box.addEventListener("change", () => {
        if (box.checked) kept.selected.add(row.id);
        else kept.selected.delete(row.id);
        changed();
      });
      return h("label", { class: "pick" }, box);
    } },
    { id: "name", label: "Run", head: true, value: (row) => row.name, cell: (row) => h("a", { href: runLink(row.id), title: row.path, "data-key": row.id }, row.name) },
    { id: "status", label: "Status", value: (row) => STATUSES.indexOf(row.status), cell: (row) => h("span", { class: `tag ${CLASSES[row.status] ?? ""}`, title: row.error }, row.status) },
    { id: "metric", label: "Metric", figure: true, value: (row) => row.metric, cell: (row) => h("span", { title: metricName(row.metric_name) }, metric(row.metric_name, row.metric)) },
    { id: "loss", label: "Loss", figure: true, wide: true, value: (row) => row.loss, cell: (row) => number(row.loss) },
    { id: "curve", label: "Loss curve", class: "curve-cell", value: (row) => row.spark.at(-1), cell: (row) => spark(row.spark, `Loss of ${row.name}, now ${number(row.loss)}`) },
    { id: "findings", label: "Findings", wide: true, value: (row) => row.problems.join() || (row.error ? "!" : "~"), cell: (row) => row.error ? h("span", { class: "error" }, row.error)
      : [row.problems.join(", ") || (row.warnings ? "" : "–"), row.warnings ? h("span", { class: "quiet" }, `${row.problems.length ? ", " : ""}${row.warnings} ${row.warnings === 1 ? "warning" : "warnings"}`) : ""] },
    { id: "progress", label: "Steps", figure: true, wide: true, value: (row) => row.step, cell: (row) => count(row.step) + (row.planned && row.step < row.planned ? ` of ${count(row.planned)}` : "") },
    { id: "seconds", label: "Duration", figure: true, wide: true, value: (row) => row.seconds, cell: (row) => time(row.seconds) },
    { id: "source", label: "Program or plan", wide: true, class: "clip", value: (row) => row.source, cell: (row) => h("span", { title: row.source }, row.source) },
    { id: "tags", label: "Tags", wide: true, value: (row) => row.tags.join(), cell: (row) => row.tags.map((tag) => h("span", { class: "tag" }, tag)) },
    { id: "started", label: "Started", wide: true, figure: true, value: (row) => row.started, cell: (row) => date(row.started) },
    { id: "rate", label: "Steps/s", wide: true, hidden: true, figure: true, value: (row) => row.rate, cell: (row) => number(row.rate) },
    { id: "remedies", label: "Remedies", wide: true, hidden: true, value: (row) => row.remedies.join(), cell: (row) => row.remedies.join(", ") || "–" },
    { id: "device", label: "Device", wide: true, hidden: true, value: (row) => row.device, cell: (row) => row.device },
  ];
}

/** Curves of the selected runs in one chart. */
class Overlay {
  constructor() {
    this.rows = [];
    this.data = new Map();
    this.range = null;
    this.chart = new LineChart({ title: "Loss of the selected runs", height: 300, onZoom: (range) => this.zoom(range) });
    this.what = h("select", { "aria-label": "Quantity" }, [["loss", "training loss"], ["metric", "training metric"], ["validation", "validation metric"], ["validation_loss", "validation loss"], ["learning_rate", "learning rate"]].map(([value, label]) => h("option", { value }, label)));
    this.what.addEventListener("change", () => this.draw());
    this.tools = chartTools(this.chart, () => this.zoom(null), 0);
    this.element = h("div", { class: "overlay", hidden: true }, h("div", { class: "tools" }, h("label", {}, "Show ", this.what), this.tools), this.chart.figure);
  }

  async update(rows) {
    this.rows = rows.slice(0, 24);
    const version = (this.version = (this.version ?? 0) + 1);
    const [from, to] = this.range ?? [null, null];
    const read = this.rows.map(async (row) => {
      const known = this.data.get(row.id);
      const key = `${row.revision} ${from} ${to}`;
      if (known?.key === key) return;
      const [series, page] = await Promise.all([
        get("api/series", { id: row.id, from, to, buckets: 600 }),
        get("api/run", { id: row.id }),
      ]);
      this.data.set(row.id, { key, series, evaluations: page.evaluations, metric: page.metric });
    });
    await Promise.allSettled(read);
    if (version === this.version) this.draw();
  }

  draw() {
    const what = this.what.value;
    const lines = this.rows.flatMap((row, i) => {
      const data = this.data.get(row.id);
      if (!data) return [];
      const base = { label: row.name, colour: lineColour(i), dashed: i >= 8 };
      if (what.startsWith("validation")) {
        const all = data.evaluations.validation.length ? data.evaluations.validation : data.evaluations.train;
        return [{ ...base, x: all.map((each) => each[0]), mean: all.map((each) => each[what === "validation" ? 2 : 1]), dots: true }];
      }
      return [{ ...base, ...data.series[what], x: data.series[what].x, thin: true }];
    });
    const isMetric = what === "metric" || what === "validation";
    const name = this.rows.map((row) => this.data.get(row.id)?.metric).find(Boolean) ?? "";
    this.chart.format = (value) => (isMetric ? metric(name, value) : number(value));
    this.chart.setTitle(`${capital(this.what.selectedOptions[0].textContent)} of ${this.rows.length === 1 ? "the selected run" : `${this.rows.length} selected runs`}`);
    this.chart.set({ lines, range: this.range });
  }

  zoom(range) {
    this.range = range;
    this.update(this.rows);
  }

  close() {
    this.chart.close();
  }
}

/** Logarithmic axis, smoothing and a button that shows everything. */
export function chartTools(charts, reset, smooth = 0.6) {
  const all = [charts].flat();
  const log = h("input", { type: "checkbox" });
  log.addEventListener("change", () => all.forEach((chart) => chart.isFixed || chart.set({ log: log.checked })));
  const slider = h("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: String(smooth), "aria-label": "Smoothing" });
  slider.addEventListener("input", () => all.forEach((chart) => chart.set({ smooth: Number(slider.value) })));
  all.forEach((chart) => (chart.smooth = smooth));
  const button = h("button", { type: "button" }, "Show everything");
  button.addEventListener("click", reset);
  return h("div", { class: "chart-tools" }, h("label", {}, log, " Log scale"), h("label", {}, "Smoothing ", slider), button);
}

/** The lines of a plan, or of the description of a program. */
function sourceLines(source) {
  try {
    return JSON.stringify(JSON.parse(source), null, 2).split("\n");
  } catch {
    return source.split("\n");
  }
}

/** Lines with "+", "-" or " " in front: the shortest difference. */
export function difference(a, b) {
  const most = 2000;
  [a, b] = [a.slice(0, most), b.slice(0, most)];
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push([" ", a[i++], j++]);
    else if (j >= b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) lines.push(["-", a[i++]]);
    else lines.push(["+", b[j++]]);
  }
  return lines;
}
