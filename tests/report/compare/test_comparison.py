import math

import numpy as np
import pytest
from compared_runs import HITS, hits_run
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.harness.sections import DotChart, Gallery, HeatMap, SlopeChart, Table
from hardlook.harness.stats import permutation_test_mean
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.differences import describe_difference
from hardlook.report.compare.report import build_sections
from hardlook.report.compare.slices import count_wins, find_slice_winners, find_winner_changes

values = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=9)

GROUPS = ["day"] * 60 + ["night"] * 30


@given(values, st.integers(0, 2**16))
@settings(max_examples=25)
def test_the_other_order_turns_every_difference_round(first, seed):
    second = np.random.default_rng(seed).permutation(first).tolist()
    runs = [hits_run(first, "ant"), hits_run(second, "bee")]
    forward, backward = (compare_runs(pair, swaps=50, resamples=30) for pair in (runs, runs[::-1]))
    for one, other in zip(forward.differences, backward.differences, strict=True):
        assert (one.value, one.p_value, one.adjusted) == (-other.value, other.p_value, other.adjusted)
        assert one.units_needed == other.units_needed
        if one.interval is not None:
            assert (one.interval.low, one.interval.high) == pytest.approx((-other.interval.high, -other.interval.low))


@given(values)
@settings(max_examples=15)
def test_a_run_cannot_be_told_from_itself(hits):
    found = compare_runs([hits_run(hits, "ant"), hits_run(hits, "bee")], swaps=50, resamples=20)
    assert all((one.value, one.p_value, one.verdict) == (0.0, 1.0, "cannot tell") for one in found.differences)
    assert found.headline[0].units_needed == math.inf or len(hits) < 2
    assert "are equal in hit rate" in describe_difference(found.headline[0], HITS.card.scores[0])
    assert [place.rank for place in found.standings["rate"]] == [1, 1]


def test_scores_and_p_values_are_those_of_the_means():
    rng = np.random.default_rng(5)
    a, b = rng.random(12), rng.random(12) + 0.1
    (one,) = compare_runs([hits_run(a, "ant"), hits_run(b, "bee")]).headline
    alone = permutation_test_mean(a, b, rng=rng)
    assert one.value == pytest.approx(alone.difference)
    assert one.p_value == alone.p_value
    assert (one.n, one.clusters, one.resampled) == (12, 12, "image")


def winner_that_changes():
    """By day, most of the time, ant hits nearly always and bee does not; at night it is the other way round."""
    rng = np.random.default_rng(6)
    ant = np.concatenate([rng.random(60) < 0.98, rng.random(30) < 0.35])
    bee = np.concatenate([rng.random(60) < 0.05, rng.random(30) < 0.9])
    return [hits_run(ant, "ant", groups=GROUPS), hits_run(bee, "bee", groups=GROUPS)]


def test_who_wins_where_and_where_the_winner_changes():
    found = compare_runs(winner_that_changes(), swaps=999)
    winners = find_slice_winners(found)
    by_group = {winner.slice.get("group", "all"): winner for winner in winners if winner.name == "rate"}
    assert by_group["day"].leaders == ("ant",)
    assert by_group["night"].leaders == ("bee",)
    assert count_wins([by_group["day"], by_group["night"]], found.models) == {"ant": 1, "bee": 1}
    assert by_group["all"].leaders == ("ant",)
    assert [change.winner.slice for change in find_winner_changes(winners)] == [{"group": "night"}]


def test_several_models_are_ranked_with_tied_sets_and_every_pair_is_compared():
    rng = np.random.default_rng(7)
    runs = [hits_run(rng.random(80) < rate, name) for name, rate in (("ant", 0.9), ("bee", 0.88), ("cat", 0.2))]
    found = compare_runs(runs, swaps=999)
    assert [(one.first, one.second) for one in found.headline] == [("ant", "bee"), ("ant", "cat"), ("bee", "cat")]
    places = found.standings["rate"]
    assert [place.model for place in places][-1] == "cat"
    assert [place.rank for place in places] == [1, 1, 3]
    assert places[0].sets == places[1].sets != places[2].sets
    assert all(one.adjusted >= one.p_value for one in found.headline)


def test_the_page_has_verdicts_slices_units_and_every_difference():
    runs = winner_that_changes()
    from hardlook.report.compare.units import compute_unit_qualities

    found = compare_runs(runs, swaps=99)
    sections = build_sections(found, runs, compute_unit_qualities(runs, found.models, found.units.ids, 3), examples=3)
    assert [section.title for section in sections] == [
        "Who is better", "The other scores", "By group", "Which units they differ on", "All differences"
    ]  # fmt: skip
    blocks = [block for section in sections for block in section.blocks]
    # The chart of differences shows what a slope chart would.
    assert not any(isinstance(block, SlopeChart) for block in blocks)
    (by_group,) = [section for section in sections if section.title == "By group"]
    assert [(type(block), block.title) for block in by_group.blocks] == [
        (HeatMap, "Who wins where: group"), (DotChart, "Differences in hit rate by group")
    ]  # fmt: skip
    assert [row.label for row in by_group.blocks[1].rows] == ["day *", "night *"]
    (heat,) = [block for block in blocks if isinstance(block, HeatMap)]
    assert heat.rows == ["day", "night"] and heat.values == [[1.0], [-1.0]]
    galleries = [block for block in blocks if isinstance(block, Gallery)]
    assert [len(gallery.examples) for gallery in galleries] == [3, 3]
    assert galleries[0].examples[0].caption == "ant: 1.000. hit 1.0 bee: 0.000. hit 0.0"
    everything = [block for block in sections[-1].blocks if isinstance(block, Table)]
    assert len(everything[0].rows) == len(found.differences) == 6


def test_a_benchmark_without_tallies_has_its_scores_side_by_side():
    class Plain:
        card, options, schema, tallies = HITS.card, HITS.options, HITS.schema, None

        def readings(self, options):
            return ()

    runs = [hits_run([1, 0], "ant", benchmark=Plain()), hits_run([1, 1], "bee", benchmark=Plain())]
    found = compare_runs(runs)
    assert found.differences == () and found.standings == {}
    assert "no tallies" in found.notes[-1]
    (section,) = build_sections(found, runs, None)
    assert section.title == "Side by side" and "no tallies" in section.text
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert table.rows == (("ant", 0.5), ("bee", 1.0))


def test_progress_counts_every_swap():
    told = []
    groups = ["a"] * 3 + ["b"] * 20
    runs = [hits_run([1] * 23, "ant", groups=groups), hits_run([0] * 23, "bee", groups=groups)]
    compare_runs(runs, swaps=30, show_progress=lambda done, total: told.append((done, total)))
    # All units and group b by 30 random swaps, group a by all of its 2**3.
    assert told[-1] == (68, 68)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_wrong_alpha_is_refused():
    with pytest.raises(ValueError, match="alpha: expected a number between 0 and 1"):
        compare_runs([hits_run([1], "ant"), hits_run([1], "bee")], alpha=5)
