// Answers, kept in the browser until the server has stored them; sent one after another, oldest first.

import { post } from "./api.js";
import { noteRefusal, noteWaiting } from "./connection.js";
import { persist } from "./persistence.js";

// With the study's mark: another study may have been at this address before, and its answers are not for this one.
let prefix = "hardlook.answer.";
// Where the browser keeps nothing (private windows of some), answers live as long as the page.
const memory = new Map();
let sending = null;
let count = 0;
let refused = 0;

// Keeps an answer and sends it; the key makes it one answer however often it arrives.
export function keep(answer) {
  const key = crypto.getRandomValues(new Uint32Array(4)).reduce((text, part) => text + part.toString(36), "k");
  const entry = { at: Date.now(), turn: count++, answer: { ...answer, key } };
  memory.set(key, entry);
  try {
    localStorage.setItem(prefix + key, JSON.stringify(entry));
  } catch {
    // It is in memory.
  }
  sendAll().catch(() => {});
}

// Takes up what an earlier visit to the study of this mark left unsent; how many answers that are.
export function takeUp(mark) {
  prefix = `hardlook.answer.${mark}.`;
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(prefix)) memory.set(name.slice(prefix.length), JSON.parse(localStorage.getItem(name)));
    }
  } catch {
    // Nothing was kept, or something that is not ours.
  }
  sendAll().catch(() => {});
  return memory.size;
}

// Resolves when every answer is stored, or refused for good.
// Throws where the session is gone.
export async function emptied() {
  while (memory.size) await sendAll();
}

// How many answers the server has refused for good since the page was opened.
export function refusals() {
  return refused;
}

function sendAll() {
  sending ??= run().finally(() => {
    sending = null;
  });
  return sending;
}

async function run() {
  for (let entry = oldest(); entry; entry = oldest()) {
    noteWaiting(memory.size);
    try {
      await persist("answers", () => post("/api/answers", asSent(entry)));
    } catch (error) {
      // Without a session nothing can be stored; the answer waits for the participant to come back.
      if (error.status === 401) throw error;
      refused += 1;
      noteRefusal(error.message);
    }
    forget(entry.answer.key);
  }
  noteWaiting(0);
}

function oldest() {
  const order = (one, other) => one.at - other.at || one.turn - other.turn;
  return [...memory.values()].sort(order)[0];
}

function asSent({ at, answer }) {
  const queued = Math.min(Math.max(Date.now() - at, 0), 86_400_000);
  return { ...answer, circumstances: { ...answer.circumstances, queued_ms: queued } };
}

function forget(key) {
  memory.delete(key);
  try {
    localStorage.removeItem(prefix + key);
  } catch {
    // It never got there.
  }
}
