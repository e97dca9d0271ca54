"""Marks of clicks: a shape and a colour each, seen on any picture, by readers of any kind of colour vision.

>>> mark(3, 4, 2, "near", full=True)
'<path class="mark near full" d="M3.0 2.0l2.0 2.0l-2.0 2.0l-2.0 -2.0z" stroke-width="0.7"/>'
"""

from __future__ import annotations

CLASSES = {
    "inside": "inside the region",
    "near": "outside, within the click radius",
    "outside": "outside and too far",
}


def mark(x: float, y: float, size: float, kind: str, *, full: bool) -> str:
    """The mark of a click at (x, y), `size` from its middle to its edge; hollow where its batch does not count."""
    classes = f"mark {kind} {'full' if full else 'hollow'}"
    # A cross has more edge for its size than the others have, and needs a wider one to stand out.
    wide = f'stroke-width="{size * (0.6 if kind == "outside" and full else 0.35 if full else 0.5):.1f}"'
    if kind == "inside":
        return f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="{size * 0.8:.1f}" {wide}/>'
    if kind == "near":
        step = f"{size:.1f}"
        path = f"M{x:.1f} {y - size:.1f}l{step} {step}l-{step} {step}l-{step} -{step}z"
        return f'<path class="{classes}" d="{path}" {wide}/>'
    arm, thick = size * 0.85, size * 0.25
    # A cross as a closed shape, so that it has a fill and an edge as the others have.
    path = _cross(x, y, arm, thick)
    return f'<path class="{classes}" d="{path}" {wide}/>'


def _cross(x: float, y: float, arm: float, thick: float) -> str:
    corners = (
        (-arm, -arm + thick),
        (-arm + thick, -arm),
        (0, -thick),
        (arm - thick, -arm),
        (arm, -arm + thick),
        (thick, 0),
        (arm, arm - thick),
        (arm - thick, arm),
        (0, thick),
        (-arm + thick, arm),
        (-arm, arm - thick),
        (-thick, 0),
    )
    return "M" + "L".join(f"{x + across:.1f} {y + down:.1f}" for across, down in corners) + "z"
