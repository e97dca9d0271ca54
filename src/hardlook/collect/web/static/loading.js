// Pictures that are decoded before anything is shown, so that none comes late or in parts.

export class PictureFailed extends Error {}

export async function loadPicture(address, words) {
  const picture = new Image();
  // What is drawn in a frame is drawn whole in that frame.
  picture.decoding = "sync";
  picture.alt = words;
  picture.draggable = false;
  picture.src = address;
  try {
    await picture.decode();
  } catch {
    throw new PictureFailed(address);
  }
  return picture;
}
