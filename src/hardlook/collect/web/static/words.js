// The texts: those of the page until the server has said which language the participant speaks.

let words = JSON.parse(document.getElementById("screen").dataset.words);

let touch = false;

export function setWords(texts) {
  words = texts;
}

// From now on texts that have a form for fingers are said in it: tap, not click.
export function setTouch(touched) {
  touch = touched;
}

// The text of a key, each {name} in it replaced by the value of that name.
export function say(key, values = {}) {
  const text = (touch ? words[`${key}.touch`] : null) ?? words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
