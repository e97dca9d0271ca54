// The stage of a click: a picture or its target in the room between the bar and the words below.

import { fit } from "./coordinates.js";
import { element, put } from "./screens.js";
import { say } from "./words.js";

const PHASES = ["image", "target", "again", "click"];
const SIGNS = { fn: "+", fp: "\u2212" };

// Builds the stage of a task with its decoded pictures and puts it on the screen.
export function setStage(task, pictures) {
  const target = pictures.target ?? element("p", {}, task.description);
  pictures.image.className = "picture";
  target.className = pictures.target ? "target" : "target description";
  const stage = element("div", { className: "stage" }, pictures.image, target);
  const words = element("p", { className: "phase", role: "status" });
  const hint = element("p", { className: "hint", role: "status" });
  const steps = PHASES.map((phase) => element("li", {}, say(`phase.short.${phase}`)));
  const foot = element("div", { className: "foot" }, element("ol", { className: "steps" }, ...steps), words, hint);
  foot.firstChild.setAttribute("aria-hidden", "true");
  if (task.click_type in SIGNS) foot.prepend(kindOf(task.click_type));
  const trial = element("div", { className: "trial" }, stage, foot);
  trial.dataset.clickType = task.click_type;
  put(trial);
  place(stage, task);

  return {
    stage,
    picture: pictures.image,
    // Sets what is seen and said in a phase.
    enter(phase) {
      trial.dataset.phase = phase;
      words.textContent = phaseWords(phase, task.click_type);
      steps.forEach((one, number) => one.classList.toggle("now", PHASES[number] === phase));
    },
    // Nothing is seen any more: the attempt is over, and the next one begins in a moment.
    stop() {
      trial.dataset.phase = "stopped";
      words.textContent = say("trial.restarted");
    },
    hint(key) {
      hint.textContent = key ? say(key) : "";
    },
  };
}

// The picture and its target lie on each other, in the middle of the stage, as large as it allows.
function place(stage, { width, height }) {
  const box = fit(width, height, stage.getBoundingClientRect(), devicePixelRatio);
  for (const picture of stage.querySelectorAll("img")) {
    for (const side of Object.keys(box)) picture.style[side] = `${box[side]}px`;
  }
}

function kindOf(type) {
  const sign = element("b", {}, SIGNS[type]);
  sign.setAttribute("aria-hidden", "true");
  return element("p", { className: "kind" }, sign, say(`kind.${type}`));
}

function phaseWords(phase, type) {
  const error = type in SIGNS && ["target", "click"].includes(phase) ? `.${type}` : "";
  return say(`phase.${phase}${error}`);
}
