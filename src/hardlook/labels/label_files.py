r"""A user's own labels from CSV, TSV, JSON or plain text.

| file | holds |
|---|---|
| `.csv`, `.tsv` | a header with `name`; also `id`, `category_id`, `aliases` (between them |), `isthing`, `synset`, |
| | `offset`, `hypernym`, and the `status` that `hardlook labels map` writes |
| `.json` | a list of names or of objects with those keys, `{"categories": [...]}` (COCO, LVIS), or `{"0": "wall"}` |
| `.txt` | a name a line, or `id: name`; further words after commas or semicolons are aliases |

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
from pathlib import Path
from typing import Any

from hardlook.errors import DataError
from hardlook.labels.label_rows import COLUMNS, Row, make_labels
from hardlook.labels.label_set import LabelSet
from hardlook.labels.lvis import read_lvis_labels
from hardlook.wordnet.nouns import Nouns


def read_label_file(path: Path, *, nouns: Nouns | None = None) -> LabelSet:
    """The labels of a file, checked: a `DataError` names the row, the column and what would do."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("this is no UTF-8 text", file=path, remedy="save the file as UTF-8") from error
    if path.suffix.lower() == ".json":
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"not JSON: {error.msg}", file=path, unit=f"line {error.lineno}") from error
        if _is_lvis(content):
            return read_lvis_labels(path, nouns)
        rows = _json_rows(content, path)
    elif path.suffix.lower() in (".csv", ".tsv"):
        rows = _table_rows(text, path, "\t" if path.suffix.lower() == ".tsv" else ",")
    else:
        rows = _text_rows(text, path)
    return LabelSet(path.stem, "file", make_labels(rows, path, nouns))


def _table_rows(text: str, path: Path, delimiter: str) -> list[Row]:
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
            raise DataError(
                f"a row must have {len(header)} cells, as the header has", file=path, unit=place,
                remedy="quote a cell that contains the separator",
            )  # fmt: skip
        rows.append(Row(place, {column: value.strip() for column, value in values.items()}))
    return rows


def _check_header(header: list[str], path: Path) -> None:
    from difflib import get_close_matches

    for column in header:
        meant = get_close_matches(column, [known for known in COLUMNS if known not in header], n=1, cutoff=0.8)
        if column not in COLUMNS and meant:
            raise DataError(f"no column {column!r} is known", file=path, remedy=f"did you mean {meant[0]!r}?")
    twice = sorted({column for column in header if header.count(column) > 1})
    if twice:
        raise DataError(f"the column {twice[0]!r} comes twice", file=path, remedy="keep one")


def _json_rows(content: Any, path: Path) -> list[Row]:
    if isinstance(content, dict) and isinstance(content.get("categories"), list):
        # In COCO's files `id` is the category id, and the order of the categories counts the labels.
        items = [
            {**item, "category_id": item.get("id"), "id": row} if isinstance(item, dict) else item
            for row, item in enumerate(content["categories"])
        ]
    elif isinstance(content, dict):
        items = [{"id": key, "name": name} for key, name in content.items()]
    elif isinstance(content, list):
        items = [{"name": item} if isinstance(item, str) else item for item in content]
    else:
        raise DataError("no list of labels here", file=path, remedy="give a list, `categories`, or id: name pairs")
    rows = []
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise DataError(f"a label must be a name or an object, not {item!r}", file=path, unit=f"item {number}")
        if "trainId" in item:  # ADE20K's full list counts its classes by trainId, its masks by id
            item = {**item, "id": item["trainId"], "category_id": item.get("id")}
        cells = {str(key): _cell(value) for key, value in item.items() if key in COLUMNS}
        rows.append(_with_aliases(f"item {number}", cells))
    return rows


def _text_rows(text: str, path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        numbered = re.fullmatch(r"\s*(\d+)\s*[:\t,]\s*(.+)", line)
        cells = {"id": numbered[1], "name": numbered[2].strip()} if numbered else {"name": line.strip()}
        rows.append(_with_aliases(f"line {number}", cells))
    bare = [row.place for row in rows if "id" not in row.cells]
    if 0 < len(bare) < len(rows):
        remedy = "write `id: name` on every line, or on none"
        raise DataError("some lines have an id and this one has none", file=path, unit=bare[0], remedy=remedy)
    return rows


def _with_aliases(place: str, cells: dict[str, str]) -> Row:
    words = [word.strip() for word in re.split(r"[,;]", cells.get("name", "")) if word.strip()]
    if len(words) > 1 and not cells.get("aliases"):
        cells = {**cells, "name": words[0], "aliases": "|".join(words[1:])}
    return Row(place, cells)


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return "|".join(str(part) for part in value)
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value).strip()


def _is_lvis(content: object) -> bool:
    categories = content.get("categories") if isinstance(content, dict) else None
    return isinstance(categories, list) and any(isinstance(item, dict) and "synset" in item for item in categories)
