r"""Read a user's own labels from CSV, TSV, JSON or plain text.

| file | content |
|---|---|
| `.csv`, `.tsv` | a header with `name`; also `id`, `category_id`, `aliases` (separated by |), `isthing`, `synset`, |
| | `offset`, `hypernym`, and the `status` that `hardlook labels map` writes |
| `.json` | a list of names or of objects with those keys, `{"categories": [...]}` (COCO, LVIS), or `{"0": "wall"}` |
| `.txt` | one name per line, or `id: name`; further words after commas or semicolons are aliases |

Lines that begin with `#` are comments. Ids default to the order of the rows, from 0.

>>> import pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "rooms.txt"
>>> _ = file.write_text("7: door, double door\n9: wall\n")
>>> [(label.id, label.name, label.aliases) for label in read_label_file(file)]
[(7, 'door', ('double door',)), (9, 'wall', ())]
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, OptionError
from hardlook.reading import read_json, reading
from hardlook.similarity.labels import Label, LabelSet, normalise_name
from hardlook.similarity.wordnet.nouns import Nouns, load_nouns

_COLUMNS = ("id", "category_id", "name", "aliases", "isthing", "synset", "offset", "hypernym", "status", "trainId")
STATUSES = ("chosen", "proposed", "choose", "absent")
_THINGS = {"1": True, "true": True, "yes": True, "thing": True, "0": False, "false": False, "no": False, "stuff": False}


@dataclass(frozen=True)
class _Row:
    """Cells of one label as in the file, and the line or item that they come from."""

    file: Path
    place: str
    cells: dict[str, str]

    def error(self, what: str, column: str, remedy: str = "") -> DataError:
        return DataError(what, file=self.file, unit=f"{self.place}, column {column}", remedy=remedy)

    def wrong_cell(self, column: str, expected: str) -> DataError:
        return self.error(f"{self.cells[column]!r} is not {expected}", column)


def read_label_file(path: Path, *, nouns: Nouns | None = None) -> LabelSet:
    """The labels of a file; a `DataError` names the row, the column and the remedy."""
    suffix = path.suffix.lower()
    with reading(path, "not a file of labels", remedy="write it as docs/label-tables.md shows, in UTF-8"):
        if suffix == ".json":
            content = _parse_json(path)
            if _is_lvis(content):
                return read_lvis_labels(path, nouns)
            rows = _read_json(content, path)
        else:
            text = _read_utf8(path)
            delimiters = {".csv": ",", ".tsv": "\t"}
            rows = _read_table(text, path, delimiters[suffix]) if suffix in delimiters else _read_text(text, path)
        return LabelSet(path.stem, "file", _make_labels(rows, path, nouns))


def _read_utf8(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8 text", file=path, remedy="save the file as UTF-8") from error


def _parse_json(path: Path) -> Any:
    try:
        return json.loads(_read_utf8(path))
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg}", file=path, unit=f"line {error.lineno}") from error


def read_lvis_labels(path: Path | str, nouns: Nouns | None = None) -> LabelSet:
    """The labels of an LVIS annotation file, by category id; all are things.

    `id` counts from 0, `category_id` is LVIS's own. If WordNet 3.0 does not have the synset, `synset` is None and
    `stated` keeps its name, so that the label is treated and counted like any other without a synset.
    """
    path = Path(path)
    nouns = nouns or load_nouns()
    content = read_json(path, what="not an LVIS json", remedy="give a file with a list `categories`")
    with reading(path, "not an LVIS json", remedy="give a file with a list `categories`"):
        categories = content["categories"]
        labels = []
        for row, category in enumerate(sorted(categories, key=lambda category: int(category["id"]))):
            for field in ("name", "synset"):
                if field not in category:
                    remedy = "read a file without synsets with load_label_set"
                    raise DataError(
                        f"a category has no {field!r}", file=path, unit=f"id {category['id']}", remedy=remedy
                    )
            name, stated = str(category["name"]), str(category["synset"])
            try:
                synset = nouns.name(nouns.index(stated))
            except OptionError:
                synset = None
            labels.append(
                Label(
                    id=row,
                    name=name,
                    aliases=tuple(str(word) for word in category.get("synonyms") or () if word != name),
                    synset=synset,
                    isthing=True,
                    category_id=int(category["id"]),
                    stated=None if synset else stated,
                )
            )
    return LabelSet(path.stem, "file", tuple(labels))


def _read_table(text: str, path: Path, delimiter: str) -> list[_Row]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    reader = csv.DictReader([line for _, line in lines], delimiter=delimiter, skipinitialspace=True)
    header = [column.strip().lower() for column in reader.fieldnames or []]
    reader.fieldnames = header
    if "name" not in header:
        found = ", ".join(header) or "nothing"
        raise DataError("no column `name`", file=path, remedy=f"the first line must name the columns; it has {found}")
    _check_header(header, path)
    rows = []
    for values in reader:
        place = f"line {lines[reader.line_num - 1][0]}"
        if None in values or None in values.values():
            remedy = "quote a cell that contains the separator"
            raise DataError(
                f"a row must have {len(header)} cells, as the header has", file=path, unit=place, remedy=remedy
            )
        rows.append(_Row(path, place, {column: value.strip() for column, value in values.items()}))
    return rows


def _check_header(header: list[str], path: Path) -> None:
    from difflib import get_close_matches

    for column in header:
        meant = get_close_matches(column, [known for known in _COLUMNS if known not in header], n=1, cutoff=0.8)
        if column not in _COLUMNS and meant:
            raise DataError(f"unknown column {column!r}", file=path, remedy=f"did you mean {meant[0]!r}?")
    if twice := sorted({column for column in header if header.count(column) > 1}):
        raise DataError(f"duplicate column {twice[0]!r}", file=path, remedy="keep one")


def _read_json(content: Any, path: Path) -> list[_Row]:
    if isinstance(content, dict) and isinstance(content.get("categories"), list):
        # In COCO's files `id` is the category id, and labels are numbered in the order of the categories.
        items = [
            {**item, "category_id": item.get("id"), "id": row} if isinstance(item, dict) else item
            for row, item in enumerate(content["categories"])
        ]
    elif isinstance(content, dict):
        items = [{"id": key, "name": name} for key, name in content.items()]
    elif isinstance(content, list):
        items = [{"name": item} if isinstance(item, str) else item for item in content]
    else:
        remedy = "give a list, `categories`, or id: name pairs"
        raise DataError("no list of labels in this file", file=path, remedy=remedy)
    rows = []
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise DataError(f"a label must be a name or an object, not {item!r}", file=path, unit=f"item {number}")
        if "trainId" in item:  # ADE20K's full list numbers classes by trainId, and its masks hold id
            item = {**item, "id": item["trainId"], "category_id": item.get("id")}
        cells = {str(key): _to_text(value) for key, value in item.items() if key in _COLUMNS}
        rows.append(_Row(path, f"item {number}", cells))
    return _split_aliases(rows)


def _read_text(text: str, path: Path) -> list[_Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        numbered = re.fullmatch(r"\s*(\d+)\s*[:\t,]\s*(.+)", line)
        cells = {"id": numbered[1], "name": numbered[2].strip()} if numbered else {"name": line.strip()}
        rows.append(_Row(path, f"line {number}", cells))
    return _split_aliases(rows)


def _split_aliases(rows: list[_Row]) -> list[_Row]:
    """The rows with the first word of a name as the name and the others as aliases.

    Where several rows begin with the same word, as "bag" and "bag, handbag" of ADE20K's 847 classes do, the whole text
    is the name.
    """
    words = [[word.strip() for word in re.split(r"[,;]", row.cells.get("name", "")) if word.strip()] for row in rows]
    firsts = Counter(normalise_name(parts[0]) for parts in words if parts)
    split = []
    for row, parts in zip(rows, words, strict=True):
        if parts and not row.cells.get("aliases"):  # a comma at the end separates nothing
            name = parts[0] if firsts[normalise_name(parts[0])] == 1 else ", ".join(parts)
            row = replace(row, cells={**row.cells, "name": name, "aliases": "|".join(parts[1:])})
        split.append(row)
    return split


def _to_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return "|".join(str(part) for part in value)
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value).strip()


def _is_lvis(content: object) -> bool:
    categories = content.get("categories") if isinstance(content, dict) else None
    return isinstance(categories, list) and any(isinstance(item, dict) and "synset" in item for item in categories)


def _make_labels(rows: list[_Row], path: Path, nouns: Nouns | None = None) -> tuple[Label, ...]:
    """Labels from rows; a `DataError` names the row and the column of the first wrong cell."""
    if not rows:
        raise DataError("no labels in this file", file=path, remedy="give at least one name")
    without_id = [row for row in rows if not row.cells.get("id")]
    if 0 < len(without_id) < len(rows):
        raise without_id[0].error("this row has no id and others have", "id", "give every row an id, or none")
    if any(row.cells.get(column) for row in rows for column in ("synset", "offset", "hypernym")):
        nouns = nouns or load_nouns()
    labels = tuple(_make_label(number, row, nouns) for number, row in enumerate(rows))
    _check_unique(rows, [normalise_name(label.name) for label in labels], "name")
    _check_unique(rows, [str(label.id) for label in labels], "id")
    return labels


def _make_label(number: int, row: _Row, nouns: Nouns | None) -> Label:
    cells = row.cells
    if not cells.get("name"):
        raise row.error("a label must have a name", "name")
    status, thing = cells.get("status", "").lower(), cells.get("isthing", "").lower()
    if status and status not in STATUSES:
        raise row.wrong_cell("status", f"one of {', '.join(STATUSES)}")
    if thing and thing not in _THINGS:
        raise row.wrong_cell("isthing", "1 for a thing, 0 for stuff, or nothing")
    synset, by_offset, hypernym = (_find_synset(row, column, nouns) for column in ("synset", "offset", "hypernym"))
    if synset and by_offset and synset != by_offset:
        remedy = f"the offset is {by_offset}: correct one of the two"
        raise row.error(f"synset {synset} and the offset differ", "offset", remedy)
    identity = _parse_integer(row, "id")
    return Label(
        id=number if identity is None else identity,
        name=cells["name"],
        aliases=tuple(word.strip() for word in cells.get("aliases", "").split("|") if word.strip()),
        synset=synset or by_offset,
        hypernym=hypernym,
        isthing=_THINGS.get(thing),
        category_id=_parse_integer(row, "category_id"),
        proposed=status == "proposed",
    )


def _find_synset(row: _Row, column: str, nouns: Nouns | None) -> str | None:
    text = row.cells.get(column)
    if not text or nouns is None:
        return None
    try:
        # A file may name a synset by any of its words; its one canonical name keeps tables comparable.
        return nouns.name(nouns.index(text))
    except OptionError as error:
        raise row.error(error.what, f"{column} ({row.cells.get('name')})", error.remedy or "") from error


def _parse_integer(row: _Row, column: str) -> int | None:
    text = row.cells.get(column)
    if not text:
        return None
    if not text.isdecimal():
        raise row.wrong_cell(column, "a whole number from 0")
    return int(text)


def _check_unique(rows: list[_Row], values: list[str], column: str) -> None:
    first: dict[str, _Row] = {}
    for row, value in zip(rows, values, strict=True):
        if value in first:
            what = f"{row.cells.get(column, value)!r} is a duplicate, first at {first[value].place}"
            raise row.error(what, column, f"give every label one {column}")
        first[value] = row
