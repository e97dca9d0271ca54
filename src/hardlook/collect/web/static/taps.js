// Taps and clicks of mouse, finger and pen on an element; where the pointer went down is where it counts.

// CSS pixels that a pointer may wander between down and up; a finger rolls more than a mouse.
const WANDER = { mouse: 6, pen: 10, touch: 16 };

// Calls onDown(event) for every press of the main button; it says whether the press may become a tap. Then
// onTap(down event), or onDrag() where the pointer wandered or was taken away. All ends with `signal`.
export function listenForTaps(element, { onDown, onTap, onDrag }, signal) {
  let down = null;

  element.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button !== 0) return;
    event.preventDefault();
    down = onDown(event) ? event : null;
  }, { signal });

  addEventListener("pointerup", (event) => {
    if (!down || event.pointerId !== down.pointerId) return;
    const [first, wandered] = [down, Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY)];
    down = null;
    if (wandered <= (WANDER[first.pointerType] ?? WANDER.mouse)) onTap(first);
    else onDrag();
  }, { signal });

  addEventListener("pointercancel", (event) => {
    if (down && event.pointerId === down.pointerId) onDrag();
    down = null;
  }, { signal });

  // Else the browser makes a click of the tap, and that may hit a button that has just appeared there.
  element.addEventListener("touchend", (event) => event.preventDefault(), { passive: false, signal });
  element.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
}
