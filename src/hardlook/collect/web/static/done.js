// The button that copies the completion code; without this module the code can be copied by hand.

const button = document.getElementById("copy");
const code = document.getElementById("code");
const note = document.getElementById("copied");

async function copy() {
  try {
    await navigator.clipboard.writeText(code.textContent);
    note.textContent = button.dataset.copied;
  } catch {
    // Browsers keep the clipboard from pages without encryption.
    getSelection().selectAllChildren(code);
    note.textContent = button.dataset.selected;
  }
}

if (button) {
  button.hidden = false;
  button.addEventListener("click", copy);
}
