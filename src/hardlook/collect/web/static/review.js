// A picture and a question with two answers: does it show this concept in this context?

import { loadPicture } from "./loading.js";
import { attemptQuestion } from "./questions.js";
import { element } from "./screens.js";
import { say } from "./words.js";

export async function loadReviewPictures(task) {
  return { image: await loadPicture(task.image, say("review.picture")) };
}

export function attemptReview(task, pictures, _study, signal) {
  const { concept, context } = task;
  const words = say(context ? "review.question" : "review.question.no_context", { concept, context });
  return attemptQuestion({
    asked: [element("h1", { tabIndex: -1 }, words)],
    picture: pictures.image,
    // J is the German yes; both are taken in every language.
    buttons: [
      { value: 1, words: say("review.yes"), keys: ["y", "j"], hint: say("review.yes.key") },
      { value: 0, words: say("review.no"), keys: ["n"], hint: say("review.no.key") },
    ],
    named: words,
    scale: null,
    look: "review",
  }, signal);
}
