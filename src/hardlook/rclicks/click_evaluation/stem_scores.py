"""Click models against the clicks that people made: five metrics per stem, and their means over stems.

A model's map times the error region is a distribution. From it as many points are drawn as people clicked, a hundred
times; KS, PL1 and WD of the draws against the real clicks are averaged over the draws. NSS and PDE are the map's values
at the real clicks and need no draws. The score of a model is the plain mean over stems, as published; intervals
resample images, with all stems of an image together.

>>> from hardlook.rclicks.user_clicks.planted_users import planted_samples
>>> from hardlook.models.planted.click_models import PlantedUsers
>>> stems = (sample.clicked_stem() for sample in planted_samples(seed=0, count=4, size=(96, 72)))
>>> rows = tuple(evaluate_click_model(PlantedUsers(), stems, draws=5))
>>> [row.full_stem for row in rows[:2]]
['scene-0-0', 'scene-0-1']
>>> [whole] = summarise_rows(rows, METRICS)
>>> whole.stems, sorted(whole.scores)
(4, ['ks', 'nss', 'pde', 'pl1', 'wd'])
>>> [part.group for part in summarise_rows(rows, METRICS, by=("dataset", "device"))]
[{'dataset': 'planted', 'device': 'pc'}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError, OptionError
from hardlook.harness.stats import Estimate, bootstrap_scores
from hardlook.harness.stats.jackknife import UNBOUNDED
from hardlook.metrics.click_maps import MapReading, nss, pde
from hardlook.metrics.click_sets import WassersteinReading, fasano_franceschini_draws, pairwise_l1, wasserstein
from hardlook.models.roles import ClickModel
from hardlook.randomness import generator
from hardlook.rclicks.click_models.distribution import ClickDistribution, click_distribution
from hardlook.rclicks.user_clicks.stems import ClickedStem, ClickType

DRAWS = 100  # as published


@dataclass(frozen=True)
class StemScores:
    """How well a model's map fits the clicks on one stem.

    `ks`: share of the draws that the test cannot tell from the real clicks (p > .05), 0 to 1, higher is better;
    `pl1`, `wd`: distances relative to the object's box, lower is better; `nss` in standard deviations and `pde` a
    probability, higher is better. `ks_undefined` counts the draws without a p, which score 0; `fell_back` says that
    the map was 0 all over the region and counted as uniform. `clicks` is the number of real clicks.
    """

    full_stem: str
    dataset: str
    click_type: ClickType
    device: str
    display_mode: str
    image_key: str
    clicks: int
    ks: float
    pl1: float
    wd: float
    nss: float
    pde: float
    ks_undefined: int
    fell_back: bool


@dataclass(frozen=True)
class Readings:
    """Which reading of each metric runs.

    `wd`: pixels over the box's diagonal (released) or axes over its sides (paper); `maps`: with 1e-9 added, or without.
    """

    wd: WassersteinReading = "released"
    maps: MapReading = "released"


RELEASED = Readings()


def evaluate_click_model(
    model: ClickModel, stems: Iterable[ClickedStem], draws: int = DRAWS, seed: int = 0, readings: Readings = RELEASED
) -> Iterator[StemScores]:
    """One row per stem, in order, one at a time; draws are keyed by the stem, so models differ only by their maps."""
    if draws < 1:
        raise OptionError(f"{draws} draws", remedy="at least 1")
    for stem in stems:
        yield score_stem(stem, map_distribution(stem, model), draws, seed, readings)


def map_distribution(stem: ClickedStem, model: ClickModel) -> ClickDistribution:
    """The model's distribution on a stem; its errors name the stem."""
    try:
        return click_distribution(model.click_map(stem.image, stem.target, stem.error, stem.positive), stem.error)
    except HardlookError as error:
        raise error.at(unit=stem.full_stem) from error


