// Which device this is: guessed from the screen, confirmed by the participant.

import { choose, element } from "./screens.js";
import { say } from "./words.js";

const DEVICES = ["pc", "mobile"];

// Whether this is another kind of device than the one that was confirmed, as when a link is opened on a phone that was
// opened on a computer before: then it is asked for again.
export function isElsewhere({ device }) {
  return DEVICES.includes(device) && device !== guessDevice();
}

// Resolves to {device, pointer} once confirmed; `refusal` is what the server said to an earlier choice.
// The guess is made once. From then on only the participant changes it: what is confirmed is what they read.
export async function confirmDevice(refusal = "") {
  const listening = new AbortController();
  let pointer = "";
  const guess = guessDevice();
  const fields = DEVICES.map((device) => field(device, device === guess));
  addEventListener("pointerdown", ({ pointerType }) => (pointer = pointerType), { capture: true, signal: listening.signal });

  const labels = fields.map(({ label }) => label);
  const group = element("fieldset", { className: "devices" }, element("legend", {}, say("device.guess")), ...labels);
  await choose(say("device.heading"), [refusal], [["yes", say("device.confirm")]], group);
  listening.abort();
  const device = fields.find(({ input }) => input.checked).input.value;
  return { device, pointer: ["mouse", "touch", "pen"].includes(pointer) ? pointer : "" };
}

function guessDevice() {
  return matchMedia("(pointer: coarse)").matches ? "mobile" : "pc";
}

function field(device, checked) {
  const input = element("input", { type: "radio", name: "device", value: device, checked });
  const words = element("span", {}, element("b", {}, say(`device.${device}`)), " ",
    element("small", {}, say(`device.${device}.more`)));
  return { input, label: element("label", {}, input, words) };
}
