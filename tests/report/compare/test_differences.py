import math
from dataclasses import replace

import numpy as np
import pytest
from compared_runs import HITS, hits_run
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.stats.intervals import Interval
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.differences import (
    Difference,
    add_verdicts,
    correct_p_values,
    count_comparisons,
    decide_verdict,
    describe_difference,
    find_score_meaning,
    list_headline_names,
)

RATE = HITS.card.scores[0]


def difference(p_value, *, name="rate", where=None, family="headline scores", value=0.1, se=0.05, clusters=100, **more):
    interval = Interval(value - 2 * se, value + 2 * se, 0.95, "percentile", clusters, "image")
    given = {"first_value": 0.5 + value, "second_value": 0.5, "standard_error": se, "clusters": clusters, **more}
    return Difference(
        name, where or {}, "ant", "bee", value, interval, p_value, math.nan, family, clusters, math.nan, "undefined",
        resampled="image", **given,
    )  # fmt: skip


def test_holm_is_made_within_families_by_hand():
    rows = [difference(0.01), difference(0.04), difference(0.03), difference(0.04, family="rate by group")]
    rows.append(difference(math.nan, family="rate by group"))
    found = [one.adjusted for one in correct_p_values(rows)]
    # 0.01 * 3; then 0.03 * 2 = 0.06, which the larger one cannot undercut; the second family has one comparison.
    assert found[:4] == pytest.approx([0.03, 0.06, 0.06, 0.04])
    assert math.isnan(found[4])
    assert count_comparisons(rows) == {"headline scores": 3, "rate by group": 1}


def test_slices_and_other_scores_never_weaken_the_headline():
    rng = np.random.default_rng(0)
    groups = [f"g{place % 12}" for place in range(120)]
    found = compare_runs(
        [hits_run(rng.random(120), "ant", groups=groups), hits_run(rng.random(120), "bee", groups=groups)]
    )
    assert {one.family for one in found.differences} == {
        "headline scores", "other scores", "rate by group", "misses by group"
    }  # fmt: skip
    (headline,) = found.headline
    assert headline.adjusted == headline.p_value
    assert sum(one.family == "rate by group" for one in found.differences) == 12


def test_a_card_without_headlines_leads_with_its_first_score():
    card = replace(HITS.card, scores=tuple(replace(score, headline=False) for score in HITS.card.scores))
    assert list_headline_names(card) == ("rate",)


@given(st.floats(-1, 1), st.floats(0, 1), st.booleans())
def test_the_verdict_turns_round_with_the_models_and_with_the_score(value, p_value, higher):
    meaning, turned = (ScoreMeaning("s", "S", "", higher_is_better=way) for way in (higher, not higher))
    found = decide_verdict(value, p_value, 0.05, meaning)
    opposite = {"better": "worse", "worse": "better"}
    assert decide_verdict(-value, p_value, 0.05, meaning) == opposite.get(found, found)
    assert decide_verdict(value, p_value, 0.05, turned) == opposite.get(found, found)
    assert (found == "cannot tell") == (p_value > 0.05 or value == 0)
    # Where neither way is better, the direction of the difference is all there is to say.
    plain = decide_verdict(value, p_value, 0.05, replace(meaning, ranked=False))
    assert plain == (found if found == "cannot tell" else "higher" if value > 0 else "lower")


def test_units_needed_follow_the_standard_error_and_the_size_of_the_family():
    z = norm.ppf(0.975) + norm.ppf(0.85)
    (alone,) = add_verdicts(correct_p_values([difference(0.2, value=0.02, se=0.03)]), HITS.card, 0.05)
    assert alone.units_needed == math.ceil(100 * (z * 0.03 / 0.02) ** 2)
    many = add_verdicts(correct_p_values([difference(0.2, value=0.02, se=0.03)] * 4), HITS.card, 0.05)
    strict = norm.ppf(1 - 0.05 / 4 / 2) + norm.ppf(0.85)
    assert many[0].units_needed == math.ceil(100 * (strict * 0.03 / 0.02) ** 2)


