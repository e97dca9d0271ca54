"""Calibration: vary the faults of planted models, and check that a benchmark's scores follow them.

A dial sets the strength of one fault, 0 to 1. One that should move a score must do so monotonically (absolute Spearman
correlation of at least .9). A control must leave it flat: its range is at most a fifth of the weakest moving dial's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardlook import fingerprints
from hardlook.harness.benchmark import Dial
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import DialChart, Line, Section, Table
from hardlook.harness.stats import spearman
from hardlook.models.arguments import complete_arguments
from hardlook.models.registry import find

MIN_SPEARMAN = 0.9  # of a dial that should move its score, as an absolute value
MAX_CONTROL_SHARE = 0.2  # of the score range of the weakest moving dial
SETTINGS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class DialCurve:
    """One dial from 0 to 1: the score at each setting, and their rank correlation."""

    dial: Dial
    settings: Sequence[float]
    scores: Sequence[Score]
    spearman: float

    @property
    def score_range(self) -> float:
        """The range of the score over all settings; NaN where it is undefined at one of them."""
        return float(np.ptp([score.value for score in self.scores]))


@dataclass(frozen=True)
class Calibration:
    """The curves of all dials of a benchmark, and whether each is as it should be; titles of scores by their names."""

    benchmark: str
    curves: Sequence[DialCurve]
    titles: Mapping[str, str] = field(default_factory=dict)

    def is_as_expected(self, curve: DialCurve) -> bool:
        """Whether this dial moved its score, or left it flat, as it should."""
        if curve.dial.moves:
            return abs(curve.spearman) >= MIN_SPEARMAN
        same_score = [other for other in self.curves if other.dial.score == curve.dial.score]
        weakest = min((other.score_range for other in same_score if other.dial.moves), default=0.0)
        return curve.score_range <= MAX_CONTROL_SHARE * weakest

    @property
    def passed(self) -> bool:
        """Whether every dial did as it should."""
        return all(self.is_as_expected(curve) for curve in self.curves)


def calibrate(
    benchmark: str, given: Mapping[str, Any] | None = None, settings: Sequence[float] = SETTINGS
) -> Calibration:
    """Score every setting of every dial of the benchmark's card, on the planted world."""
    run = InMemoryRun(benchmark, given)
    curves = []
    scorecards: dict[str, Scorecard] = {}

    def scorecard(model: str, arguments: Mapping[str, Any]) -> Scorecard:
        """Score a model, or return the cached scorecard: several dials may have equal arguments, such as no fault."""
        key = fingerprints.hash_value([model, complete_arguments(model, find(model).factory(), arguments)])
        if key not in scorecards:
            scorecards[key] = run.score(model, arguments)
        return scorecards[key]

    for dial in run.benchmark.card.dials:
        scores = [scorecard(dial.model, dial.arguments(v)).get(dial.score) for v in settings]
        values = np.array([score.value for score in scores])
        correlation = float(spearman(np.array(settings), values)) if np.ptp(values) > 0 else 0.0
        curves.append(DialCurve(dial, tuple(settings), tuple(scores), correlation))
    titles = {meaning.name: meaning.title for meaning in run.benchmark.card.scores}
    return Calibration(benchmark, tuple(curves), titles)


def build_calibration_section(calibration: Calibration) -> Section:
    """The curves as charts, and a table of whether each dial did as it should."""
    scores = list(dict.fromkeys(curve.dial.score for curve in calibration.curves))
    charts = [_chart(calibration, score) for score in scores]
    rows = []
    for curve in calibration.curves:
        expected = "moves" if curve.dial.moves else "stays flat"
        answer = "yes" if calibration.is_as_expected(curve) else "NO"
        title = calibration.titles.get(curve.dial.score, curve.dial.score)
        rows.append((curve.dial.name, title, expected, curve.spearman, curve.score_range, answer))
    table = Table(
        "What each dial did",
        f"A dial that is meant to move its score needs a Spearman of at least {MIN_SPEARMAN} in size; a control may "
        f"move it by at most a fifth of the weakest moving dial.",
        ("dial", "score", "meant to", "Spearman", "range of the score", "as meant"),
        rows,
    )
    return Section("Does the score follow the fault?", "", (*charts, table))


def _chart(calibration: Calibration, score: str) -> DialChart:
    curves = [curve for curve in calibration.curves if curve.dial.score == score]
    title = calibration.titles.get(score, score)
    return DialChart(
        f"Dials against {title}",
        "Each line turns one fault of a planted model from 0 to 1 while everything else stays.",
        tuple(map(_line, curves)),
        title,
        tuple(curve.spearman for curve in curves),
        tuple(curve.dial.name for curve in curves if not curve.dial.moves),
    )


def _line(curve: DialCurve) -> Line:
    values = [score.value for score in curve.scores]
    lows = [score.interval.low if score.interval else score.value for score in curve.scores]
    highs = [score.interval.high if score.interval else score.value for score in curve.scores]
    return Line(curve.dial.name, curve.settings, values, lows, highs)
