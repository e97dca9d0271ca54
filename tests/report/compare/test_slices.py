"""Who wins where: against whom a change is told, and that nobody wins by a score that is neither good nor bad."""

from dataclasses import replace

import numpy as np
from compared_runs import Hits, hits_run

from hardlook.harness.sections import DotChart, HeatMap
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.differences import describe_difference
from hardlook.report.compare.report import build_sections
from hardlook.report.compare.slices import (
    SliceWinner,
    WinnerChange,
    build_winner_change_table,
    describe_winner_changes,
    find_slice_winners,
    find_winner_changes,
    list_most_frequent_winners,
)


def won(name, where, *leaders):
    return SliceWinner(name, where, leaders, {"ant": 0.5, "bee": 0.6, "cat": 0.1}, 9)


def by_class(name, **leaders):
    return [
        won(name, {"class": value}, *((model,) if isinstance(model, str) else model))
        for value, model in leaders.items()
    ]


def test_a_change_is_told_against_the_winner_over_all_units_of_the_same_score():
    winners = [won("iou", {}, "ant"), won("other", {}, "bee"), *by_class("iou", x="bee", y="ant", z="bee")]
    assert [(one.winner.slice["class"], one.usual, one.overall) for one in find_winner_changes(winners)] == [
        ("x", ("ant",), True),
        ("z", ("ant",), True),
    ]


def test_a_score_without_a_value_over_all_units_is_held_against_the_model_that_wins_most_slices():
    # The headline's winner is no measure for another score, whoever it is.
    winners = [won("gap", {}, "cat"), *by_class("iou", a="ant", b="ant", c="bee", d=("ant", "bee"))]
    assert [(one.winner.slice["class"], one.usual, one.overall) for one in find_winner_changes(winners)] == [
        ("c", ("ant",), False)
    ]
    even = by_class("iou", a="ant", b="bee", c=("ant", "bee"))
    assert list_most_frequent_winners(even) == ("ant", "bee") and find_winner_changes(even) == []
    assert find_winner_changes(by_class("iou", a=("ant", "bee"), b=("ant", "bee"))) == []


def test_each_kind_of_slice_has_its_own_usual_winner():
    winners = by_class("iou", a="ant", b="ant", c="bee")
    winners += [won("iou", {"context": value}, model) for value, model in (("x", "bee"), ("y", "bee"), ("z", "ant"))]
    assert [(one.winner.slice, one.usual) for one in find_winner_changes(winners)] == [
        ({"class": "c"}, ("ant",)),
        ({"context": "z"}, ("bee",)),
    ]


class Undirected(Hits):
    """The same scores, but the hit rate is neither good nor bad."""

    card = replace(Hits.card, scores=tuple(replace(one, ranked=one.name != "rate") for one in Hits.card.scores))


def runs_of(benchmark, models=("ant", "bee")):
    rng = np.random.default_rng(4)
    groups = ["day"] * 30 + ["night"] * 30
    rates = dict(zip(("ant", "bee", "cat"), (0.9, 0.2, 0.5), strict=True))
    return [hits_run(rng.random(60) < rates[name], name, groups=groups, benchmark=benchmark) for name in models]


def test_a_change_in_words_says_who_usually_wins_and_why():
    found = compare_runs(runs_of(Hits()), swaps=99)
    changes = [
        WinnerChange(won("rate", {"group": "night"}, "bee"), ("ant",), True),
        WinnerChange(won("rate", {"group": "dawn"}, "bee"), ("ant", "cat"), False),
    ]
    assert describe_winner_changes(found, changes) == [
        "The winner changes where group is night: bee is ahead in hit rate, not ant, which leads over all units.",
        "The winner changes where group is dawn: bee is ahead in hit rate, not ant and cat, which win the most slices.",
    ]
    table = build_winner_change_table(found, changes)
    assert table.rows[0] == ("hit rate", "group: night", "bee", "ant", 0.6, 0.5, 9)
    assert "leads over all units" in table.caption and "no value over all units" in table.caption


def test_by_an_undirected_score_models_are_higher_or_lower_and_nobody_is_ranked_or_wins():
    runs = runs_of(Undirected())
    found = compare_runs(runs, swaps=999)
    (one,) = found.headline
    assert one.verdict == "higher"
    assert compare_runs(runs[::-1], swaps=999).headline[0].verdict == "lower"
    told = describe_difference(one, Undirected.card.scores[0])
    assert told.startswith("ant is higher than bee in hit rate: ") and "better" not in told
    assert found.standings == {}
    assert all(winner.leaders == () for winner in find_slice_winners(found) if winner.name == "rate")
    assert find_winner_changes(find_slice_winners(found)) == []
    sections = build_sections(found, runs, None)
    charts = [block for section in sections for block in section.blocks if isinstance(block, DotChart)]
    (scores,) = [chart for chart in charts if chart.title == "hit rate"]
    assert "Neither higher nor lower is better" in scores.caption
    assert [row.label for row in scores.rows] == ["ant", "bee"]
    (by_group,) = [section for section in sections if section.title == "By group"]
    assert "wins" not in by_group.text
    assert not any(isinstance(block, HeatMap) for block in by_group.blocks)
    (differences,) = [block for block in by_group.blocks if isinstance(block, DotChart)]
    assert "neither more nor less is better" in differences.caption and all(
        "*" in row.label for row in differences.rows
    )


def test_of_several_models_an_undirected_score_is_shown_without_a_map_of_winners():
    runs = runs_of(Undirected(), ("ant", "bee", "cat"))
    sections = build_sections(compare_runs(runs, swaps=99), runs, None)
    (by_group,) = [section for section in sections if section.title == "By group"]
    (values,) = by_group.blocks
    assert values.title == "hit rate by group" and values.columns == ("ant", "bee", "cat")


class Turned(Hits):
    """At night there is nothing to hit."""

    card = replace(
        Hits.card, scores=tuple(replace(one, inverted_slices=(("group", "night"),)) for one in Hits.card.scores)
    )


def test_where_there_is_nothing_to_find_the_model_that_finds_less_wins():
    found = compare_runs(runs_of(Turned()), swaps=999)
    told = {one.slice.get("group", "all"): one for one in found.differences if one.name == "rate"}
    assert {name: one.verdict for name, one in told.items()} == {"all": "better", "day": "better", "night": "worse"}
    leaders = {winner.slice.get("group", "all"): winner.leaders for winner in find_slice_winners(found)}
    assert leaders == {"all": ("ant",), "day": ("ant",), "night": ("bee",)}
    assert "where group is night (lower is better)" in describe_difference(told["night"], Turned.card.scores[0])
    (by_group,) = [section for section in build_sections(found, runs_of(Turned()), None) if section.title == "By group"]
    (differences,) = [block for block in by_group.blocks if isinstance(block, DotChart)]
    assert "more is better, but for night the other way round" in differences.caption
