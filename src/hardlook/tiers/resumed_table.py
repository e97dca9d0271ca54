"""A table of attributes on disk that goes on where it stopped.

Beside `attributes.csv` lies `attributes.json`: which models and which data its rows come from, or which ready table.
Rows of the same models and data are not measured again; those of others are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hardlook.data.class_masks import ClassMasks
from hardlook.errors import DataError
from hardlook.fingerprint import of_data
from hardlook.tiers.attribute_rows import AttributeRow, append_attributes, read_attributes, write_attributes
from hardlook.tiers.attribute_table import AttributeModels, FailedImage, measure_attributes

SCHEMA = "hardlook.attributes/1"
Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class MeasuredTable:
    """The rows in the order of their tokens, the images that failed, and how many rows were there before."""

    rows: tuple[AttributeRow, ...]
    failures: tuple[FailedImage, ...]
    found: int


def data_fingerprints(source: ClassMasks, without: Path | None = None) -> dict[str, str]:
    """A fingerprint for each folder and file of the source; `without` is an output folder that lies inside."""
    return {name: of_data(path, without=without) for name, path in sorted(source.paths().items())}


def resumed_table(
    path: Path,
    source: ClassMasks,
    tokens: Sequence[str],
    models: AttributeModels,
    identity: Mapping[str, object],
    *,
    progress: Callable[[int, int], Advance] | None = None,
) -> MeasuredTable:
    """Measure what the table at `path` lacks and write it whole, in the order of `tokens`.

    `identity` says in JSON what the rows depend on: fingerprints of models and data. `progress(images, done)` gives
    the callback that hears of images done and failed.
    """
    beside, said = path.with_suffix(".json"), _said(identity)
    known = {row.filename: row for row in _kept(path, beside, said)}
    wanted = [token for token in tokens if token not in known]
    if not known:
        path.unlink(missing_ok=True)
    _say(beside, said)
    found = sum(token in known for token in tokens)

    def keep(rows: Sequence[AttributeRow]) -> None:
        known.update({row.filename: row for row in rows})
        append_attributes(path, rows)

    images = {source.image_of(token) for token in tokens}
    waiting = {source.image_of(token) for token in wanted}
    advance = progress(len(images), len(images) - len(waiting)) if progress else lambda done, failed: None
    failures = measure_attributes(source, wanted, models, keep=keep, advance=advance)
    rows = tuple(known[token] for token in tokens if token in known)
    write_attributes(path, rows)
    return MeasuredTable(rows, tuple(failures), found)


def adopted_table(path: Path, rows: Sequence[AttributeRow], digest: str) -> None:
    """Write rows that were taken from a ready table with the sha256 `digest`, and say so beside them.

    What is said comes first: a stop between the two leaves rows that no models own, and they are measured again.
    """
    _say(path.with_suffix(".json"), _said({"attributes": digest}))
    write_attributes(path, rows)


def is_measured_table(path: Path) -> bool:
    """Whether something is said beside the table at `path`: this program wrote it."""
    earlier = _earlier(path.with_suffix(".json"))
    return isinstance(earlier, dict) and earlier.get("schema") == SCHEMA


def _said(identity: Mapping[str, object]) -> dict[str, object]:
    return {"schema": SCHEMA, **identity}


def _say(beside: Path, said: Mapping[str, object]) -> None:
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _earlier(beside: Path) -> object:
    try:
        return json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _kept(path: Path, beside: Path, said: Mapping[str, object]) -> tuple[AttributeRow, ...]:
    if _earlier(beside) != json.loads(json.dumps(said)) or not path.is_file():
        return ()
    try:
        rows = read_attributes(path, unfinished=True)
    except DataError:
        return ()  # damaged by the disk or by hand: measuring again heals it
    write_attributes(path, rows)  # a half-written last line goes, so that new rows can follow
    return rows
