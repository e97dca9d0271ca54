// One click: the picture, its target, the picture again, and then the click.

import { playPhases } from "./clock.js";
import { imagePoint } from "./coordinates.js";
import { undisturbed } from "./disturbances.js";
import { loadPicture } from "./loading.js";
import { setStage } from "./stage.js";
import { listenForTaps } from "./taps.js";
import { say } from "./words.js";

export async function loadClickPictures(task) {
  const [image, target] = await Promise.all([
    loadPicture(task.image, say("trial.picture")),
    task.target ? loadPicture(task.target, say("trial.target")) : null,
  ]);
  return { image, target };
}

// One attempt at a task; what it resolves to is the answer, what disturbs it is thrown. `timings` are in seconds.
// `counts.early` goes up with every click before its time, whether or not the attempt is finished.
export async function attemptClick(task, pictures, { timings }, signal, counts) {
  const view = setStage(task, pictures);
  const listening = new AbortController();
  let opened = Infinity;
  view.hint(counts.note);
  const point = (event) =>
    imagePoint(event.clientX, event.clientY, view.picture.getBoundingClientRect(), task.width, task.height);

  const clicked = new Promise((resolve) => {
    const onDown = (event) => {
      if (event.timeStamp < opened) {
        counts.early += 1;
        view.hint("trial.early");
        return false;
      }
      if (!point(event)) view.hint("trial.outside_picture");
      return point(event) !== null;
    };
    listenForTaps(view.stage, { onDown, onTap: resolve, onDrag: () => view.hint("trial.drag") }, listening.signal);
  });

  const seconds = { ...timings, target: task.mode === "text" ? timings.target_text : timings.target };
  const phase = (name) => ({ name, milliseconds: 1000 * seconds[name], show: () => view.enter(name) });
  const open = (now) => {
    opened = now;
    view.enter("click");
    view.hint("");
  };

  try {
    const phases = [phase("image"), phase("target"), phase("again"), { name: "click", show: open }];
    const { began, durations } = await playPhases(phases, signal);
    const event = await undisturbed(clicked, signal);
    view.enter("answered");
    const reaction_ms = Math.max(0, event.timeStamp - began);
    return { ...point(event), reaction_ms, durations, circumstances: circumstances(view.picture, event.pointerType) };
  } catch (error) {
    view.stop();
    throw error;
  } finally {
    listening.abort();
  }
}

// What the screen is like; `picture` may be null.
export function circumstances(picture, pointer) {
  const box = picture?.getBoundingClientRect();
  return {
    pointer: ["mouse", "touch", "pen"].includes(pointer) ? pointer : "",
    ratio: devicePixelRatio,
    view_width: innerWidth,
    view_height: innerHeight,
    shown_width: box?.width ?? 0,
    shown_height: box?.height ?? 0,
    zoom: visualViewport?.scale ?? 1,
  };
}
