"use strict";
// Sorting by the buttons in table headers, and filtering by the box above long tables.
(function () {
  function sortKey(cell) {
    const value = cell.dataset.value;
    if (value === "") return null;
    return value === undefined ? cell.textContent.trim() : Number(value);
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function sort(table, header) {
    const headers = Array.from(header.parentNode.children);
    const column = headers.indexOf(header);
    const numeric = header.classList.contains("number");
    const before = header.getAttribute("aria-sort");
    // Numbers are wanted largest first, names from A.
    const next = before === "none" ? (numeric ? "descending" : "ascending")
      : before === "ascending" ? "descending" : "ascending";
    headers.forEach((other) => other.setAttribute("aria-sort", other === header ? next : "none"));
    const sign = next === "ascending" ? 1 : -1;
    const rows = Array.from(table.tBodies[0].rows).map((row) => [sortKey(row.cells[column]), row]);
    // Cells that say nothing stay at the end in both directions.
    rows.sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : sign * compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  document.querySelectorAll("table.sortable thead button").forEach((button) => {
    button.addEventListener("click", () => sort(button.closest("table"), button.closest("th")));
  });

  document.querySelectorAll("input[data-filters]").forEach((field) => {
    const rows = Array.from(document.getElementById(field.dataset.filters).tBodies[0].rows);
    const box = field.closest(".filter");
    box.hidden = false;
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = rows.filter((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        return !row.hidden;
      });
      box.querySelector("output").textContent = kept.length + " of " + rows.length + " rows";
    });
  });
})();
