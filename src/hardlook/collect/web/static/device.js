// Which device this is: guessed from the pointer, confirmed by the participant.

import { choose, element } from "./screens.js";
import { say } from "./words.js";

const DEVICES = ["pc", "mobile"];

// Resolves to {device, pointer} once confirmed; `refusal` is what the server said to an earlier choice.
export async function confirmDevice(refusal = "") {
  const listening = new AbortController();
  let pointer = "";
  let touched = false;
  const fields = DEVICES.map((device) => field(device));
  const [inputs, labels] = [fields.map(({ input }) => input), fields.map(({ label }) => label)];
  const mark = (device) => inputs.forEach((input) => (input.checked = input.value === device));
  mark(matchMedia("(pointer: coarse)").matches ? "mobile" : "pc");

  // The first pointer that moves here knows better than the make of the screen; a hand on the choice, better still.
  const look = ({ pointerType }) => {
    pointer = pointerType;
    if (!touched && pointerType === "touch") mark("mobile");
    if (!touched && pointerType === "mouse") mark("pc");
  };
  addEventListener("pointermove", look, { once: true, signal: listening.signal });
  addEventListener("pointerdown", look, { capture: true, signal: listening.signal });
  for (const input of inputs) input.addEventListener("change", () => (touched = true));

  const group = element("fieldset", { className: "devices" }, element("legend", {}, say("device.guess")), ...labels);
  await choose(say("device.heading"), [refusal], [["yes", say("device.confirm")]], group);
  listening.abort();
  const device = inputs.find((input) => input.checked).value;
  return { device, pointer: ["mouse", "touch", "pen"].includes(pointer) ? pointer : "" };
}

function field(device) {
  const input = element("input", { type: "radio", name: "device", value: device });
  const words = element("span", {}, element("b", {}, say(`device.${device}`)), " ",
    element("small", {}, say(`device.${device}.more`)));
  return { input, label: element("label", {}, input, words) };
}
