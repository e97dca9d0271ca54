"""What the TOSS paper prints, in the terms of our scores and slices, for leaderboards.

Folds are 0 to 3 here. Where Table 4 and the supplement print the same score, the longer figure of Table 4 is used.

>>> len(PUBLISHED_ROWS), PUBLISHED_ROWS[0].source, dict(PUBLISHED_ROWS[5].where)
(335, 'Table 4', {'fold': '0'})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hardlook.benchmarks.toss.published import METHODS, PUBLISHED, TIER_1, TIER_2, TIER_3, FoldResult
from hardlook.benchmarks.toss.published_biases import REMEDIES
from hardlook.contract.published import PublishedResult

NETWORKS = "the networks are those that the paper trained"
_NOTE = f"comparable with a run of all the published pairs; {NETWORKS}"
_FIXED = f"comparable with a run of all the fixed pairs of PASCAL-5i; {NETWORKS}"
_SCORES = ("lca", "hca")
_REMEDIES = {"none": "", "leave-out": " with leave-out training", "sgtss": " with SGTSS", "sssi": " with SSSI"}


def folds_and_mean(row: FoldResult) -> Iterator[tuple[dict[str, str], float]]:
    """The slice and value of the printed mean, then of each fold.

    >>> next(folds_and_mean(FoldResult((0.1, 0.2, 0.3, 0.4), 0.25)))
    ({}, 0.25)
    """
    yield {}, row.mean
    for fold, value in enumerate(row.folds):
        yield {"fold": str(fold)}, value


def _of_folds() -> Iterator[PublishedResult]:
    for method in METHODS:
        for fold in range(4):
            values = {name: TIER_1[method][name].folds[fold] for name in _SCORES}
            values["gs"] = TIER_3[method].folds[fold]
            source = "supplement, Tables 2 and 4"
            yield PublishedResult(method, source, values, _NOTE, {"fold": str(fold)})


def _of_cells(
    tables: Mapping[str, Mapping[str, FoldResult]], key: str, source: str, without: tuple[str, ...] = ()
) -> Iterator[PublishedResult]:
    for method in METHODS:
        for name, row in tables[method].items():
            if name not in without:
                for where, value in folds_and_mean(row):
                    yield PublishedResult(method, source, {"miou": value}, _NOTE, {**where, key: name})


def _of_fixed_pairs() -> Iterator[PublishedResult]:
    for method, rows in REMEDIES.items():
        for remedy, words in _REMEDIES.items():
            source = "Table 3, fixed pairs" if remedy == "sssi" else "Table 1, fixed pairs"
            for where, value in folds_and_mean(rows[remedy]):
                yield PublishedResult(method + words, source, {"miou": value}, _FIXED, where)


PUBLISHED_ROWS = (
    *PUBLISHED,
    *_of_folds(),
    *_of_cells(TIER_1, "split", "supplement, Table 2", _SCORES),
    *_of_cells(TIER_2, "level", "supplement, Table 3"),
    *_of_fixed_pairs(),
)
