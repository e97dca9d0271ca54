"""Crowd against crowd: who is left out, worked numbers, and that a difference of devices is seen."""

import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.models.planted.click_models import user_map
from hardlook.rclicks.click_evaluation.stem_scores import summarise_rows
from hardlook.rclicks.user_clicks.comparison import PAIR_METRICS, ClickSets, compare_click_sets, split_by_label
from hardlook.rclicks.user_clicks.planted_users import draw_clicks, planted_samples

STEMS = [sample.clicked_stem() for sample in planted_samples(6, 36, (96, 72), clicks=40)]


def crowds(clumsy, stems=STEMS):
    """The stems' own clicks as made on a pc, and as many of clumsier people."""
    for stem in stems:
        chances = user_map(stem.image, stem.target, stem.error, stem.positive, clumsy=clumsy)
        clicked = {"pc": stem.clicks, "mobile": draw_clicks(chances, len(stem.clicks), ("mobile", stem.full_stem))}
        yield ClickSets("planted", stem.full_stem, stem.box, clicked, stem.click_type)


def test_worked_numbers_of_the_specification():
    sets = {"pc": np.array([(0, 0), (10, 0), (10, 20)]), "mobile": np.array([(0, 10), (20, 20)])}
    [row] = compare_click_sets([ClickSets("D", "s", (20, 40), sets)], "pc", "mobile", least=1).rows
    assert (row.pl1, row.wd) == (pytest.approx(0.7916667), pytest.approx(0.2851092, abs=1e-7))
    [paper] = compare_click_sets([ClickSets("D", "s", (20, 40), sets)], "pc", "mobile", least=1, reading="paper").rows
    assert paper.wd == pytest.approx(0.4610206, abs=1e-7)
    sets = {"text": np.array([(1, 1), (2, 3), (4, 2), (5, 5)]), "cut-out": np.array([(1, 4), (3, 3), (6, 1), (6, 6)])}
    [row] = compare_click_sets([ClickSets("D", "s", (20, 40), sets)], "cut-out", "text", least=4).rows
    assert (row.ks, row.p) == (True, pytest.approx(0.356064, abs=1e-6))
    assert (row.first, row.second, row.clicks, row.other_clicks) == ("cut-out", "text", 4, 4)


@pytest.mark.parametrize(("pc", "mobile", "kept"), [(10, 10, 1), (9, 30, 0), (30, 9, 0), (30, 0, 0)])
def test_stems_with_too_few_clicks_are_counted(pc, mobile, kept):
    rng = np.random.default_rng(0)
    sets = {"pc": rng.random((pc, 2)), "mobile": rng.random((mobile, 2))}
    found = compare_click_sets([ClickSets("D", "s", (1, 1), sets)], "pc", "mobile")
    assert (len(found.rows), found.too_few) == (kept, 1 - kept)


def test_a_stem_without_a_crowd_is_counted():
    assert compare_click_sets([ClickSets("D", "s", (1, 1), {})], "pc", "mobile", least=0).too_few == 1


def test_a_constant_coordinate_fails_and_says_why():
    line = np.stack([np.full(12, 3.0), np.arange(12.0)], axis=1)
    found = compare_click_sets([ClickSets("D", "s", (5, 5), {"pc": line, "mobile": line})], "pc", "mobile")
    [row] = found.rows
    assert not row.ks
    assert "x of the first set" in row.why
    [whole] = summarise_rows(found.rows, PAIR_METRICS, resamples=0)
    assert whole.ks_undefined == 1
    assert whole.scores["wd"].value == 0


def test_equal_crowds_pass_and_clumsy_ones_are_told_apart():
    shares, distances = [], []
    for clumsy in (0.0, 0.5, 1.0):
        [whole] = summarise_rows(compare_click_sets(crowds(clumsy), "pc", "mobile").rows, PAIR_METRICS, resamples=0)
        shares.append(whole.scores["ks"].value)
        distances.append(whole.scores["wd"].value)
    assert shares[0] > 0.85
    assert shares[0] > shares[1] > shares[2]
    assert distances[0] < distances[1] < distances[2]


def test_sides_may_be_exchanged():
    stems = list(crowds(1.0, STEMS[:6]))
    there = compare_click_sets(stems, "pc", "mobile").rows
    back = compare_click_sets(stems, "mobile", "pc").rows
    for first, second in zip(there, back, strict=True):
        assert (first.p, first.pl1, first.wd) == pytest.approx((second.p, second.pl1, second.wd))


def test_bad_points_name_the_stem():
    sets = {"pc": np.full((10, 2), np.nan), "mobile": np.ones((10, 2))}
    with pytest.raises(DataError) as caught:
        compare_click_sets([ClickSets("D", "broken", (5, 5), sets)], "pc", "mobile")
    assert caught.value.unit == "broken"


def test_points_are_split_by_label():
    found = split_by_label(np.arange(8).reshape(4, 2), ["b", "a", "b", "b"])
    assert {name: points.tolist() for name, points in found.items()} == {"a": [[2, 3]], "b": [[0, 1], [4, 5], [6, 7]]}
    with pytest.raises(DataError, match="got 1 for points of"):
        split_by_label(np.ones((2, 2)), ["a"])
