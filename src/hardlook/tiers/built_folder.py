"""The folder of built tiers: pair lists where the TOSS repository has them, and a manifest with their hashes.

| place | what |
|---|---|
| `tiers/attribute/`, `tiers/suppcog/`, `tiers/general/` | the lists of tiers 1, 2 and 3 |
| `fixedsplits/<name>/` | random pairs of one class |
| `analysis/test_stats.csv` | the attributes of every mask |
| `manifest.json` | seed, models, data, thresholds, counts a cell, sha256 of every file |
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hardlook.data.toss_pairs import Pair, fixed_file, pair_file, write_pairs
from hardlook.errors import DataError, OptionError
from hardlook.fingerprint import of_file
from hardlook.tiers.built_tiers import BuiltTiers
from hardlook.tiers.resumed_table import is_measured_table

SCHEMA = "hardlook.built-toss/1"
MANIFEST = "manifest.json"
TABLE = Path("analysis") / "test_stats.csv"
_LISTS = ("tiers/*/*.txt", "fixedsplits/*/*.txt")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def refuse_other_lists(root: Path) -> None:
    """A `DataError` where `root` holds pair lists that no build wrote: a build would remove them.

    A build, finished or not, left a manifest or said beside its table what it measured.
    """
    lists = _lists_in(root)
    if lists and not (_is_manifest(root / MANIFEST) or is_measured_table(root / TABLE)):
        remedy = "give an empty or a new folder, or one that `hardlook build toss` wrote"
        raise DataError(f"the folder holds {len(lists)} pair lists that no build wrote", file=root, remedy=remedy)


def plain_name(name: str) -> str:
    """The name of the fixed lists when it can name a folder, else an `OptionError`.

    >>> plain_name("pascal5i")
    'pascal5i'
    """
    if not _PLAIN_NAME.fullmatch(name):
        remedy = "letters, digits, '.', '_' and '-', a letter or digit first"
        raise OptionError(f"--name {name}: this names no folder of its own", remedy=remedy)
    return name


def write_lists(root: Path, built: BuiltTiers, general: Sequence[Pair], fixed_name: str) -> list[Path]:
    """Write all pair lists under `root` and return their paths; tier 3 only where there are pairs.

    Lists of an earlier build that this one does not have are removed, since a run would score them too.
    """
    plain_name(fixed_name)
    written = []
    for (tier, fold, split), pairs in built.lists.items():
        if tier:
            path = pair_file(root, tier, fold, split).path
        else:
            path = fixed_file(root, fixed_name, fold).path
        write_pairs(path, pairs)
        written.append(path)
    if general:
        path = pair_file(root, 3).path
        write_pairs(path, general)
        written.append(path)
    for path in set(_lists_in(root)) - set(written):
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return written


def write_manifest(
    root: Path, built: BuiltTiers, general: Sequence[Pair], files: Sequence[Path], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write `manifest.json`, which names no time and no place, and return it; `facts` come first in it."""
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        **facts,
        "folds": [list(classes) for classes in built.folds],
        "cells": [
            {
                "fold": fold,
                "class": cell.class_name,
                "query": cell.query_partition,
                "support": cell.support_partition,
                "queries": cell.queries,
                "supports": cell.supports,
                "pairs": len(cell.pairs),
            }
            for fold, cells in built.cells.items()
            for cell in cells
        ],
        "levels": {name: dict(counts) for name, counts in built.levels.items()},
        "general_pairs": len(general),
        "unfilled": [asdict(one) for one in built.unfilled],
        "files": {path.relative_to(root).as_posix(): of_file(path) for path in sorted(files)},
    }
    beside = root / f".{MANIFEST}"
    beside.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    beside.replace(root / MANIFEST)
    return manifest


def _lists_in(root: Path) -> list[Path]:
    return [path for pattern in _LISTS for path in sorted(root.glob(pattern))]


def _is_manifest(path: Path) -> bool:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("schema") == SCHEMA


def changed_files(root: Path) -> tuple[str, ...]:
    """The files under `root` that are gone or are not what its manifest says."""
    try:
        manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        remedy = "give the folder that `hardlook build toss` wrote"
        raise DataError(f"no manifest of built tiers: {error}", file=root / MANIFEST, remedy=remedy) from error
    if manifest.get("schema") != SCHEMA:
        raise DataError(f"the manifest has schema {manifest.get('schema')!r}, not {SCHEMA!r}", file=root / MANIFEST)
    expected: dict[str, str] = manifest["files"]
    return tuple(
        name for name, digest in expected.items() if not (root / name).is_file() or of_file(root / name) != digest
    )
