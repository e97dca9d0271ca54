// Phases that begin and end with frames of the screen.

// Browsers round the times of frames to a tenth of a millisecond, so a frame may seem to come that much too soon.
const ROUNDING = 0.1;

// Plays phases {name, milliseconds, show}: each begins at the frame that first shows it and ends at the first frame at
// or after its planned end. The last one has no end: when it begins, the promise resolves to `began` (its time),
// `durations` (measured milliseconds by name) and the median and longest time between two frames.
export function playPhases(phases, signal) {
  return new Promise((resolve, reject) => {
    const begins = [];
    const gaps = [];
    let before, request;

    function frame(now) {
      if (before !== undefined) gaps.push(now - before);
      before = now;
      while (begins.length < phases.length && isOver(now)) {
        phases[begins.length].show(now);
        begins.push(now);
      }
      if (begins.length === phases.length) resolve(measured(phases, begins, gaps));
      else request = requestAnimationFrame(frame);
    }

    function isOver(now) {
      const last = begins.length - 1;
      return last < 0 || now - begins[last] >= phases[last].milliseconds - ROUNDING;
    }

    signal.throwIfAborted();
    signal.addEventListener("abort", () => {
      cancelAnimationFrame(request);
      reject(signal.reason);
    }, { once: true });
    request = requestAnimationFrame(frame);
  });
}

function measured(phases, begins, gaps) {
  const durations = {};
  for (let i = 0; i + 1 < phases.length; i++) durations[phases[i].name] = begins[i + 1] - begins[i];
  const sorted = [...gaps].sort((one, other) => one - other);
  durations.frame = sorted[sorted.length >> 1] ?? 0;
  durations.longest_frame = sorted.at(-1) ?? 0;
  return { began: begins.at(-1), durations };
}
