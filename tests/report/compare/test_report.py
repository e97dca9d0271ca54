"""The page's sections: ranks and letters in the charts, sentences while they are few, then a table."""

from types import SimpleNamespace

import numpy as np
import pytest
from compared_runs import hits_run

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.sections import DotChart, Table
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.differences import HEADLINE_SCORES, Difference
from hardlook.report.compare.report import build_sections, describe_comparison

RATES = {"ant": 0.95, "bee": 0.9, "cat": 0.3, "dog": 0.1, "eel": 0.05}


def compared(count, n=80):
    rng = np.random.default_rng(7)
    runs = [hits_run(rng.random(n) < RATES[name], name) for name in list(RATES)[:count]]
    return runs, compare_runs(runs, swaps=999)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_chart_of_each_headline_score_has_ranks_and_letters(count):
    runs, found = compared(count)
    blocks = [block for section in build_sections(found, runs, None) for block in section.blocks]
    (chart,) = [block for block in blocks if isinstance(block, DotChart) and block.title == "hit rate"]
    places = found.standings["rate"]
    assert [row.label.split() for row in chart.rows] == [
        [str(place.rank), "".join(place.sets), place.model] for place in places
    ]
    assert [row.value for row in chart.rows] == [place.score for place in places]
    assert "share a letter" in chart.caption and "Higher is better" in chart.caption
    assert not any("Ranking" in block.title for block in blocks)


def test_six_differences_are_sentences_and_more_are_a_table():
    runs, found = compared(4)
    (pairs,) = [section for section in build_sections(found, runs, None) if section.title == "Pair by pair"]
    assert pairs.text.count("hit rate") == 6 and not any(isinstance(block, Table) for block in pairs.blocks)
    runs, found = compared(5)
    (pairs,) = [section for section in build_sections(found, runs, None) if section.title == "Pair by pair"]
    told = sum(one.verdict in ("better", "worse") for one in found.headline)
    assert pairs.text.startswith(f"Of 10 differences {told} hold after the correction.")
    (table,) = [block for block in pairs.blocks if isinstance(block, Table)]
    columns = dict(zip(table.columns, table.rows[0], strict=True))
    one = found.headline[0]
    assert (columns["score"], columns["first"], columns["second"]) == ("hit rate", one.first, one.second)
    assert (columns["first has"], columns["second has"], columns["difference"]) == (
        one.first_value, one.second_value, one.value
    )  # fmt: skip
    assert (columns["low"], columns["high"]) == (one.interval.low, one.interval.high)
    assert (columns["p"], columns["adjusted p"], columns["verdict"]) == (one.p_value, one.adjusted, one.verdict)
    needed = [row[-1] for row in table.rows]
    assert [value is None for value in needed] == [
        one.is_significant or np.isinf(one.units_needed) for one in found.headline
    ]


def test_pairs_are_headings_of_the_chart_of_differences():
    runs, found = compared(3)
    (pairs,) = [section for section in build_sections(found, runs, None) if section.title == "Pair by pair"]
    (chart,) = pairs.blocks
    assert [row.group for row in chart.rows] == ["ant minus bee", "ant minus cat", "bee minus cat"]
    assert {row.label for row in chart.rows} == {"hit rate"}


def test_two_models_are_told_in_a_short_sentence():
    ant, bee = hits_run([1] * 76 + [0] * 4, "ant"), hits_run([1, 0, 0, 0] * 20, "bee")
    assert describe_comparison(compare_runs([ant, bee], swaps=999)) == [
        "ant is better than bee in hit rate: 0.950 against 0.250 on 80 images."
    ]
    assert describe_comparison(compare_runs([bee, ant], swaps=999)) == [
        "bee is worse than ant in hit rate: 0.250 against 0.950 on 80 images."
    ]
    # Three images never tell, however far the values are apart.
    few = compare_runs([hits_run([1, 1, 1], "ant"), hits_run([0, 0, 0], "bee")])
    assert describe_comparison(few) == [
        "These data cannot tell ant and bee apart in hit rate: 1.000 against 0.000 on 3 images."
    ]


def test_of_several_models_the_leader_is_named_with_those_that_may_be_as_good():
    _, found = compared(3)
    leads = found.standings["rate"][0]
    assert describe_comparison(found) == [
        f"ant leads 3 models in hit rate with {leads.score:.3f}; these data cannot tell it from bee."
    ]
    rng = np.random.default_rng(7)
    clear = [hits_run(rng.random(80) < rate, name) for name, rate in (("ant", 0.95), ("bee", 0.5), ("cat", 0.1))]
    [said] = describe_comparison(compare_runs(clear, swaps=999))
    assert said.startswith("ant leads 3 models in hit rate with ") and said.endswith(", ahead of all others.")


def test_a_leader_is_not_ahead_of_one_that_does_not_differ_from_it():
    # bee is .1 below ant in every unit; cat is .15 below in the mean, now above, now below.
    ant, bee, cat = np.full(14, 0.9), np.full(14, 0.8), 0.75 + np.tile([0.4, -0.4], 7)
    found = compare_runs([hits_run(values, name) for values, name in ((ant, "ant"), (bee, "bee"), (cat, "cat"))])
    assert [(place.model, place.sets) for place in found.standings["rate"]] == [
        ("ant", ("a",)), ("bee", ("b",)), ("cat", ("b",))
    ]  # fmt: skip
    assert describe_comparison(found) == [
        "ant leads 3 models in hit rate with 0.900; these data cannot tell it from cat."
    ]


def test_the_other_headline_scores_are_counted_by_verdict():
    names = ("a", "b", "c", "d")
    scores = tuple(ScoreMeaning(name, name.upper(), "", name != "c", True, name != "d") for name in names)

    def say(**verdicts):
        differences = tuple(
            Difference(
                name, {}, "ant", "bee", 0.1, None, 0.01, 0.01, HEADLINE_SCORES, 40, 9.0, verdict, 0.6, 0.5,
                clusters=40, resampled="image",
            )
            for name, verdict in verdicts.items()
        )  # fmt: skip
        comparison = SimpleNamespace(
            benchmark=SimpleNamespace(card=SimpleNamespace(scores=scores)),
            headline=differences,
            models=("ant", "bee"),
            find_meaning=lambda name: next(score for score in scores if score.name == name),
        )
        return describe_comparison(comparison)

    first = "ant is better than bee in A: 0.600 against 0.500 on 40 images."
    # The main score is the first of the card, wherever it is in the comparison.
    assert say(d="lower", c="better", b="cannot tell", a="better") == [
        first, "Of the 3 other headline scores it is better in 1 and lower in 1; these data cannot tell in 1."
    ]  # fmt: skip
    assert say(a="better", b="better", c="better")[1] == "ant is better in the other 2 headline scores, too."
    assert say(a="better", b="undefined")[1] == "These data cannot tell in the other one."
    assert (
        say(a="better", b="cannot tell", c="cannot tell")[1] == "These data cannot tell in the other 2 headline scores."
    )
    assert say(c="worse") == ["ant is worse than bee in C (lower is better): 0.600 against 0.500 on 40 images."]
    assert say(a="undefined") == ["A of ant and bee cannot be compared: it is undefined."]
    assert say() == []