@pytest.mark.parametrize(("pairs", "least"), [(1, 6), (2, 7), (10, 9)])
def test_no_fewer_units_are_asked_for_than_the_test_needs(pairs, least):
    # All exchanges of n images, 2 of which reach a difference that all images agree on: p = 2 / 2^n.
    assert 2 / 2**least <= 0.05 / pairs < 2 / 2 ** (least - 1)
    sure = [replace(difference(0.25, value=0.5, se=0.001), clusters=3) for _ in range(pairs)]
    found = add_verdicts(correct_p_values(sure), HITS.card, 0.05)[0]
    assert found.units_needed == least
    assert "with these 3 images: " in describe_difference(found, RATE)
    assert describe_difference(found, RATE).endswith(
        f"About {least} images would be needed if the observed difference is the true one."
    )


def test_the_units_needed_tell_what_too_few_cannot():
    # Planned for 80 %: of 60 fresh samples of the planned size about 48 tell; the standard error is 3.
    rng = np.random.default_rng(3)
    gap, spread = 0.5, 1.0
    needed = math.ceil((2.8016 * spread / gap) ** 2)
    few = [rng.normal(gap, spread, 12) for _ in range(60)]
    enough = [rng.normal(gap, spread, needed) for _ in range(60)]

    def told(samples):
        runs = [[hits_run(sample, "ant"), hits_run(np.zeros(len(sample)), "bee")] for sample in samples]
        return sum(compare_runs(pair, swaps=199, resamples=2).headline[0].verdict == "better" for pair in runs)

    assert told(few) < 40 <= told(enough) <= 57


def test_sentences_say_what_holds_and_how_sure_it_is():
    (better,) = add_verdicts(correct_p_values([difference(0.002)]), HITS.card, 0.05)
    assert describe_difference(better, RATE) == (
        "ant is better than bee in hit rate: 0.600 against 0.500, a difference of 0.100 "
        "(95% interval 0.000 to 0.200, p = 0.002)."
    )
    lower = find_score_meaning(HITS.card, "misses")
    (worse,) = add_verdicts(
        correct_p_values([difference(0.002, name="misses", where={"group": "night"})]), HITS.card, 0.05
    )
    assert describe_difference(worse, lower).startswith(
        "ant is worse than bee in miss rate where group is night (lower is better)"
    )
    (unsure,) = add_verdicts(correct_p_values([difference(0.3, value=0.004, se=0.01)]), HITS.card, 0.05)
    told = describe_difference(unsure, RATE)
    assert "ant and bee do not differ significantly in hit rate with these 100 images" in told
    # 100 * (2.9964 * 0.01 / 0.004)^2 = 5,612, in two digits, rounded up.
    assert told.endswith("About 5,700 images would be needed if the observed difference is the true one.")
    corrected_pair = add_verdicts(correct_p_values([difference(0.02), difference(0.9)]), HITS.card, 0.05)
    assert "p = 0.020, 0.040 after Holm's correction" in describe_difference(corrected_pair[0], RATE)


def test_sentences_at_the_edges():
    def told(**more):
        return describe_difference(replace(difference(0.2), **more), RATE)

    assert told(verdict="cannot tell", adjusted=0.2, units_needed=90.0).endswith("this number of images can show.")
    assert told(verdict="cannot tell", adjusted=0.2, units_needed=math.nan).endswith("is not known.")
    assert "cannot be compared: it is undefined" in told(verdict="undefined")
    assert "are equal in hit rate on this 1 image: both" in told(
        verdict="cannot tell", value=0.0, p_value=1.0, clusters=1
    )
    assert "interval" not in told(verdict="better", adjusted=0.2, interval=None)
    assert find_score_meaning(HITS.card, "unheard-of") == ScoreMeaning("unheard-of", "unheard-of", "")
