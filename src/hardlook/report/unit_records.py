"""What stands behind an example of a gallery: its record, and the command that answers the unit again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.report.markup import element, escape
from hardlook.report.numerals import NOTHING, counted, is_number, numeral

MOST_VALUES = 8
_LONGEST_TEXT = 120


@dataclass(frozen=True)
class UnitRecord:
    """The fields of a record as texts, in order, and a command line; either may be empty."""

    fields: Sequence[tuple[str, str]] = ()
    command: str = ""


def record_fields(record: Mapping[str, object]) -> list[tuple[str, str]]:
    """The record as names and texts: long lists and texts are cut, and say how long they are.

    >>> record_fields({"unit": "a", "hits": 12345, "clicks": list(range(40)), "mask": b"xyz"})[1:]
    [('hits', '12,345'), ('clicks', '0, 1, 2, 3, 4, 5, 6, 7, … (40 values)'), ('mask', '3 bytes')]
    """
    return [(name, _text(value) or NOTHING) for name, value in record.items()]


def draw_record(record: UnitRecord, unit: str) -> str:
    """The record in a box that opens, below the pictures."""
    parts = []
    if record.fields:
        rows = [
            element("div", element("dt", escape(name)), element("dd", escape(text))) for name, text in record.fields
        ]
        parts.append(element("dl", *rows, class_="fields"))
    if record.command:
        name = f"command that answers {unit} again"
        command = element("pre", element("code", escape(record.command)), tabindex=0, role="region", aria_label=name)
        parts.append(element("p", "Answer just this unit again:") + command)
    return element("details", element("summary", "the record"), *parts, class_="record") if parts else ""


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return counted(len(value), "byte")
    if isinstance(value, list | tuple):
        shown = ", ".join(_text(item) for item in value[:MOST_VALUES])
        return shown if len(value) <= MOST_VALUES else f"{shown}, … ({counted(len(value), 'value')})"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    if isinstance(value, int):
        return numeral(value, 0)
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", "\N{MINUS SIGN}") if is_number(value) else "undefined"
    text = ", ".join(str(value).split("\n"))
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({counted(len(text), 'character')})"
