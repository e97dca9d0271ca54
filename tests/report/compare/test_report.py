"""The page's sections: ranks and letters in the charts, sentences while they are few, then a table."""

import numpy as np
import pytest
from compared_runs import hits_run

from hardlook.harness.sections import DotChart, Table
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.report import build_sections

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
