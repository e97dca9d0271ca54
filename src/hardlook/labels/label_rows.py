"""Rows of text into labels, every cell checked.

>>> rows = [Row("line 2", {"name": "dog", "synset": "hound.n.01", "isthing": "yes"})]
>>> make_labels(rows, Path("pets.csv"))
(Label(id=0, name='dog', aliases=(), synset='hound.n.01', hypernym=None, isthing=True, ...),)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import Label, plain_name
from hardlook.wordnet.nouns import Nouns, load_nouns

COLUMNS = ("id", "category_id", "name", "aliases", "isthing", "synset", "offset", "hypernym", "status", "trainId")
STATUSES = ("chosen", "proposed", "choose", "absent")
_YES_NO = {"1": True, "true": True, "yes": True, "thing": True, "0": False, "false": False, "no": False, "stuff": False}


@dataclass(frozen=True)
class Row:
    """Cells of one label as the file has them, and where they stand in it."""

    place: str
    cells: dict[str, str]


def make_labels(rows: list[Row], path: Path, nouns: Nouns | None = None) -> tuple[Label, ...]:
    """Labels from rows; a `DataError` names the row and the column of the first thing that cannot be."""
    if not rows:
        raise DataError("no labels in this file", file=path, remedy="give at least one name")
    numbered = [bool(row.cells.get("id")) for row in rows]
    if any(numbered) and not all(numbered):
        lacking = rows[numbered.index(False)].place
        raise DataError("this row has no id and others have", file=path, unit=f"{lacking}, column id")
    if any(row.cells.get(column) for row in rows for column in ("synset", "offset", "hypernym")):
        nouns = nouns or load_nouns()
    labels = tuple(_label(number, row, path, nouns) for number, row in enumerate(rows))
    _refuse_twins(rows, [plain_name(label.name) for label in labels], "name", path)
    _refuse_twins(rows, [str(label.id) for label in labels], "id", path)
    return labels


def _label(number: int, row: Row, path: Path, nouns: Nouns | None) -> Label:
    cells = row.cells
    if not cells.get("name"):
        raise DataError("a label must have a name", file=path, unit=f"{row.place}, column name")
    status = cells.get("status", "").lower()
    if status and status not in STATUSES:
        raise _wrong(row, path, "status", f"one of {', '.join(STATUSES)}")
    identity = _integer(row, path, "id")
    return Label(
        id=number if identity is None else identity,
        name=cells["name"],
        aliases=tuple(word.strip() for word in cells.get("aliases", "").split("|") if word.strip()),
        synset=_synset(row, path, nouns),
        hypernym=_named_synset(row, path, "hypernym", nouns),
        isthing=_yes_no(row, path),
        category_id=_integer(row, path, "category_id"),
        proposed=status == "proposed",
    )


def _synset(row: Row, path: Path, nouns: Nouns | None) -> str | None:
    named, by_offset = (_named_synset(row, path, column, nouns) for column in ("synset", "offset"))
    if named and by_offset and named != by_offset:
        remedy = f"the offset is {by_offset}: correct one of the two"
        raise DataError(f"synset {named} and the offset differ", file=path, unit=row.place, remedy=remedy)
    return named or by_offset


def _named_synset(row: Row, path: Path, column: str, nouns: Nouns | None) -> str | None:
    text = row.cells.get(column)
    if not text or nouns is None:
        return None
    try:
        nouns.index(text)
    except OptionError as error:
        where = f"{row.place}, column {column} ({row.cells.get('name')})"
        raise DataError(error.what, file=path, unit=where, remedy=error.remedy) from error
    # Any of a synset's words may name it in a file; one name each keeps tables comparable.
    return nouns.name(nouns.index(text))


def _integer(row: Row, path: Path, column: str) -> int | None:
    text = row.cells.get(column)
    if not text:
        return None
    if not text.isdecimal():
        raise _wrong(row, path, column, "a whole number from 0")
    return int(text)


def _yes_no(row: Row, path: Path) -> bool | None:
    text = row.cells.get("isthing", "").lower()
    if text and text not in _YES_NO:
        raise _wrong(row, path, "isthing", "1 for a thing, 0 for stuff, or nothing")
    return _YES_NO.get(text)


def _wrong(row: Row, path: Path, column: str, expected: str) -> DataError:
    came = row.cells[column]
    return DataError(f"{came!r} is not {expected}", file=path, unit=f"{row.place}, column {column}")


def _refuse_twins(rows: list[Row], values: list[str], column: str, path: Path) -> None:
    first: dict[str, Row] = {}
    for row, value in zip(rows, values, strict=True):
        if value in first:
            what = f"{row.cells.get(column, value)!r} comes twice, first at {first[value].place}"
            raise DataError(
                what, file=path, unit=f"{row.place}, column {column}", remedy=f"give every label one {column}"
            )
        first[value] = row
