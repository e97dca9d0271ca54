// The study's languages, to change to until the work begins.

import { post } from "./api.js";
import { persist } from "./persistence.js";
import { element } from "./screens.js";
import { say } from "./words.js";

// `languages` are names by code; one alone is no choice.
export function offerLanguages({ language, languages }) {
  const place = document.getElementById("languages");
  const codes = Object.keys(languages);
  place.setAttribute("aria-label", say("language.choose"));
  place.replaceChildren(...codes.map((code) => buttonOf(code, languages[code], code === language)));
  place.hidden = codes.length < 2;
}

function buttonOf(code, name, chosen) {
  const button = element("button", { type: "button", value: code, lang: code, onclick: () => change(code) }, name);
  if (chosen) button.setAttribute("aria-current", "true");
  return button;
}

// Nothing has begun yet, so that the page can start anew in the other language.
async function change(language) {
  try {
    await persist("language", () => post("/api/language", { language }));
  } catch {
    // The page that starts anew says what is wrong.
  }
  location.reload();
}
