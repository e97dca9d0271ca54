"""Galleries: example units, each with its pictures, its caption, its id to copy, its record and its command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.errors import HardlookError
from hardlook.harness.sections import Example, Gallery, Picture
from hardlook.report.formatting import MISSING, format_count, format_number, is_number
from hardlook.report.markup import element, escape, render_inline
from hardlook.report.pictures import (
    LONGEST,
    compute_thumbnail_size,
    describe_picture,
    encode_thumbnail,
    list_labels,
    list_legend,
)

MAX_VALUES, _LONGEST_TEXT, _MAX_IN_LEGEND, _WIDTH_FOR_TWO = 8, 120, 12, 540

# Five or more pictures of a unit share a row and are shown no larger than this.
_MANY, LONGEST_OF_MANY = 5, 176


@dataclass(frozen=True)
class UnitRecord:
    """The fields of a record as texts, in order, and the command that evaluates the unit again; either may be empty."""

    fields: Sequence[tuple[str, str]] = ()
    command: str = ""


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
    """The gallery as an HTML fragment; `pictures` has those of each unit, or the reason why there are none.

    `records` has what opens below the pictures of a unit. With `opened` the gallery is a box that can be opened, and
    is open or closed at first; None draws it without a box.
    """
    heading = element("h3", render_inline(gallery.title), id=f"{key}-heading")
    caption = element("p", render_inline(gallery.caption), class_="caption") if gallery.caption else ""
    if not gallery.examples:
        shown = element("p", "There is no unit to show here.", class_="nothing")
    else:
        examples = [_draw_example(example, pictures, records or {}) for example in gallery.examples]
        small = all(_measure_width(pictures.get(example.unit, "")) <= _WIDTH_FOR_TWO for example in gallery.examples)
        shown = element("ul", *examples, class_="gallery two" if small else "gallery")
    if opened is None:
        return element("figure", element("figcaption", heading, caption), shown, class_="block", id=key)
    count = element("span", format_count(len(gallery.examples), "unit"), class_="count")
    box = element("details", element("summary", heading, count), caption, shown, class_="box", open=opened)
    return element("figure", box, class_="block", id=key, aria_labelledby=f"{key}-heading")


def _measure_width(found: Sequence[Picture] | str) -> int:
    """The width of the pictures of one unit side by side."""
    return 0 if isinstance(found, str) else sum(compute_thumbnail_size(picture)[0] for picture in found)


def _draw_example(example: Example, pictures: Pictures, records: Records) -> str:
    unit = element("code", escape(example.unit), class_="unit", title="the unit's id; a click selects it")
    text = element("p", render_inline(example.caption)) if example.caption else ""
    behind = draw_record(records[example.unit], example.unit) if example.unit in records else ""
    return element("li", _draw_pictures(example, pictures), element("div", text, unit, behind, class_="about"))


def _draw_pictures(example: Example, pictures: Pictures) -> str:
    found = pictures.get(example.unit, "no picture was given for this unit")
    if isinstance(found, str):
        return element("p", render_inline(f"No picture: {found}"), class_="nothing")
    if not found:
        return element("p", "No picture: the unit has none.", class_="nothing")
    try:
        longest = LONGEST if len(found) < _MANY else LONGEST_OF_MANY
        shots = [_draw_picture(picture, example, longest) for picture in found]
    except HardlookError as error:
        raise error.at(unit=example.unit) from None
    return element("div", *shots, class_="shots")


def _draw_picture(picture: Picture, example: Example, longest: int) -> str:
    """One picture with its label, clicks and legend."""
    width, height = compute_thumbnail_size(picture, longest)
    image = (
        f'<img src="{encode_thumbnail(picture, longest)}" width="{width}" height="{height}" '
        f'alt="{escape(describe_picture(picture, example.unit, most_labels=_MAX_IN_LEGEND))}"/>'
    )
    frame = element("div", image, _draw_clicks(picture, width, height), class_="frame")
    name = element("span", render_inline(picture.label), class_="name") if picture.label else ""
    return element("div", frame, name, _draw_legend(picture), class_="shot", style=f"--width:{max(width, 96)}px")


def _draw_clicks(picture: Picture, width: int, height: int) -> str:
    if not picture.points:
        return ""
    rows, columns = picture.image.shape[:2]
    discs = []
    radius, size = (10.0, 12) if len(picture.points) < 10 else (8.5, 10)
    for order, (x, y, positive) in enumerate(picture.points, start=1):
        fill = "#00775a" if positive else "#b3261e"
        cx, cy = (x + 0.5) * width / columns, (y + 0.5) * height / rows
        if not picture.ordered:
            discs.append(element("circle", cx=cx, cy=cy, r=3, fill=fill, stroke="#fff", stroke_width=0.9))
            continue
        # A click at the border is moved inwards by at most the radius of its disc.
        cx = min(max(cx, radius), max(width - radius, radius))
        cy = min(max(cy, radius), max(height - radius, radius))
        font = {"text_anchor": "middle", "font_size": size, "font_weight": 700, "fill": "#fff"}
        discs.append(element("circle", cx=cx, cy=cy, r=radius, fill=fill, stroke="#fff", stroke_width=1.4))
        discs.append(element("text", escape(order), x=cx, y=cy + 4.2, **font))
    return element("svg", *discs, viewBox=f"0 0 {width} {height}", aria_hidden="true", class_="clicks")


def _draw_legend(picture: Picture) -> str:
    legend = list_legend(picture, _MAX_IN_LEGEND)
    entries = [element("li", element("i", style=f"background:{colour}"), escape(name)) for name, colour in legend]
    more = len(list_labels(picture)) - _MAX_IN_LEGEND
    if more > 0:
        entries.append(element("li", f"and {more} more"))
    return element("ul", *entries, class_="labels") if entries else ""


def format_record_fields(record: Mapping[str, object]) -> list[tuple[str, str]]:
    """The record as names and texts; long lists and texts are cut, with their length.

    >>> format_record_fields({"unit": "a", "hits": 12345, "clicks": list(range(40)), "mask": b"xyz"})[1:]
    [('hits', '12,345'), ('clicks', '0, 1, 2, 3, 4, 5, 6, 7, … (40 values)'), ('mask', '3 bytes')]
    """
    return [(name, _format_value(value) or MISSING) for name, value in record.items()]


def draw_record(record: UnitRecord, unit: str) -> str:
    """The record in a box that can be opened, below the pictures."""
    parts = []
    if record.fields:
        terms = ((element("dt", escape(name)), element("dd", escape(text))) for name, text in record.fields)
        parts.append(element("dl", *(element("div", *term) for term in terms), class_="fields"))
    if record.command:
        name = f"command that evaluates {unit} again"
        command = element("pre", element("code", escape(record.command)), tabindex=0, role="region", aria_label=name)
        parts.append(element("p", "Evaluate this unit alone:") + command)
    return element("details", element("summary", "the record"), *parts, class_="record") if parts else ""


def _format_value(value: object) -> str:
    if isinstance(value, bytes):
        return format_count(len(value), "byte")
    if isinstance(value, list | tuple):
        shown = ", ".join(_format_value(item) for item in value[:MAX_VALUES])
        return shown if len(value) <= MAX_VALUES else f"{shown}, … ({format_count(len(value), 'value')})"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    if isinstance(value, int):
        return format_number(value, 0)
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", "\N{MINUS SIGN}") if is_number(value) else "undefined"
    text = ", ".join(str(value).split("\n"))
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({format_count(len(text), 'character')})"
