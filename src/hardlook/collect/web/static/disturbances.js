// What ends an attempt at a task before its answer: a pause, a page out of sight, a window that changed.

export class Disturbance extends Error {
  constructor(kind) {
    super(kind);
    this.kind = kind;
  }
}

const SETTLED = 300;

// Watches until stop(); `signal` aborts with a Disturbance. A `timed` task is also ended by "hidden" and "resized";
// of any other, onHidden() is told.
export function watchDisturbances({ timed, onHidden }) {
  const controller = new AbortController();
  const ended = new AbortController();
  const end = (kind) => {
    ended.abort();
    controller.abort(new Disturbance(kind));
  };
  const options = { signal: ended.signal };
  const size = windowSize();

  document.getElementById("pause").addEventListener("click", () => end("paused"), options);
  addEventListener("keydown", (event) => {
    if (isPauseKey(event)) end("paused");
  }, options);
  const vanished = () => document.hidden && (timed ? end("hidden") : onHidden());
  document.addEventListener("visibilitychange", vanished, options);
  if (timed) addEventListener("resize", () => windowSize() !== size && end("resized"), options);
  if (timed) vanished();
  return { signal: controller.signal, stop: () => ended.abort() };
}

// Resolves when the window has kept its size for a moment; turning a phone changes it several times.
export async function settled() {
  let size;
  do {
    size = windowSize();
    await new Promise((resolve) => setTimeout(resolve, SETTLED));
  } while (windowSize() !== size);
}

function windowSize() {
  return `${innerWidth} ${innerHeight} ${devicePixelRatio}`;
}

function isPauseKey(event) {
  return !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && /^(p|escape)$/i.test(event.key);
}

// What `promise` resolves to, unless the signal comes first.
export function undisturbed(promise, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}
