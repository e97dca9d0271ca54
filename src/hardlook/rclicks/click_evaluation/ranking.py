"""Which click model is better on which metric: paired differences over the same stems, resampled by image.

>>> def rows(ks):
...     return [StemScores(f"s{i}", "d", "first", "", "", f"s{i}", 9, ks, .1, .1, 2, .01, 0, False) for i in range(12)]
>>> describe_rankings([rank_models("ks", {"uniform": rows(0.1), "distance": rows(0.4)})])
['By KS, distance is better than uniform.']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hardlook.harness.stats import Estimate, paired_bootstrap
from hardlook.harness.verdicts import MIN_CLUSTERS, judge_several
from hardlook.randomness import generator
from hardlook.rclicks.click_evaluation.stem_scores import HIGHER_IS_BETTER, StemScores


@dataclass(frozen=True)
class MetricRanking:
    """The best model on a metric, and its lead over each of the others: value less theirs."""

    metric: str
    best: str
    leads: Mapping[str, Estimate]

    def beats(self, model: str) -> bool:
        """Whether the lead lies on the better side of 0, corrected for all leads on this metric."""
        judged = dict(zip(self.leads, judge_several(list(self.leads.values())), strict=True))
        return judged[model].side == ("above" if HIGHER_IS_BETTER[self.metric] else "below")

    def verdict_on(self, model: str) -> str:
        """What the lead over a model means; a handful of images are too few to tell."""
        if not _has_enough_images(self.leads[model]):
            return "too few images to compare"
        return "better" if self.beats(model) else "no significant difference"

    def verdict(self) -> str:
        """Which models it beats and which not, without the metric."""
        if not any(_has_enough_images(lead) for lead in self.leads.values()):
            return f"there are too few images to compare {_join_names(sorted([self.best, *self.leads]))}."
        beaten = [name for name in self.leads if self.beats(name)]
        alike = sorted(name for name in self.leads if name not in beaten)
        if not beaten:
            return f"{_join_names(sorted([self.best, *alike]))} do not differ significantly."
        text = f"{self.best} is better than {_join_names(sorted(beaten))}."
        return f"{text} It does not differ significantly from {_join_names(alike)}." if alike else text


def _has_enough_images(lead: Estimate) -> bool:
    return lead.interval.n >= MIN_CLUSTERS


def describe_rankings(rankings: Sequence[MetricRanking]) -> list[str]:
    """One or two sentences per verdict, with all the metrics that give it."""
    verdicts: dict[str, list[str]] = {}
    for one in rankings:
        verdicts.setdefault(one.verdict(), []).append(one.metric.upper())
    return [f"By {_join_names(metrics)}, {verdict}" for verdict, metrics in verdicts.items()]


def rank_models(
    metric: str, rows: Mapping[str, Sequence[StemScores]], *, resamples: int = 10_000, seed: int = 0
) -> MetricRanking:
    """The best model by its mean, and how far it leads; `rows` of each model are of the same stems in one order."""
    values = {name: np.array([float(getattr(row, metric)) for row in of_model]) for name, of_model in rows.items()}
    sign = 1 if HIGHER_IS_BETTER[metric] else -1
    best = max(values, key=lambda name: sign * float(values[name].mean()))
    # Datasets share stems, so an image is known by both.
    images = [f"{row.dataset}\0{row.image_key}" for row in rows[best]]
    ones = np.ones(len(images))
    leads = {
        name: paired_bootstrap(
            np.stack([values[best], ones], axis=1),
            np.stack([others, ones], axis=1),
            lambda totals: totals[:, 0] / totals[:, 1],
            rng=generator(seed, "click evaluation", "pairs"),
            clusters=images,
            resamples=resamples,
            resampled="image",
        )
        for name, others in values.items()
        if name != best
    }
    return MetricRanking(metric, best, leads)


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
