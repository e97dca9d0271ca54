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

  const rows = Array.from(document.querySelectorAll("[data-row]"));
  const grid = document.querySelector(".grid");
  const images = grid ? Array.from(grid.querySelectorAll("img")) : [];
  let here = -1;

  function move(to) {
    if (here >= 0) rows[here].classList.remove("here");
    here = Math.min(Math.max(to, 0), rows.length - 1);
    rows[here].classList.add("here");
    rows[here].querySelector("a").focus({ preventScroll: true });
    rows[here].scrollIntoView({ block: "nearest" });
  }

  function go(step) {
    if (press(step > 0 ? "j" : "k") || !rows.length) return;
    move(here + step);
  }

  function press(key) {
    const link = document.querySelector('a[data-key="' + key + '"]');
    if (link) link.click();
    return Boolean(link);
  }

  function columns() {
    const top = rows[0].offsetTop;
    const second = rows.findIndex((row) => row.offsetTop > top);
    return second < 0 ? rows.length : second;
  }

  // Tab and clicks move the focus too: keys go on from there.
  rows.forEach((row, place) => row.addEventListener("focusin", () => {
    if (here >= 0 && here !== place) rows[here].classList.remove("here");
    here = place;
  }));

  // What is laid over all pictures of the grid, without loading the page again; the address and all links follow.
  const switches = Array.from(document.querySelectorAll("a[data-overlay]"));
  const marked = switches.find((link) => link.hasAttribute("aria-current"));
  let overlay = marked ? marked.dataset.overlay : "on";
  let last = overlay === "off" ? "on" : overlay;

  function lay(chosen) {
    overlay = chosen;
    if (overlay !== "off") last = overlay;
    images.forEach((image) => {
      const address = new URL(image.src);
      address.searchParams.set("overlay", overlay);
      image.src = address.href;
    });
    switches.forEach((link) => {
      if (link.dataset.overlay === overlay) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    const keep = (text) => {
      const address = new URL(text, location.href);
      if (overlay === "on") address.searchParams.delete("overlay");
      else address.searchParams.set("overlay", overlay);
      return address.pathname + address.search;
    };
    document.querySelectorAll("main a[href]").forEach((link) => {
      if (!link.dataset.overlay && /[?&]sort=|\/compare\?/.test(link.getAttribute("href"))) {
        link.setAttribute("href", keep(link.getAttribute("href")));
      }
    });
    document.querySelectorAll("form[method=get]").forEach((form) => {
      let field = form.querySelector("input[name=overlay]");
      if (!field) {
        field = document.createElement("input");
        field.type = "hidden";
        field.name = "overlay";
        form.append(field);
      }
      field.value = overlay;
    });
    history.replaceState(null, "", keep(location.href));
  }

  switches.forEach((link) => link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    lay(link.dataset.overlay);
  }));

  // While the server lists the units it has no pictures yet: ask again.
  if (grid && "listing" in grid.dataset) {
    images.forEach((image) => image.addEventListener("error", () => {
      window.setTimeout(() => { image.src = image.src; }, 2000);
    }));
  }

  const steps = { j: () => go(1), k: () => go(-1), b: () => press("b"), v: () => press("v") };
  if (grid) {
    if (switches.length) {
      steps.o = () => lay(overlay === "off" ? last : "off");
      steps.t = () => lay({ truth: "prediction", prediction: "on" }[overlay] || "truth");
    }
    steps.ArrowRight = () => move(here + 1);
    steps.ArrowLeft = () => move(here - 1);
    steps.ArrowDown = () => move(here < 0 ? 0 : here + columns() < rows.length ? here + columns() : here);
    steps.ArrowUp = () => move(here < 0 ? 0 : here - columns() >= 0 ? here - columns() : here);
  } else {
    steps.o = () => press("o");
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (!Object.hasOwn(steps, event.key)) return;
    if (event.key.startsWith("Arrow")) {
      // Elsewhere on the page arrows scroll.
      if (here < 0 || !rows[here].contains(document.activeElement)) return;
      event.preventDefault();
    }
    steps[event.key]();
  });
})();
