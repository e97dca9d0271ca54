// What is to be done, before it begins.

import { choose, element } from "./screens.js";
import { say } from "./words.js";

const STEPS = ["image", "target", "again", "click"];
// Of a second round: what a prediction left out, and what it took in.
const ERRORS = ["fn", "fp"];

export function instruct(study) {
  const { kind } = study;
  const lines = [say(kind === "clicks" ? "instructions.clicks.lead" : `welcome.${kind}`)];
  const between = [];
  if (kind === "clicks") {
    between.push(element("ol", { className: "how" }, ...STEPS.map((step) => element("li", {}, say(`instructions.clicks.${step}`)))));
  }
  between.push(...errorLines(study.click_types));
  between.push(element("p", {}, say(`instructions.${kind}.more`)));
  for (const paragraph of study.instructions.split(/\n\s*\n/)) {
    if (paragraph.trim()) between.push(element("p", { className: "own" }, paragraph.trim()));
  }
  between.push(element("p", {}, say("instructions.pause")));
  if (!study.touch) between.push(element("p", { className: "keys" }, say(`instructions.${kind}.keys`)));
  const practice = study.training.length && !study.trained;
  if (practice) between.push(element("p", {}, say(`training.text.${study.kind}`)));
  const begin = say(practice ? "training.start" : "instructions.begin");
  return choose(say("instructions.heading"), lines, [["begin", begin]], ...between);
}

function errorLines(types) {
  const found = ERRORS.filter((type) => types.includes(type));
  if (!found.length) return [];
  const kinds = found.map((type) => element("li", {}, element("b", {}, say(`kind.${type}`)), ": ", say(`instructions.errors.${type}`)));
  return [element("p", {}, say("instructions.errors")), element("ul", { className: "errors" }, ...kinds)];
}