def draw_as_many(stem: ClickedStem, distribution: ClickDistribution, draws: int, seed: int = 0) -> NDArray[np.int64]:
    """(draws, n, 2) int64 points (x, y): as many per draw as people clicked. Pictures show the first draw.

    More draws begin with those of fewer.

    >>> error = np.array([[False, True]])
    >>> stem = ClickedStem("a", "mine", np.zeros((1, 2, 3), np.uint8), error, error, np.array([[1, 0], [0, 0]]))
    >>> draw_as_many(stem, ClickDistribution(error * 1.0), 3).tolist()
    [[[1, 0], [1, 0]], [[1, 0], [1, 0]], [[1, 0], [1, 0]]]
    """
    return distribution.draw(generator(seed, "click evaluation", *stem.key), draws, len(stem.clicks))


def score_stem(
    stem: ClickedStem, distribution: ClickDistribution, draws: int = DRAWS, seed: int = 0, readings: Readings = RELEASED
) -> StemScores:
    """The five metrics of one distribution on one stem.

    >>> error = np.array([[False, True], [False, True]])
    >>> stem = ClickedStem("a", "mine", np.zeros((2, 2, 3), np.uint8), error, error, np.array([[1, 0], [1, 1]]))
    >>> row = score_stem(stem, ClickDistribution(error / 2), draws=7)
    >>> row.ks, row.ks_undefined, round(row.nss, 6), round(row.pde, 6)
    (0.0, 7, 1.0, 0.5)
    """
    drawn = draw_as_many(stem, distribution, draws, seed).astype(np.float64)
    tests = fasano_franceschini_draws(drawn, stem.clicks)
    box = stem.box
    distances = [wasserstein(points, stem.clicks, box, readings.wd) for points in drawn]
    return StemScores(
        stem.full_stem,
        stem.dataset,
        stem.click_type,
        stem.device,
        stem.display_mode,
        stem.image_key or stem.full_stem,
        clicks=len(stem.clicks),
        ks=float(tests.passes.mean()),
        # Draws have equal sizes: the mean over draws is that over all their points.
        pl1=pairwise_l1(drawn.reshape(-1, 2), stem.clicks, box),
        wd=float(np.mean(distances)),
        nss=nss(distribution.chances, stem.clicks, readings.maps),
        pde=pde(distribution.chances, stem.clicks, readings.maps),
        ks_undefined=tests.undefined,
        fell_back=distribution.fell_back,
    )


METRICS = ("ks", "pl1", "wd", "nss", "pde")
RANGES = {"ks": (0.0, 1.0), "pl1": (0.0, np.inf), "wd": (0.0, np.inf), "nss": UNBOUNDED, "pde": UNBOUNDED}
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
    rows: Sequence[Any], metrics: Sequence[str], *, by: Sequence[str] = (), resamples: int = 10_000, seed: int = 0
) -> tuple[GroupScores, ...]:
    """Mean and interval of each metric over the `StemScores` or `PairScores` of each group; groups are sorted."""
    groups: dict[tuple[str, ...], list[Any]] = {}
    for row in rows:
        unknown = [name for name in (*by, *metrics) if not hasattr(row, name)]
        if unknown:
            raise OptionError(f"rows have no {' and no '.join(unknown)}", remedy=f"they have {', '.join(vars(row))}")
        groups.setdefault(tuple(str(getattr(row, name)) for name in by), []).append(row)
    found = []
    for values, chosen in sorted(groups.items()):
        estimates = bootstrap_scores(
            np.array([[float(getattr(row, name)) for name in metrics] + [1.0] for row in chosen]),
            lambda totals: totals[..., :-1] / totals[..., -1:],
            rng=generator(seed, "click evaluation", "intervals"),
            # Datasets share stems, so an image is known by both.
            clusters=[f"{row.dataset}\0{row.image_key}" for row in chosen],
            resamples=resamples,
            range=[RANGES.get(name, UNBOUNDED) for name in metrics],
            resampled="image",
        )
        scores = dict(zip(metrics, estimates, strict=True))
        # Rows of pairs have no maps.
        counts = (sum(int(getattr(row, name, 0)) for row in chosen) for name in ("ks_undefined", "fell_back"))
        found.append(GroupScores(dict(zip(by, values, strict=True)), len(chosen), scores, *counts))
    return tuple(found)
