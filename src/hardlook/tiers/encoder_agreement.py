"""How often two encoders agree on which same-class pairs look alike, each split at its own mean cosine.

The published study asks this of 70,000 pairs. Half of all pairs would agree by chance, so kappa stands beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_mean, spearman


@dataclass(frozen=True)
class EncoderAgreement:
    """Two encoders on the same pairs: share of equal verdicts in [0, 1], Cohen's kappa, Spearman of the cosines."""

    first: str
    second: str
    pairs: int
    agreement: Estimate
    kappa: float
    spearman: float


def encoder_agreements(
    cosines: Mapping[str, NDArray[np.float64]], queries: Sequence[str], *, seed: int = 0
) -> tuple[EncoderAgreement, ...]:
    """The agreement of every two encoders; `cosines` (n,) by encoder, `queries` the query's image of each pair.

    Intervals resample query images, since pairs of one image rise and fall together.

    >>> cosines = {"a": np.array([0.1, 0.9, 0.8]), "b": np.array([0.2, 0.7, 0.1])}
    >>> found = encoder_agreements(cosines, ["x", "y", "z"])[0]
    >>> round(found.agreement.value, 3), round(found.kappa, 3)
    (0.667, 0.4)
    """
    found = []
    for first, second in combinations(cosines, 2):
        one, other = cosines[first] > cosines[first].mean(), cosines[second] > cosines[second].mean()
        same = one == other
        chance = float(one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean()))
        estimate = bootstrap_mean(
            same.astype(np.float64),
            rng=generator(seed, "encoder agreement", first, second),
            clusters=list(queries),
            resamples=2000,
            resampled="query image",
        )
        kappa = (float(same.mean()) - chance) / (1 - chance) if chance < 1 else float("nan")
        rank = spearman(cosines[first], cosines[second])
        found.append(EncoderAgreement(first, second, len(same), estimate, kappa, rank))
    return tuple(found)
