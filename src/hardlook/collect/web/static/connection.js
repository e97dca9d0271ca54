// The note that says that there is no connection, and what waits for it.

import { say } from "./words.js";

const REFUSAL_STAYS = 10_000;
const troubles = new Map();
let waiting = 0;
let refusal = "";

export function noteTrouble(source, error) {
  if (error) troubles.set(source, error);
  else troubles.delete(source);
  show();
}

export function noteWaiting(count) {
  waiting = count;
  show();
}

// An answer that the server will never take.
export function noteRefusal(reason) {
  refusal = say("connection.lost_answer", { reason });
  setTimeout(() => {
    refusal = "";
    show();
  }, REFUSAL_STAYS);
  show();
}

function show() {
  const [error] = troubles.values();
  const text = error ? [sentence(error), queued()].filter(Boolean).join(" ") : refusal;
  const note = document.getElementById("connection");
  // A live region speaks on every change, so the same words are not set twice.
  if (note.textContent !== text) note.textContent = text;
}

function sentence(error) {
  if (error.status === 429) return say("error.slow");
  return say(error.status ? "error.server" : "connection.offline");
}

function queued() {
  if (!waiting) return "";
  return waiting === 1 ? say("connection.waiting.one") : say("connection.waiting.many", { count: waiting });
}
