"""Galleries: the units behind a number, each with its pictures, its caption, its id to copy and its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hardlook.contract.sections import Example, Gallery, Picture
from hardlook.errors import HardlookError
from hardlook.report.markup import element, escape, inline, plain
from hardlook.report.numerals import counted
from hardlook.report.thumbnails import LONGEST, label_colour, labels_present, thumbnail, thumbnail_size
from hardlook.report.unit_records import UnitRecord, draw_record

_MOST_IN_LEGEND = 12
_ROOM_FOR_TWO = 540
# The pictures of a task are many and share a row: five to a row are shown no larger than this.
_MANY, LONGEST_OF_MANY = 5, 176
_POSITIVE, _NEGATIVE = "#00775a", "#b3261e"
_RIM = {"stroke": "#fff", "stroke_width": 1.4}
Pictures = Mapping[str, Sequence[Picture] | str]
Records = Mapping[str, UnitRecord]


def draw_gallery(
    gallery: Gallery,
    pictures: Pictures,
    *,
    key: str = "gallery",
    records: Records | None = None,
    opened: bool | None = None,
) -> str:
    """The gallery as an HTML fragment; a unit whose pictures are missing shows the reason that stands for them.

    `records` holds what opens below the pictures of a unit. With `opened` the gallery is a box that opens by a click
    or the keyboard, and is open or closed at first; None draws it plainly.
    """
    heading = element("h3", inline(gallery.title), id=f"{key}-heading")
    caption = element("p", inline(gallery.caption), class_="caption") if gallery.caption else ""
    if not gallery.examples:
        shown = element("p", "There is no unit to show here.", class_="nothing")
    else:
        examples = [_example(example, pictures, records or {}) for example in gallery.examples]
        small = all(_room(pictures.get(example.unit, "")) <= _ROOM_FOR_TWO for example in gallery.examples)
        shown = element("ul", *examples, class_="gallery two" if small else "gallery")
    if opened is None:
        return element("figure", element("figcaption", heading, caption), shown, class_="block", id=key)
    count = element("span", counted(len(gallery.examples), "unit"), class_="count")
    box = element("details", element("summary", heading, count), caption, shown, class_="box", open=opened)
    return element("figure", box, class_="block", id=key, aria_labelledby=f"{key}-heading")


def _room(found: Sequence[Picture] | str) -> int:
    """How wide the pictures of one unit are side by side."""
    return 0 if isinstance(found, str) else sum(thumbnail_size(picture)[0] for picture in found)


def _example(example: Example, pictures: Pictures, records: Records) -> str:
    unit = element("code", escape(example.unit), class_="unit", title="the unit's id; a click selects it")
    text = element("p", inline(example.caption)) if example.caption else ""
    behind = draw_record(records[example.unit], example.unit) if example.unit in records else ""
    return element("li", _shots(example, pictures), element("div", text, unit, behind, class_="about"))


def _shots(example: Example, pictures: Pictures) -> str:
    found = pictures.get(example.unit, "no picture was given for this unit")
    if isinstance(found, str):
        return element("p", inline(f"No picture: {found}"), class_="nothing")
    if not found:
        return element("p", "No picture: the unit has none.", class_="nothing")
    try:
        longest = LONGEST if len(found) < _MANY else LONGEST_OF_MANY
        shots = [_shot(picture, example, longest) for picture in found]
    except HardlookError as error:
        raise error.at(unit=example.unit) from None
    return element("div", *shots, class_="shots")


def _shot(picture: Picture, example: Example, longest: int) -> str:
    """One picture with its label, clicks and legend."""
    width, height = thumbnail_size(picture, longest)
    image = (
        f'<img src="{thumbnail(picture, longest)}" width="{width}" height="{height}" '
        f'alt="{escape(_alternative(picture, example))}"/>'
    )
    frame = element("div", image, _clicks(picture, width, height), class_="frame")
    name = element("span", inline(picture.label), class_="name") if picture.label else ""
    return element("div", frame, name, _legend(picture), class_="shot", style=f"--width:{max(width, 96)}px")


def _alternative(picture: Picture, example: Example) -> str:
    """The picture in words: what it is, of which unit, and what is drawn on it."""
    words = [f"{plain(picture.label) or 'picture'} of {example.unit}"]
    if picture.mask is not None:
        words.append(f"a mask over {picture.mask.mean():.1%} of the image")
    if picture.label_map is not None:
        names = [_name(picture, label) for label in labels_present(picture)]
        words.append("labels: " + (", ".join(names[:_MOST_IN_LEGEND]) or "none"))
    if picture.points:
        positive = sum(point[2] for point in picture.points)
        words.append(f"{counted(positive, 'positive click')}, {len(picture.points) - positive} negative")
    return "; ".join(words)


def _clicks(picture: Picture, width: int, height: int) -> str:
    if not picture.points:
        return ""
    rows, columns = picture.image.shape[:2]
    discs = []
    for order, (x, y, positive) in enumerate(picture.points, start=1):
        at = ((x + 0.5) * width / columns, (y + 0.5) * height / rows)
        discs.append(_numbered(at, order, positive, picture, width, height) if picture.ordered else _dot(at, positive))
    return element("svg", *discs, viewBox=f"0 0 {width} {height}", aria_hidden="true", class_="clicks")


def _numbered(at: tuple[float, float], order: int, positive: bool, picture: Picture, width: int, height: int) -> str:
    radius = 10.0 if len(picture.points) < 10 else 8.5
    # Clicks at the border stay whole; their place is then off by less than the disc.
    cx = min(max(at[0], radius), max(width - radius, radius))
    cy = min(max(at[1], radius), max(height - radius, radius))
    disc = element("circle", cx=cx, cy=cy, r=radius, fill=_POSITIVE if positive else _NEGATIVE, **_RIM)
    size = 12 if radius > 9 else 10
    number = element(
        "text", escape(order), x=cx, y=cy + 4.2, text_anchor="middle", font_size=size, font_weight=700, fill="#fff"
    )
    return disc + number


def _dot(at: tuple[float, float], positive: bool) -> str:
    fill = _POSITIVE if positive else _NEGATIVE
    return element("circle", cx=at[0], cy=at[1], r=3, fill=fill, stroke="#fff", stroke_width=0.9)


def _legend(picture: Picture) -> str:
    labels = labels_present(picture)
    if not labels:
        return ""
    entries = [
        element(
            "li",
            element("i", style="background:rgb({},{},{})".format(*label_colour(label))),
            escape(_name(picture, label)),
        )
        for label in labels[:_MOST_IN_LEGEND]
    ]
    if len(labels) > _MOST_IN_LEGEND:
        entries.append(element("li", f"and {len(labels) - _MOST_IN_LEGEND} more"))
    return element("ul", *entries, class_="labels")


def _name(picture: Picture, label: int) -> str:
    return picture.label_names[label] if label < len(picture.label_names) else f"label {label}"
