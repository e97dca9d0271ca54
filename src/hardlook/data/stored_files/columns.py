"""Which column or member of a dataset is what: found by the usual words, or named by `--columns image=photo,...`.

>>> parse_columns("image=photo, box=xyxy")
{'image': 'photo', 'box': 'xyxy'}
>>> choose_column("label", {"photo": "image", "kind": "text"}, ("label", "class"), {"label": "kind"}, file=Path("a"))
'kind'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hardlook.data.stored_files.samples import BoxFormat
from hardlook.errors import DataError, OptionError, shorten

KEYS = {
    "image": "the image",
    "mask": "the label map",
    "objects": "the objects of an image",
    "bbox": "the box of an object",
    "category": "the category of an object",
    "segmentation": "the mask of an object",
    "label": "the label of an image",
    "context": "the context of an image",
    "box": "how boxes are written: xywh (the default) or xyxy",
}
SUMMARY = "Columns of a Hugging Face dataset that have other names, such as image=photo,label=species; box=xyxy."


def parse_columns(text: str) -> dict[str, str]:
    """The columns that `--columns` names, by what they hold; an `OptionError` for a word that means nothing here."""
    columns = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, name = (word.strip() for word in part.partition("="))
        if key not in KEYS or not name or (key == "box" and name not in ("xywh", "xyxy")):
            known = ", ".join(f"{key} ({meaning})" for key, meaning in KEYS.items())
            raise OptionError(f"--columns {shorten(part, 60)}", remedy=f"give KEY=COLUMN; keys are {known}")
        columns[key] = name
    return columns


def read_box_format(columns: Mapping[str, str]) -> BoxFormat:
    """How boxes are written."""
    return "xyxy" if columns.get("box") == "xyxy" else "xywh"


def choose_column(
    key: str,
    candidates: Mapping[str, str],
    words: Sequence[str],
    columns: Mapping[str, str],
    *,
    file: Path,
    present: Mapping[str, str] | None = None,
) -> str:
    """The column of `candidates` (name to kind) that holds `key`: the one named, the one of a usual name, the only one.

    `present` are all columns, for the error.
    """
    found = find_column(key, candidates, words, columns, file=file, present=present)
    if found is not None:
        return found
    what = f"no column is {KEYS[key]}; {_list_columns(present or candidates)}"
    raise DataError(what, file=file, remedy=f"pass --columns {key}=NAME, or call it {words[0]}: rename_column(...)")


def find_column(
    key: str,
    candidates: Mapping[str, str],
    words: Sequence[str],
    columns: Mapping[str, str],
    *,
    file: Path,
    present: Mapping[str, str] | None = None,
    only: bool = True,
) -> str | None:
    """As `choose_column`, None where there is none; the only candidate is taken with `only`."""
    if key in columns:
        if columns[key] in candidates:
            return columns[key]
        what = f"--columns {key}={columns[key]}: no such column for {KEYS[key]}; {_list_columns(present or candidates)}"
        raise DataError(what, file=file, remedy="name one of these")
    named = [name for word in words for name in candidates if name.lower() == word]
    if len(named) > 1:
        what = f"several columns may be {KEYS[key]}: {', '.join(named)}"
        raise DataError(what, file=file, remedy=f"pass --columns {key}=NAME")
    if named:
        return named[0]
    return next(iter(candidates)) if only and len(candidates) == 1 else None


def _list_columns(columns: Mapping[str, str]) -> str:
    listed = ", ".join(f"{name} ({shorten(kind, 40)})" for name, kind in list(columns.items())[:20])
    return f"columns are {listed or 'none'}"
