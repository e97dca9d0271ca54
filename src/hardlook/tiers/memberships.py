"""The partition of every mask, read from tier-1 lists instead of measured: the published membership, say.

A query's partition is in its file's name. A support that is never a query is told by its place: in a file the
partitions of supports come one after the other, each class by class, so it shares the partition of the supports
around it. On the published lists that places all 362 such masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from hardlook.data.class_tokens import numbered_token
from hardlook.data.toss_pairs import Pair, list_pair_files, read_pairs
from hardlook.errors import DataError
from hardlook.fingerprint import of_file


@dataclass(frozen=True)
class Memberships:
    """The partition of each token, sorted by class and image; the sha256 of the lists; supports nobody can place."""

    partitions: Mapping[str, str]
    lists: Mapping[str, str]
    unplaced: tuple[str, ...] = ()


def read_memberships(folder: Path) -> Memberships:
    """The memberships of a TOSS folder's tier 1; a `DataError` where it has none or where two lists disagree."""
    files = [file for file in list_pair_files(folder) if file.tier == 1]
    if not files:
        remedy = "give a TOSS folder with tiers/attribute/split0_q_easy_sal.txt and so on"
        raise DataError("no lists of tier 1 here", file=folder, remedy=remedy)
    found: dict[str, str] = {}
    lists = []
    for file in files:
        lists.append(read_pairs(file).pairs)
        for pair in lists[-1]:
            if found.setdefault(pair.query, pair.split) != pair.split:
                what = f"the query is {pair.split} here and {found[pair.query]} in another list"
                raise DataError(what, file=file.path, unit=pair.query, remedy="give the lists of one build")
    placed = placed_supports(lists, found)
    unplaced = sorted({pair.support for pairs in lists for pair in pairs} - set(found) - set(placed))
    everyone = {**found, **placed}
    ordered = {token: everyone[token] for token in sorted(everyone, key=numbered_token)}
    return Memberships(ordered, {file.name: of_file(file.path) for file in files}, tuple(unplaced))


def placed_supports(lists: Iterable[Sequence[Pair]], known: Mapping[str, str]) -> dict[str, str]:
    """The partition of each support that is no query: that of the known supports before and after it in its block.

    >>> pairs = [Pair("1_a", support, 1, 0, "easy_sal") for support in ("1_a", "1_z", "1_a")]
    >>> placed_supports([pairs], {"1_a": "easy_sal"})
    {'1_z': 'easy_sal'}
    """
    placed: dict[str, str] = {}
    for pairs in lists:
        for _, block in groupby(pairs, key=lambda pair: numbered_token(pair.support)[0]):
            supports = [pair.support for pair in block]
            partitions = [known.get(support) for support in supports]
            before, after = _carried(partitions), _carried(partitions[::-1])[::-1]
            for support, left, right in zip(supports, before, after, strict=True):
                around = {left, right} - {None}
                # Two partitions around it: the block is two blocks, and the support may be of either.
                if support not in known and len(around) == 1:
                    placed.setdefault(support, str(around.pop()))
    return placed


def _carried(values: Iterable[str | None]) -> list[str | None]:
    """Each value, or the last one before it that is known."""
    last, found = None, []
    for value in values:
        last = value or last
        found.append(last)
    return found
