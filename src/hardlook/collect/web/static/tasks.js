// One task from its show to its answer, however often it is disturbed on the way.

import { post } from "./api.js";
import { Disturbance, settled, undisturbed, watchDisturbances } from "./disturbances.js";
import { loadPicture, PictureFailed } from "./loading.js";
import { persist } from "./persistence.js";
import { attemptRating, loadRatingPictures } from "./rating.js";
import { attemptReview, loadReviewPictures } from "./review.js";
import { choose, element, setPausable } from "./screens.js";
import { attemptClick, loadClickPictures } from "./trial.js";
import { say } from "./words.js";

const KINDS = {
  clicks: { load: loadClickPictures, attempt: attemptClick, timed: true },
  review: { load: loadReviewPictures, attempt: attemptReview, timed: false },
  ratings: { load: loadRatingPictures, attempt: attemptRating, timed: false },
};

// The participant wants to stop here.
export class Stopped extends Error {}

// Resolves to {task, answer}: what the server said of the task, and the answer as it is sent.
export async function performTask(study, id) {
  const { load, attempt, timed } = KINDS[study.kind];
  const counts = { early: 0, restarts: 0, hidden: 0, note: "" };
  let ready = null;
  for (;;) {
    setPausable(true);
    const watch = watchDisturbances({ timed, onHidden: () => (counts.hidden += 1) });
    try {
      ready ??= prepared(id, load);
      const { task, pictures } = await undisturbed(ready, watch.signal);
      const given = await attempt(task, pictures, study, watch.signal, counts);
      const { early, restarts, hidden } = counts;
      return { task, answer: { trial: id, early, ...given, circumstances: { ...given.circumstances, restarts, hidden } } };
    } catch (error) {
      watch.stop();
      if (error instanceof PictureFailed) ready = await failed();
      else if (error instanceof Disturbance) await resume(error.kind, counts);
      else throw error;
    } finally {
      watch.stop();
    }
  }
}

function prepared(id, load) {
  const ready = persist("show", () => post(`/api/trials/${id}/show`)).then(async (task) => ({
    task,
    pictures: await load(task),
  }));
  // It is awaited again after a pause, and until then its failure is nobody's.
  ready.catch(() => {});
  return ready;
}

async function resume(kind, counts) {
  counts.restarts += 1;
  counts.hidden += kind === "hidden" ? 1 : 0;
  counts.note = kind === "resized" ? "trial.restarted" : "";
  if (kind === "resized") return settled();
  post("/api/pause").catch(() => {});
  const lines = [kind === "hidden" ? say("paused.hidden") : "", say("paused.text")];
  const choices = [["continue", say("work.continue")], ["stop", say("work.stop")]];
  if ((await choose(say("paused.heading"), lines, choices)) === "stop") throw new Stopped();
}

// The picture did not come: says so, and resolves to null when it shall be tried again.
async function failed() {
  const again = choose(say("error.heading"), [say("error.picture")], [["again", say("error.retry")]]);
  const online = new Promise((resolve) => addEventListener("online", resolve, { once: true }));
  await Promise.race([again, online]);
  return null;
}

// A picture of the training round with its region outlined and a ring where the click was, as a figure.
export async function outlinedFigure(address, { width, height }, { x, y }) {
  const picture = await loadPicture(address, say("training.picture"));
  const ring = element("span", { className: "ring" });
  Object.assign(ring.style, { left: `${(100 * x) / width}%`, top: `${(100 * y) / height}%` });
  return element("figure", { className: "feedback" }, picture, ring);
}
