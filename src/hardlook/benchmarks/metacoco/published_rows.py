"""What the MetaCoCo paper prints, as our blind accuracies by ways and shots, and which of them a run stands beside.

>>> row = PUBLISHED_ROWS[0]
>>> row.method, row.values["blind"], dict(row.where), len(PUBLISHED_ROWS)
('Baseline, ResNet12', 0.4678, {'ways': '5', 'shots': '1'}, 208)
"""

from __future__ import annotations

from collections.abc import Iterator

from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.benchmarks.metacoco.published import TABLE_2, TABLE_3
from hardlook.benchmarks.metacoco.published_backbones import TABLE_6, TABLE_7
from hardlook.contract.published import PublishedResult
from hardlook.contract.scorecard import Scorecard

TABLES = (TABLE_2, TABLE_3, TABLE_6, TABLE_7)
_NOTE = (
    "comparable with tasks of MetaCoCo's own test images drawn without regard to context (--blind-supports paper); "
    "that its tables are such tasks is our inference"
)


def published_slice(scorecard: Scorecard, options: MetaCocoOptions) -> dict[str, str]:
    """The ways and shots that scores over all units are of: the only ones asked for that no slice names.

    >>> published_slice(Scorecard("metacoco", "1", ""), MetaCocoOptions(ways=(10,), shots=(5,)))
    {'ways': '10', 'shots': '5'}
    """
    asked = {(str(ways), str(shots)) for ways in options.ways for shots in options.resolved()[0]}
    sliced = {
        (score.slice["ways"], score.slice["shots"])
        for score in scorecard.scores
        if {"ways", "shots"} <= set(score.slice)
    }
    left = asked - sliced
    if len(left) != 1:
        return {}
    [(ways, shots)] = left
    return {"ways": ways, "shots": shots}


def _rows() -> Iterator[PublishedResult]:
    for table in TABLES:
        for row in table:
            method = f"{row.method}, {row.backbone}" if row.backbone else row.method
            for shots in (1, 5):
                if (accuracy := row.accuracy(shots)) is not None:
                    where = {"ways": str(row.ways), "shots": str(shots)}
                    yield PublishedResult(method, f"Table {row.table}", {"blind": accuracy.value}, _NOTE, where)


PUBLISHED_ROWS = tuple(_rows())
