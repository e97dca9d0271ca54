// The participant's way: device, instructions, training, sets of tasks, and the end.

import { post, readState } from "./api.js";
import { confirmDevice, isElsewhere } from "./device.js";
import { instruct } from "./instructions.js";
import { offerLanguages } from "./languages.js";
import { persist } from "./persistence.js";
import { emptied, keep, refusals, takeUp } from "./queue.js";
import { choose, hideBar, setPausable, showBar, waiting } from "./screens.js";
import { performTask, Stopped } from "./tasks.js";
import { train } from "./training.js";
import { say, setTouch, setWords } from "./words.js";

// A set whose tasks are refused so often in a row has something wrong that asking again does not mend.
const PATIENCE = 3;

async function run() {
  let study = await persist("state", readState);
  setWords(study.texts);
  document.documentElement.lang = say("language.code");
  const unsent = takeUp(study.study);
  if (study.done) return finish();
  // Before it is said that nothing is left, which may be true of the other device alone.
  if (isElsewhere(study)) study = await changeDevice(study);
  if (study.full) return finish();
  study.progress.answered += unsent;
  offerLanguages(study);
  if (study.kind === "clicks") await settleDevice(study);
  study.touch = study.device === "mobile" || (study.device === "any" && matchMedia("(pointer: coarse)").matches);
  setTouch(study.touch);
  const fresh = await prepare(study);
  await workThroughSets(study, fresh);
  return finish();
}

async function settleDevice(study) {
  let refusal = "";
  while (!study.device) {
    const body = await confirmDevice(refusal);
    try {
      study.device = (await persist("device", () => post("/api/device", body))).device;
    } catch (error) {
      if (error.status !== 409) throw error;
      refusal = error.message;
    }
  }
}

// The state after a participant who began on another device has said what this one is.
async function changeDevice(study) {
  offerLanguages(study);
  await settleDevice({ ...study, device: null });
  return persist("state", readState);
}

// Instructions and training, for those who have not begun; resolves to whether these are they.
async function prepare(study) {
  if (study.trained && study.progress.answered) return false;
  await instruct(study);
  if (study.trained) return true;
  await train(study);
  await persist("trained", () => post("/api/trained"));
  const size = study.progress.batch_size;
  await choose(say("training.done"), [say("training.done.text", { size })], [["begin", say("ready.begin")]]);
  return true;
}

async function workThroughSets(study, fresh) {
  const { most_batches } = study.progress;
  let refused = 0;
  for (let welcomed = fresh; ; welcomed = true) {
    waiting();
    await emptied();
    const { done, batch } = await persist("batch", () => post("/api/batch"));
    if (done) return;
    if (!welcomed) await welcomeBack(batch);
    const before = refusals();
    try {
      await workThrough(study, batch);
      refused = refusals() > before ? refused + 1 : 0;
    } catch (error) {
      // Gone back to others, or answered in another window: the server knows what is left.
      if (error.status !== 409 && error.status !== 404) throw error;
      refused += 1;
    }
    if (refused >= PATIENCE) throw new Error(say("error.server"));
    if (refused) continue;
    if (batch.number >= most_batches) return;
    const heading = say("batch.heading", { number: batch.number });
    const choices = [["another", say("batch.another")], ["stop", say("work.stop")]];
    if ((await choose(heading, [say("batch.text")], choices)) === "stop") return;
  }
}

function welcomeBack(batch) {
  const left = batch.trials.filter(({ answered }) => !answered).length;
  return choose(say("back.heading"), [say("back.text", { left })], [["begin", say("work.continue")]]);
}

async function workThrough(study, { trials }) {
  let answered = trials.filter((trial) => trial.answered).length;
  for (const trial of trials) {
    if (trial.answered) continue;
    showBar(answered, trials.length);
    const { answer } = await performTask(study, trial.id);
    keep(answer);
    answered += 1;
    showBar(answered, trials.length);
  }
  setPausable(false);
  await emptied();
}

async function finish() {
  hideBar();
  waiting();
  await emptied();
  location.assign("/done");
}

async function fail(error) {
  if (error instanceof Stopped) return finish();
  hideBar();
  const words = error.status === 401 ? say("error.session") : error.message;
  await choose(say("error.heading"), [words], [["again", say("error.retry")]]);
  location.reload();
}

// A page that comes out of the browser's memory is as old as it was.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
run().catch(fail).catch(fail);
