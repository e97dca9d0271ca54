// Two labels, or a picture with labels, rated from 1 to 10.

import { loadPicture } from "./loading.js";
import { attemptQuestion } from "./questions.js";
import { element } from "./screens.js";
import { say } from "./words.js";

const RATINGS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

export async function loadRatingPictures(task) {
  return { image: task.image ? await loadPicture(task.image, say("rating.picture")) : null };
}

export function attemptRating(task, pictures, _study, signal) {
  const kind = task.value === null ? "likeness" : "fit";
  const asked = [element("h1", { tabIndex: -1 }, say(`rating.${kind}.${task.form}`))];
  asked.push(task.form === "pair" ? pairOf(task.labels) : saidOf(task.labels));
  if (task.value !== null) asked.push(valueOf(task.value));
  return attemptQuestion({
    asked,
    picture: pictures.image,
    // No key is a ten, so the zero stands for it, as it stands after the nine on the keyboard.
    buttons: RATINGS.map((value) => ({ value, words: String(value), keys: [String(value % 10)] })),
    named: say("rating.scale"),
    scale: element("p", { className: "ends" }, element("span", {}, say("rating.least")), element("span", {}, say("rating.most"))),
    look: "rating",
  }, signal);
}

function pairOf(labels) {
  return element("p", { className: "labels" }, ...labels.map((label) => element("span", { className: "label" }, label)));
}

// The true labels of a picture come first, then those that the program gave it.
function saidOf([truth, ...predicted]) {
  const row = (key, text) => [element("dt", {}, say(key)), element("dd", {}, text)];
  return element("dl", { className: "said" }, ...row("rating.truth", truth), ...row("rating.predicted", predicted.join(", ")));
}

function valueOf(value) {
  const shown = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 2, minimumFractionDigits: 2 });
  return element("p", { className: "value" }, element("b", {}, say("rating.value", { value: shown.format(value) })), " ",
    element("small", {}, say("rating.value.scale")));
}
