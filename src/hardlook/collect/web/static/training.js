// The training round: tasks as they will come, and a word on how it went; only tries are counted.

import { post } from "./api.js";
import { persist } from "./persistence.js";
import { choose, showBar } from "./screens.js";
import { outlinedFigure, performTask } from "./tasks.js";
import { say } from "./words.js";

// After so many tries a participant may go on all the same.
const TRIES = 2;

export async function train(study) {
  const count = study.training.length;
  for (const [place, id] of study.training.entries()) {
    for (let tries = 1; ; tries++) {
      showBar(place, count, "work.progress.training");
      const { task, answer } = await performTask(study, id);
      const { x, y, value } = answer;
      const verdict = await persist("training", () => post("/api/training", { trial: id, x, y, value }));
      if (verdict.right) showBar(place + 1, count, "work.progress.training");
      // A rating has no right answer to tell.
      if (study.kind === "ratings") break;
      const told = study.kind === "review" ? agreement : feedback;
      if ((await told(task, answer, verdict, tries)) === "next") break;
    }
  }
  showBar(count, count, "work.progress.training");
}

async function agreement(task, answer, { right }, tries) {
  const [next, again] = [["next", say("training.next")], ["again", say("training.again")]];
  if (right) return choose(say("training.inside"), [], [next]);
  return choose(say("training.review.other"), [], tries < TRIES ? [again] : [again, next]);
}

async function feedback(task, answer, { inside, near, feedback: address }, tries) {
  // Without its outline the feedback is still worth having.
  const figure = address ? await outlinedFigure(address, task, answer).catch(() => null) : null;
  const [next, again] = [["next", say("training.next")], ["again", say("training.again")]];
  if (near) return choose(say(inside ? "training.inside" : "training.near"), [], [next, again], ...[figure].filter(Boolean));
  const words = say(figure ? "training.outside" : "training.outside_no_outline");
  return choose(words, [], tries < TRIES ? [again] : [again, next], ...[figure].filter(Boolean));
}
