// Folded sections: one that is linked is opened, and all are open on paper.
(function () {
  // The part that the address names, and everything around it.
  function reveal() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    const own = target.querySelector(":scope > details");
    if (own) own.open = true;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    target.scrollIntoView();
  }

  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    // A link to where the page already is changes no address.
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  reveal();

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details.part:not([open])"));
    opened.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((part) => { part.open = false; });
    opened = [];
  });
})();
