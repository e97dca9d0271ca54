"""Means over stems with intervals: by dataset, click type, device or display mode.

The score of a model is the plain mean over stems, as published. Stems of one image are drawn together.

>>> from hardlook.clicks.planted_users import planted_samples
>>> from hardlook.clicks.evaluation import evaluate_click_model
>>> from hardlook.models.planted.users import PlantedUsers
>>> stems = (sample.clicked_stem() for sample in planted_samples(seed=0, count=4, size=(96, 72)))
>>> rows = tuple(evaluate_click_model(PlantedUsers(), stems, draws=5))
>>> [whole] = summarise_rows(rows, METRICS)
>>> whole.stems, sorted(whole.scores)
(4, ['ks', 'nss', 'pde', 'pl1', 'wd'])
>>> [part.group for part in summarise_rows(rows, METRICS, by=("dataset", "device"))]
[{'dataset': 'planted', 'device': 'pc'}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_scores

METRICS = ("ks", "pl1", "wd", "nss", "pde")
HIGHER_IS_BETTER = {"ks": True, "pl1": False, "wd": False, "nss": True, "pde": True}


@dataclass(frozen=True)
class GroupScores:
    """Scores of one group of stems: `group` says which by column, empty for all; `stems` counts them.

    `ks_undefined` counts the tests without a p, which scored 0; `fell_back` the maps that were 0 all over.
    """

    group: Mapping[str, str]
    stems: int
    scores: Mapping[str, Estimate]
    ks_undefined: int
    fell_back: int


def summarise_rows(
    rows: Sequence[Any],
    metrics: Sequence[str],
    *,
    by: Sequence[str] = (),
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[GroupScores, ...]:
    """Mean and interval of each metric over the rows of each group, groups sorted.

    `rows` are `StemScores` of one model, or `PairScores`; `metrics` and `by` name fields of theirs.

    >>> summarise_rows((), METRICS)
    ()
    """
    groups: dict[tuple[str, ...], list[Any]] = {}
    for row in rows:
        unknown = [name for name in (*by, *metrics) if not hasattr(row, name)]
        if unknown:
            raise OptionError(f"rows have no {' and no '.join(unknown)}", remedy=f"they have {', '.join(vars(row))}")
        groups.setdefault(tuple(str(getattr(row, name)) for name in by), []).append(row)
    return tuple(
        _summary(dict(zip(by, values, strict=True)), groups[values], metrics, resamples, level, seed)
        for values in sorted(groups)
    )


def _summary(
    group: Mapping[str, str], rows: Sequence[Any], metrics: Sequence[str], resamples: int, level: float, seed: int
) -> GroupScores:
    values = np.array([[float(getattr(row, name)) for name in metrics] + [1.0] for row in rows])
    estimates = bootstrap_scores(
        values,
        _means,
        rng=generator(seed, "click evaluation", "intervals"),
        # Datasets share stems, so an image is known by both.
        clusters=[f"{row.dataset}\0{row.image_key}" for row in rows],
        resamples=resamples,
        level=level,
        resampled="image",
    )
    scores = dict(zip(metrics, estimates, strict=True))
    undefined, fell_back = (sum(int(getattr(row, name, 0)) for row in rows) for name in ("ks_undefined", "fell_back"))
    return GroupScores(group, len(rows), scores, undefined, fell_back)


def _means(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(totals[..., :-1] / totals[..., -1:])
