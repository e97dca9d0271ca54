// What stands on the screen between tasks: a heading, some lines, a choice.

import { say } from "./words.js";

// An element with properties and children; texts are only ever text.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Puts these in place of what was on the screen, which may have been scrolled.
export function put(...children) {
  const screen = document.getElementById("screen");
  screen.replaceChildren(...children);
  screen.scrollTop = 0;
}

// The bar with progress and, while there is something to pause, the button for it; it stands where the languages were.
export function showBar(answered, of, key = "work.progress") {
  document.getElementById("bar").hidden = false;
  document.getElementById("languages").hidden = true;
  document.getElementById("progress-words").textContent = say(key, { answered, of });
  Object.assign(document.getElementById("progress"), { max: of, value: answered });
}

export function hideBar() {
  document.getElementById("bar").hidden = true;
}

export function setPausable(pausable) {
  const button = document.getElementById("pause");
  button.textContent = say("work.pause");
  // Not taken away but made invisible, so that nothing below moves.
  button.classList.toggle("absent", !pausable);
  button.disabled = !pausable;
}

// Shows a heading, lines of text and further elements, and resolves to the value of the button that is pressed.
// Choices are [value, words]; the first is the main one, and Enter chooses it.
export function choose(heading, lines, choices, ...between) {
  return new Promise((resolve) => {
    const listening = new AbortController();
    const pick = (value) => {
      listening.abort();
      resolve(value);
    };
    const buttons = choices.map(([value, words], place) =>
      element("button", { type: "button", className: place ? "" : "main", value, onclick: () => pick(value) }, words),
    );
    setPausable(false);
    const title = element("h1", { tabIndex: -1 }, heading);
    const texts = lines.filter(Boolean).map((line) => element("p", {}, line));
    put(element("div", { className: "paper" }, title, ...texts, ...between, actions(buttons)));
    addEventListener("keydown", (event) => {
      // A button, link or field in focus answers to Enter itself.
      if (event.key === "Enter" && !event.repeat && !event.target.closest("button, a, input")) pick(choices[0][0]);
    }, { signal: listening.signal });
    title.focus({ preventScroll: true });
  });
}

export function waiting() {
  put(element("p", { className: "paper waiting", role: "status" }, say("work.loading")));
}

function actions(buttons) {
  return element("p", { className: "actions" }, ...buttons);
}
