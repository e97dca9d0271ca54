"""Which click model is better on which metric: paired differences over the same stems, images drawn together.

>>> from hardlook.clicks.evaluation import StemScores
>>> def rows(ks):
...     return [StemScores(f"s{i}", "d", "first", "", "", f"s{i}", 9, ks, .1, .1, 2, .01, 0, False) for i in range(6)]
>>> standings_in_words([better("ks", {"uniform": rows(0.1), "distance": rows(0.4)})])
['By KS, distance is better than uniform.']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.evaluation import StemScores
from hardlook.clicks.evaluation_summary import HIGHER_IS_BETTER
from hardlook.randomness import generator
from hardlook.stats import Estimate, paired_bootstrap

TITLES = {"ks": "KS", "pl1": "PL1", "wd": "WD", "nss": "NSS", "pde": "PDE"}
LEAST_IMAGES = 6


@dataclass(frozen=True)
class Standing:
    """The best model on a metric, and its lead over each of the others: value less theirs."""

    metric: str
    best: str
    leads: Mapping[str, Estimate]

    def beats(self, model: str) -> bool:
        """Whether the interval of the lead lies on the better side of 0."""
        interval = self.leads[model].interval
        return interval.low > 0 if HIGHER_IS_BETTER[self.metric] else interval.high < 0

    def says(self, model: str) -> str:
        """What the lead over a model means; a few images are too few to tell it by."""
        if not _enough(self.leads[model]):
            return "too few images to compare"
        return "better" if self.beats(model) else "cannot be told apart"

    def verdict(self) -> str:
        """Whom it beats and whom not, without the metric."""
        if not any(_enough(lead) for lead in self.leads.values()):
            return f"there are too few images to compare {_listed(sorted([self.best, *self.leads]))}."
        beaten = [name for name in self.leads if self.beats(name)]
        alike = sorted(name for name in self.leads if name not in beaten)
        if not beaten:
            return f"{_listed(sorted([self.best, *alike]))} cannot be told apart."
        text = f"{self.best} is better than {_listed(sorted(beaten))}."
        return f"{text} It cannot be told apart from {_listed(alike)}." if alike else text


def _enough(lead: Estimate) -> bool:
    """Whether there are images enough: of five or fewer, all fall on one side by chance in one case of sixteen."""
    return lead.interval.defined and lead.interval.n >= LEAST_IMAGES


def standings_in_words(standings: Sequence[Standing]) -> list[str]:
    """A sentence or two a verdict, with all the metrics that give it."""
    verdicts: dict[str, list[str]] = {}
    for one in standings:
        verdicts.setdefault(one.verdict(), []).append(TITLES[one.metric])
    return [f"By {_listed(metrics)}, {verdict}" for verdict, metrics in verdicts.items()]


def better(
    metric: str, rows: Mapping[str, Sequence[StemScores]], *, resamples: int = 10_000, seed: int = 0
) -> Standing:
    """The best model by its mean, and how far it leads; `rows` of each model are of the same stems in one order."""
    values = {name: np.array([float(getattr(row, metric)) for row in found]) for name, found in rows.items()}
    sign = 1 if HIGHER_IS_BETTER[metric] else -1
    best = max(values, key=lambda name: sign * float(values[name].mean()))
    # Datasets share stems, so an image is known by both.
    images = [f"{row.dataset}\0{row.image_key}" for row in rows[best]]
    leads = {
        name: paired_bootstrap(
            _sums(values[best]),
            _sums(others),
            _mean,
            rng=generator(seed, "click evaluation", "pairs"),
            clusters=images,
            resamples=resamples,
            resampled="image",
        )
        for name, others in values.items()
        if name != best
    }
    return Standing(metric, best, leads)


def _sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([values, np.ones_like(values)], axis=1)


def _mean(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(totals[:, 0] / totals[:, 1])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
