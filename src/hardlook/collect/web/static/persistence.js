// Asking again, with growing waits, until the server answers.

import { noteTrouble } from "./connection.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15_000;

// What `ask` resolves to; errors that will not pass are thrown. `source` names the asker to the connection's note.
export async function persist(source, ask) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      const answer = await ask();
      noteTrouble(source, null);
      return answer;
    } catch (error) {
      noteTrouble(source, error.passing ? error : null);
      if (!error.passing) throw error;
      await wakeableWait(Math.max(wait, error.retryAfter ?? 0));
    }
  }
}

// Resolves after `milliseconds`, or as soon as the browser says that it is connected again.
function wakeableWait(milliseconds) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      resolve();
    };
    const timer = setTimeout(wake, milliseconds);
    addEventListener("online", wake);
  });
}
