"""Click models against the clicks that people made, stem by stem.

A model's map times the error region is a distribution. From it as many points are drawn as people clicked, a hundred
times; KS, PL1 and WD of the draws against the real clicks are averaged over the draws. NSS and PDE look the real
clicks up in the map and need no draws.

>>> import numpy as np
>>> from hardlook.clicks.planted_users import planted_samples
>>> from hardlook.models.planted.users import PlantedUsers
>>> stems = (sample.clicked_stem() for sample in planted_samples(seed=0, count=2, size=(96, 72)))
>>> [row.full_stem for row in evaluate_click_model(PlantedUsers(), stems, draws=5)]
['scene-0-0', 'scene-0-1']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.click_distribution import ClickDistribution, click_distribution
from hardlook.clicks.clicked_stem import ClickedStem, ClickType
from hardlook.errors import HardlookError, OptionError
from hardlook.metrics.click_distances import WassersteinReading, pairwise_l1, wasserstein
from hardlook.metrics.click_ks import fasano_franceschini_draws
from hardlook.metrics.click_map_scores import MapReading, nss, pde
from hardlook.models.roles import ClickModel
from hardlook.randomness import generator

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

    `wd`: pixels over the box's diagonal (released) or each axis by its side (paper). `maps`: NSS and PDE with 1e-9
    added to sum and deviation (released) or without (paper).
    """

    wd: WassersteinReading = "released"
    maps: MapReading = "released"


RELEASED = Readings()


def evaluate_click_model(
    model: ClickModel,
    stems: Iterable[ClickedStem],
    draws: int = DRAWS,
    seed: int = 0,
    readings: Readings = RELEASED,
) -> Iterator[StemScores]:
    """One row a stem, in the order of `stems`, made one at a time.

    Draws are keyed by the stem, so they depend on no order, and models differ only by their maps.

    >>> from hardlook.models.planted.users import PlantedUsers
    >>> list(evaluate_click_model(PlantedUsers(), []))
    []
    """
    if draws < 1:
        raise OptionError(f"{draws} draws asked for", remedy="at least 1")
    for stem in stems:
        try:
            crowd = click_distribution(model.click_map(stem.image, stem.target, stem.error, stem.positive), stem.error)
        except HardlookError as error:
            raise error.at(unit=stem.full_stem) from error
        yield score_stem(stem, crowd, draws, seed, readings)


def drawn_clicks(stem: ClickedStem, crowd: ClickDistribution, draws: int, seed: int = 0) -> NDArray[np.int64]:
    """(draws, n, 2) int64 points (x, y): as many a draw as people clicked. Pictures show the first draw.

    More draws begin with those of fewer.

    >>> error = np.array([[False, True]])
    >>> stem = ClickedStem("a", "mine", np.zeros((1, 2, 3), np.uint8), error, error, np.array([[1, 0], [0, 0]]))
    >>> drawn_clicks(stem, ClickDistribution(error * 1.0), 3).tolist()
    [[[1, 0], [1, 0]], [[1, 0], [1, 0]], [[1, 0], [1, 0]]]
    """
    return crowd.draw(generator(seed, "click evaluation", *stem.key), draws, len(stem.clicks))


def score_stem(
    stem: ClickedStem, crowd: ClickDistribution, draws: int = DRAWS, seed: int = 0, readings: Readings = RELEASED
) -> StemScores:
    """The five metrics of one distribution on one stem.

    >>> error = np.array([[False, True], [False, True]])
    >>> stem = ClickedStem("a", "mine", np.zeros((2, 2, 3), np.uint8), error, error, np.array([[1, 0], [1, 1]]))
    >>> row = score_stem(stem, ClickDistribution(error / 2), draws=7)
    >>> row.ks, row.ks_undefined, round(row.nss, 6), round(row.pde, 6)
    (0.0, 7, 1.0, 0.5)
    """
    drawn = drawn_clicks(stem, crowd, draws, seed).astype(np.float64)
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
        nss=nss(crowd.chances, stem.clicks, readings.maps),
        pde=pde(crowd.chances, stem.clicks, readings.maps),
        ks_undefined=tests.undefined,
        fell_back=crowd.fell_back,
    )
