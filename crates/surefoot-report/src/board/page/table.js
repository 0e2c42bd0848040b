// A table that sorts, and draws only the rows in view.

import { count, h } from "./dom.js";

const ROW = 36;

/**
 * Columns are `{ id, label, value, cell, figure, wide, hidden }`: `value` gives what is sorted by, `cell` what is shown.
 * Columns that are `wide` are left out on narrow screens.
 */
export class DataTable {
  constructor({ label, columns, sort, descending = false, onPick = null, height = 0, empty }) {
    Object.assign(this, { columns, sort, descending, onPick, empty, rows: [], shown: [], picked: null });
    this.head = h("tr");
    this.body = h("tbody");
    this.table = h("table", { class: "data", "aria-label": label }, h("thead", {}, this.head), this.body);
    this.status = h("p", { class: "note", role: "status" });
    this.scroll = h("div", { class: "scroll data-scroll", tabindex: "0", role: "group", "aria-label": label }, this.table);
    if (height) this.scroll.style.maxHeight = `${height}px`;
    this.element = h("div", {}, this.scroll, this.status);
    this.scroll.addEventListener("scroll", () => this.drawRows());
    this.drawHead();
  }

  /** Sets the rows, and a function that selects some of them. */
  set(rows, filter = null) {
    this.rows = rows;
    this.filter = filter;
    this.sorted = null;
    this.arrange();
  }

  /** Selects other rows of the same list. */
  setFilter(filter) {
    this.filter = filter;
    this.arrange();
  }

  sortRows() {
    const column = this.columns.find((each) => each.id === this.sort) ?? this.columns[0];
    const sign = this.descending ? -1 : 1;
    const missing = (key) => key === null || key === undefined || Number.isNaN(key);
    const keyed = this.rows.map((row) => [column.value(row), row]);
    keyed.sort(([x], [y]) => {
      // Missing values are last either way.
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return x < y ? -sign : x > y ? sign : 0;
    });
    return keyed.map(([, row]) => row);
  }

  arrange() {
    this.sorted ??= this.sortRows();
    const shown = this.filter ? this.sorted.filter(this.filter) : this.sorted;
    this.shown = shown;
    this.table.setAttribute("aria-rowcount", shown.length + 1);
    this.status.textContent = shown.length < this.rows.length ? `${count(shown.length)} of ${count(this.rows.length)} shown.` : "";
    this.first = null;
    this.drawRows();
  }

  get visible() {
    return this.columns.filter((column) => !column.hidden);
  }

  drawHead() {
    this.head.replaceChildren(...this.visible.map((column) => {
      const isSorted = column.id === this.sort;
      const th = h("th", { scope: "col", class: classes(column), "aria-sort": isSorted ? (this.descending ? "descending" : "ascending") : null });
      if (!column.label) return th;
      const button = h("button", { type: "button" }, column.label, h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (this.descending ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => {
        this.descending = isSorted ? !this.descending : Boolean(column.figure);
        this.sort = column.id;
        this.sorted = null;
        this.drawHead();
        this.arrange();
        [...this.head.children].find((cell) => cell.getAttribute("aria-sort"))?.firstChild.focus();
      });
      th.append(button);
      return th;
    }));
  }

  drawRows() {
    const above = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 10);
    // Without a limit the whole table is in view.
    const room = this.scroll.style.maxHeight ? Math.ceil(parseFloat(this.scroll.style.maxHeight) / ROW) + 20 : Infinity;
    const first = room === Infinity ? 0 : above;
    const last = Math.min(this.shown.length, first + room);
    if (this.first === first && this.last === last) return;
    [this.first, this.last] = [first, last];
    const spacer = (rows) => (rows > 0 ? h("tr", { class: "spacer", "aria-hidden": "true" }, tall(h("td", { colspan: this.visible.length }), rows * ROW)) : "");
    const rows = this.shown.slice(first, last).map((row, i) => this.drawRow(row, first + i));
    if (!this.shown.length) rows.push(h("tr", {}, h("td", { colspan: this.visible.length, class: "quiet" }, this.empty)));
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.body.replaceChildren(spacer(first), ...rows, spacer(this.shown.length - last));
    if (focused) [...this.body.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused)?.focus();
  }

  drawRow(row, index) {
    const tr = h("tr", { "aria-rowindex": index + 2, class: row === this.picked ? "picked" : null });
    for (const column of this.visible) {
      const content = column.cell(row);
      tr.append(h(column.head ? "th" : "td", { class: classes(column), scope: column.head ? "row" : null }, ...(Array.isArray(content) ? content : [content])));
    }
    if (this.onPick) tr.addEventListener("click", (event) => event.target.closest("a, button, input, label") || this.onPick(row));
    return tr;
  }

  /** A menu that shows and hides columns. */
  menu() {
    const boxes = this.columns.filter((column) => column.label && !column.head).map((column) => {
      const box = h("input", { type: "checkbox" });
      box.checked = !column.hidden;
      box.addEventListener("change", () => {
        column.hidden = !box.checked;
        // A column that was asked for is shown on a phone, too.
        if (box.checked) column.wide = false;
        this.drawHead();
        this.arrange();
      });
      return h("label", {}, box, " ", column.label);
    });
    return h("details", { class: "menu" }, h("summary", {}, "Columns"), h("div", { class: "options" }, boxes));
  }
}

function classes(column) {
  return [column.figure ? "figure" : "", column.wide ? "wide" : "", column.class ?? ""].join(" ").trim() || null;
}

function tall(cell, height) {
  cell.style.height = `${height}px`;
  return cell;
}
