from __future__ import annotations

from hardlook.contract.scorecard import Reading, Score, Scorecard
from hardlook.report.guide import reading_guide
from hardlook.stats.intervals import Interval

from . import samples


def test_the_words_hold_the_runs_own_numbers():
    said = dict(reading_guide(samples.scorecard()))
    assert list(said) == ["Interval", "n", "Comparable", "Readings", "Slices", "Left out", "Figures and tables"]
    for part in ("`miou` is 0.538", "0.518 to 0.558", "95 in 100", "other images"):
        assert part in said["Interval"]


def test_units_that_are_drawn_together_are_told():
    score = Score("miou", 0.5, 4000, Interval(0.4, 0.6, 0.9, "percentile", 120, "query image"))
    said = dict(reading_guide(Scorecard("b", "1", "m", (score,))))
    assert "rests on 4000 units, its interval on 120 query images" in said["n"]
    assert "90 in 100" in said["Interval"]


def test_what_the_run_does_not_have_is_not_explained():
    card = Scorecard("b", "1", "m", (Score("miou", 0.5, 1),))
    said = dict(reading_guide(card))
    assert "Readings" not in said and "Slices" not in said
    assert "No score of this run has an interval" in said["Interval"]
    more = Scorecard("b", "1", "m", card.scores, (Reading("r", "a", "m"),))
    assert "Readings" in dict(reading_guide(more))
