// From the screen to the picture's own pixels.

// The largest box of the picture's shape in the middle of `room` (a DOMRect), in CSS pixels from the room's corner.
// Its edges lie on whole device pixels (`ratio` of them a CSS pixel): browsers draw pictures on those, and a box
// between them would be drawn up to half a pixel away from where it says it is.
export function fit(width, height, room, ratio) {
  const left = Math.ceil(room.left * ratio);
  const top = Math.ceil(room.top * ratio);
  const most = [Math.floor(room.right * ratio) - left, Math.floor(room.bottom * ratio) - top];
  const scale = Math.min(most[0] / width, most[1] / height);
  const size = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  return {
    left: (left + Math.floor((most[0] - size[0]) / 2)) / ratio - room.left,
    top: (top + Math.floor((most[1] - size[1]) / 2)) / ratio - room.top,
    width: size[0] / ratio,
    height: size[1] / ratio,
  };
}

// A point of the window (clientX, clientY) in pixels of the picture that fills `box` (its DOMRect): continuous,
// x in [0, width), y in [0, height), from the upper left corner. Null beside the picture.
export function imagePoint(clientX, clientY, box, width, height) {
  const x = ((clientX - box.left) / box.width) * width;
  const y = ((clientY - box.top) / box.height) * height;
  return x >= 0 && x < width && y >= 0 && y < height ? { x, y } : null;
}
