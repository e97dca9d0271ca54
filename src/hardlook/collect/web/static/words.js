// The texts: those of the page until the server has said which language the participant speaks.

let words = JSON.parse(document.getElementById("screen").dataset.words);

export function setWords(texts) {
  words = texts;
}

// The text of a key, each {name} in it replaced by the value of that name.
export function say(key, values = {}) {
  const text = words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
