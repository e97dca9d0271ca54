// Pictures that are decoded before anything is shown, so that none comes late or in parts.

// A hiccup of the line, or a request too many in this minute, is not worth a message.
const SECOND_TRY = 1500;

export class PictureFailed extends Error {}

export async function loadPicture(address, words) {
  try {
    return await decoded(address, words);
  } catch {
    await new Promise((resolve) => setTimeout(resolve, SECOND_TRY));
  }
  try {
    return await decoded(address, words);
  } catch {
    throw new PictureFailed(address);
  }
}

async function decoded(address, words) {
  const picture = new Image();
  // What is drawn in a frame is drawn whole in that frame.
  picture.decoding = "sync";
  picture.alt = words;
  picture.draggable = false;
  picture.src = address;
  await picture.decode();
  return picture;
}
