// Tasks without a clock: something is asked about words or a picture, and one of some buttons, or its key, answers.

import { undisturbed } from "./disturbances.js";
import { element, put } from "./screens.js";
import { circumstances } from "./trial.js";

// Nobody reads and answers in so many milliseconds: this is the second half of a double click on the question before.
const TOO_SOON = 200;

// Shows `asked` (elements), `picture` (decoded, or null), buttons {value, words, keys, hint} and `scale` (an element or
// null), and resolves to the answer. `named` names the group of buttons, `look` is its class.
export async function attemptQuestion({ asked, picture, buttons, named, scale, look }, signal) {
  const listening = new AbortController();
  const question = element("div", { className: `question ${look}` }, ...asked);
  const chosen = new Promise((resolve) => {
    const choose = (value, event) => {
      if (question.dataset.phase === "asked") resolve({ value, event });
    };
    const made = buttons.map((button) => buttonOf(button, (event) => choose(button.value, event)));
    const group = element("div", { className: `buttons ${look}`, role: "group" }, ...made);
    group.setAttribute("aria-label", named);
    question.append(...[picture && element("div", { className: "frame" }, picture), group, scale].filter(Boolean));
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      const found = buttons.find(({ keys }) => keys.includes(event.key.toLowerCase()));
      if (found) choose(found.value, event);
    }, { signal: listening.signal });
  });
  try {
    put(question);
    asked[0].focus({ preventScroll: true });
    const shown = await undisturbed(new Promise(requestAnimationFrame), signal);
    await undisturbed(new Promise((resolve) => setTimeout(resolve, TOO_SOON)), signal);
    question.dataset.phase = "asked";
    const { value, event } = await undisturbed(chosen, signal);
    question.dataset.phase = "answered";
    const reaction_ms = event.timeStamp - shown;
    return { value, reaction_ms, circumstances: circumstances(picture, event.pointerType) };
  } finally {
    listening.abort();
  }
}

function buttonOf({ value, words, keys, hint }, onclick) {
  const button = element("button", { type: "button", value: String(value), onclick }, words);
  if (hint) button.append(" ", element("kbd", {}, hint));
  button.setAttribute("aria-keyshortcuts", keys.join(" ").toUpperCase());
  return button;
}
