"use strict";
// Comforts only: every page works without this script.
(function () {
  document.querySelectorAll("button[data-copies]").forEach((button) => {
    const source = document.getElementById(button.dataset.copies);
    const note = document.querySelector('[data-copied="' + button.dataset.copies + '"]');
    button.hidden = false;
    button.addEventListener("click", () => {
      const select = () => {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        note.textContent = "Selected: copy it with the keyboard.";
      };
      if (!navigator.clipboard) return select();
      navigator.clipboard.writeText(source.textContent).then(() => { note.textContent = "Copied."; }, select);
    });
  });

  const rows = Array.from(document.querySelectorAll("tr[data-row]"));
  let here = -1;

  function go(step) {
    const link = document.querySelector('a[data-key="' + (step > 0 ? "j" : "k") + '"]');
    if (link) { link.click(); return; }
    if (!rows.length) return;
    if (here >= 0) rows[here].classList.remove("here");
    here = Math.min(Math.max(here + step, 0), rows.length - 1);
    rows[here].classList.add("here");
    rows[here].querySelector("a").focus({ preventScroll: true });
    rows[here].scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "j") go(1);
    if (event.key === "k") go(-1);
    if (event.key === "o") {
      const overlay = document.querySelector('a[data-key="o"]');
      if (overlay) overlay.click();
    }
  });
})();
