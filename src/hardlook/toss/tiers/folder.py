"""The folder of built tiers: pair lists in the layout of the TOSS repository, and a manifest with their hashes.

| path | content |
|---|---|
| `tiers/attribute/`, `tiers/suppcog/`, `tiers/general/` | the lists of tiers 1, 2 and 3 |
| `fixedsplits/<name>/` | random pairs of one class |
| `analysis/test_stats.csv` | the attributes of every mask |
| `manifest.json` | seed, models, data, thresholds, counts per cell, sha256 of every file |

`read_memberships` reads the partition of every mask from tier-1 lists, such as the published ones, instead of measuring
it. A query's partition is in its file's name. The partition of a support that is never a query is inferred from its
position: a file lists supports partition by partition and, within each, class by class, so a support has the partition
of its neighbours. In the published lists that finds the partition of all 362 such masks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from hardlook.data.class_tokens import parse_numbered_token
from hardlook.data.toss_pairs import Pair, list_pair_files, locate_fixed_list, locate_tier_list, read_pairs, write_pairs
from hardlook.errors import DataError, OptionError
from hardlook.fingerprints import hash_file
from hardlook.harness.runs.folder import write_atomically
from hardlook.reading import read_json, reading
from hardlook.toss.tiers.attributes import is_measured_table
from hardlook.toss.tiers.rules import BuiltTiers

SCHEMA = "hardlook.built-toss/1"
MANIFEST = "manifest.json"
TABLE = Path("analysis") / "test_stats.csv"
_LISTS = ("tiers/*/*.txt", "fixedsplits/*/*.txt")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_output_folder(root: Path) -> None:
    """A `DataError` if `root` holds pair lists that no build wrote: a build would remove them.

    A build, finished or not, leaves a manifest or a description beside its table.
    """
    lists = _list_files(root)
    if lists and not (_is_manifest(root / MANIFEST) or is_measured_table(root / TABLE)):
        remedy = "give an empty or a new folder, or one that `hardlook build toss` wrote"
        raise DataError(f"the folder holds {len(lists)} pair lists that no build wrote", file=root, remedy=remedy)


def check_list_name(name: str) -> str:
    """The name of the fixed lists if it can name a folder, else an `OptionError`.

    >>> check_list_name("pascal5i")
    'pascal5i'
    """
    if not _PLAIN_NAME.fullmatch(name):
        remedy = "letters, digits, '.', '_' and '-', a letter or digit first"
        raise OptionError(f"--name {name}: this names no folder of its own", remedy=remedy)
    return name


def write_lists(root: Path, built: BuiltTiers, general: Sequence[Pair], fixed_name: str) -> list[Path]:
    """Write all pair lists under `root` and return their paths; tier 3 only if there are pairs.

    Lists of an earlier build that this one does not have are removed, since a run would score them too.
    """
    check_list_name(fixed_name)
    lists: dict[Path, Sequence[Pair]] = {}
    for (tier, fold, split), pairs in built.lists.items():
        file = locate_tier_list(root, tier, fold, split) if tier else locate_fixed_list(root, fixed_name, fold)
        lists[file.path] = pairs
    if general:
        lists[locate_tier_list(root, 3).path] = general
    for path, listed in lists.items():
        write_pairs(path, listed)
    for path in set(_list_files(root)) - set(lists):
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return list(lists)


def write_manifest(
    root: Path, built: BuiltTiers, general: Sequence[Pair], files: Sequence[Path], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write `manifest.json` and return it; it contains no time and no path. `facts` are its first entries."""
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
        "files": {path.relative_to(root).as_posix(): hash_file(path) for path in sorted(files)},
    }
    write_atomically(root / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return manifest


def _list_files(root: Path) -> list[Path]:
    return [path for pattern in _LISTS for path in sorted(root.glob(pattern))]


def _is_manifest(path: Path) -> bool:
    try:
        manifest = read_json(path)
    except DataError:
        return False
    return isinstance(manifest, dict) and manifest.get("schema") == SCHEMA


def read_fold_classes(root: Path) -> tuple[tuple[str, ...], ...]:
    """The classes of each fold by the manifest of built tiers; empty where there is none."""
    path = root / MANIFEST
    if not path.is_file() or not _is_manifest(path):
        return ()
    with reading(path, "not a manifest of built tiers", remedy="build the tiers again"):
        return tuple(tuple(map(str, classes)) for classes in read_json(path)["folds"])


def list_changed_files(root: Path) -> tuple[str, ...]:
    """The files of the manifest that are missing under `root` or have another hash."""
    path = root / MANIFEST
    if not _is_manifest(path):
        remedy = "give the folder that `hardlook build toss` wrote"
        raise DataError(f"no manifest of built tiers with schema {SCHEMA!r}", file=path, remedy=remedy)
    with reading(path, "not a manifest of built tiers", remedy="build the tiers again"):
        expected: dict[str, str] = read_json(path)["files"]
        return tuple(
            name for name, digest in expected.items() if not (root / name).is_file() or hash_file(root / name) != digest
        )


def check_built_lists(root: Path) -> None:
    """Raise an error where lists of `hardlook build toss` are not as they were built.

    Other lists, and those whose manifest names no files, are not checked.
    """
    path = root / MANIFEST
    if not _is_manifest(path) or "files" not in read_json(path) or not (changed := list_changed_files(root)):
        return
    named = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
    raise DataError(
        f"these tiers changed after they were built: {named}",
        file=root / MANIFEST,
        remedy="build them again, or copy them again; to use the lists as they are, delete the manifest",
    )


@dataclass(frozen=True)
class Memberships:
    """The partition of each token, sorted by class and image; the sha256 of each list; supports without partition."""

    partitions: Mapping[str, str]
    lists: Mapping[str, str]
    unknown: tuple[str, ...] = ()


def read_memberships(folder: Path) -> Memberships:
    """The memberships of a TOSS folder's tier 1; a `DataError` if it has none or if two lists disagree."""
    files = [file for file in list_pair_files(folder) if file.tier == 1]
    if not files:
        remedy = "give a TOSS folder with tiers/attribute/split0_q_easy_sal.txt and so on"
        raise DataError("no lists of tier 1 here", file=folder, remedy=remedy)
    of_queries: dict[str, str] = {}
    lists = []
    for file in files:
        lists.append(read_pairs(file).pairs)
        for pair in lists[-1]:
            if of_queries.setdefault(pair.query, pair.split) != pair.split:
                what = f"the query is {pair.split} here and {of_queries[pair.query]} in another list"
                raise DataError(what, file=file.path, unit=pair.query, remedy="give the lists of one build")
    partitions = {**of_queries, **infer_support_partitions(lists, of_queries)}
    unknown = sorted({pair.support for pairs in lists for pair in pairs} - set(partitions))
    ordered = {token: partitions[token] for token in sorted(partitions, key=parse_numbered_token)}
    return Memberships(ordered, {file.name: hash_file(file.path) for file in files}, tuple(unknown))


def infer_support_partitions(lists: Iterable[Sequence[Pair]], known: Mapping[str, str]) -> dict[str, str]:
    """The partition of each support that is not in `known`: that of the known supports before and after it.

    Only supports of the same class count. Where the two differ, the partition stays unknown.

    >>> pairs = [Pair("1_a", support, 1, 0, "easy_sal") for support in ("1_a", "1_z", "1_a")]
    >>> infer_support_partitions([pairs], {"1_a": "easy_sal"})
    {'1_z': 'easy_sal'}
    """
    inferred: dict[str, str] = {}
    for pairs in lists:
        for _, block in groupby(pairs, key=lambda pair: parse_numbered_token(pair.support)[0]):
            supports = [pair.support for pair in block]
            partitions = [known.get(support) for support in supports]
            before, after = _fill_forward(partitions), _fill_forward(partitions[::-1])[::-1]
            for support, left, right in zip(supports, before, after, strict=True):
                around = {left, right} - {None}
                # Between two partitions the support may belong to either.
                if support not in known and len(around) == 1:
                    inferred.setdefault(support, str(around.pop()))
    return inferred


def _fill_forward(values: Iterable[str | None]) -> list[str | None]:
    """Each value, or the last one before it that is known."""
    last, filled = None, []
    for value in values:
        last = value or last
        filled.append(last)
    return filled
