"""The first sentences of a report: what they say, and what they must not say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import small_run

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.scorecard import Score, Scorecard, make_score
from hardlook.harness.stats import bootstrap_mean
from hardlook.harness.stats.intervals import Interval
from hardlook.harness.verdicts import CANNOT_TELL, compare_slices, list_slice_kinds
from hardlook.report.page import render_page
from hardlook.report.run_report import write_report
from hardlook.report.statements import choose_headline_scores, describe_run

MIOU = ScoreMeaning("miou", "mIoU", "mean over classes", headline=True)
IOU = ScoreMeaning("iou", "IoU", "of one class")
CLICKS = ScoreMeaning("noc90", "NoC@90, sampled clicks", "clicks to 90 % IoU: mean over groups", False, headline=True)


def score(name, value, half=0.03, n=40, resampled="image", **where):
    interval = None if half is None else Interval(value - half, value + half, 0.95, "t", n, resampled)
    return Score(name, value, n, interval, where)


def say(*scores, meanings=(MIOU, IOU)):
    return describe_run(Scorecard("b", "1", "m", scores), meanings)


def by_class(values, half=0.03, n=40, name="iou"):
    return [score(name, value, half, n, **{"class": label}) for label, value in values.items()]


def test_the_main_score_is_named_with_its_interval_and_what_it_rests_on():
    assert say(score("miou", 0.6512, n=537)) == ["mIoU is 0.65 (0.62 to 0.68) on 537 images."]


def test_a_score_that_not_everyone_knows_is_explained_in_its_sentence():
    [said] = say(score("noc90", 6.4, 0.61, n=1200), meanings=[CLICKS])
    assert said == (
        "The NoC@90, sampled clicks, is 6.4 (5.8 to 7.0) on 1,200 images: clicks to 90 % IoU; mean over groups."
    )
    gap = ScoreMeaning("gap", "IID-OOD gap", "accuracy lost when queries leave their context", False)
    [said] = say(score("gap", -0.1234, 0.004, resampled="task"), meanings=[gap])
    assert said == (
        "The IID-OOD gap is \N{MINUS SIGN}0.123 (\N{MINUS SIGN}0.127 to \N{MINUS SIGN}0.119) on 40 tasks: "
        "accuracy lost when queries leave their context."
    )


def test_the_slice_that_the_average_hides_is_named_beside_the_others():
    said = say(score("miou", 0.65, n=537), *by_class({"bicycle": 0.32, "cat": 0.8, "dog": 0.7}))
    assert said[1] == (
        "The average hides the class bicycle: its IoU is 0.32 (0.29 to 0.35), against 0.75 in the mean of the other 2 "
        "classes."
    )


def test_the_others_are_in_the_mean_of_slices_as_the_average_is():
    values = [score("iou", 0.2, **{"class": "a"}), score("iou", 0.6, **{"class": "b"})]
    values.append(score("iou", 0.9, 0.02, n=120, **{"class": "c"}))
    # (0.6 + 0.9) / 2, and not (40 * 0.6 + 120 * 0.9) / 160 = 0.825
    assert (
        "the class a: its IoU is 0.20 (0.17 to 0.23), against 0.75 in the mean of"
        in say(score("miou", 0.6), *values)[1]
    )


def test_where_a_large_slice_pulls_the_mean_to_the_other_side_its_weight_is_told():
    values = [score("iou", 0.5, 0.01, n=100, **{"class": "a"}), score("iou", 0.9, 0.01, n=2000, **{"class": "b"})]
    values += [score("iou", 0.2, 0.9, n=11, **{"class": name}) for name in "cdefg"]
    # The five small slices have a mean of (0.9 + 5 * 0.2) / 6 = 0.32; weighted by images it is above 0.5.
    said = say(score("miou", 0.6), *values)[1]
    assert said.startswith("The average hides the class a: its IoU is 0.50") and "against 0.881 in" in said
    assert said.endswith("in the mean of the other 6 classes, weighted by images.")


def test_where_lower_is_better_the_high_slice_is_hidden():
    clicks = [score("noc90", value, 0.3, size=size) for size, value in (("small", 9.0), ("large", 2.0))]
    said = say(score("noc90", 5.0, 0.3), *clicks, meanings=[CLICKS])
    assert said[1].startswith(
        "The average hides the size small: its NoC@90, sampled clicks, is 9.0 (8.7 to 9.3), against"
    )
    assert said[1].endswith("against 2.0 for large.")


def test_a_slice_that_is_only_better_stands_out_and_equal_ones_are_counted():
    scores = by_class({"sky": 1.0, "sea": 1.0}, 0.02, n=400) + by_class({f"c{i}": 0.5 for i in range(8)}, 0.45)
    assert say(score("miou", 0.7), *scores)[1] == (
        "The class sky and 1 more stand out: their IoU is 1.00 (0.98 to 1.02), against 0.50 in the mean of the other 8 "
        "classes."
    )


def test_by_a_score_that_is_neither_good_nor_bad_nothing_is_hidden():
    gain = ScoreMeaning("gain", "given back", "", ranked=False)
    said = say(*by_class({"a": 0.1, "b": 0.9}, name="gain"), score("gain", 0.5), meanings=[gain])
    assert said[1].startswith("The class ") and " stands out: " in said[1]


def test_where_an_empty_answer_is_right_a_low_score_is_not_told_as_hidden():
    meaning = ScoreMeaning("iou", "IoU", "", inverted_slices=(("support", "wrong"),))
    scores = [score("iou", value, support=name) for name, value in (("right", 0.9), ("wrong", 0.0))]
    assert len(say(score("miou", 0.5), *scores, meanings=[MIOU, meaning])) == 1


@pytest.mark.parametrize("half", [0.45, 0.6])
def test_what_chance_may_have_parted_is_not_told(half):
    said = say(
        score("miou", 0.5),
        *by_class({"a": 0.2, "b": 0.8}, half),
        *(score("iou", 0.5, 0.3, context=name) for name in "xyz"),
    )
    assert said[1] == (
        "These data cannot tell where it is low or high: of 2 classes and 3 contexts none differs from the rest beyond "
        "chance."
    )


def test_three_images_of_one_class_allow_no_statement_but_the_number():
    thin = Score("miou", 0.9, 3, Interval(0.7, 1.0, 0.95, "t", 3, "image"), rests_on={"image": 3, "class": 1})
    said = say(thin, score("iou", 0.9, 0.0, n=3, **{"class": "cat"}), score("iou", 0.1, 0.0, n=3, **{"class": "dog"}))
    assert said == [
        "mIoU is 0.90 on 3 images, of a single class.",
        "These data cannot tell how it would be on others: a statement needs 10 images.",
    ]
    one = Score("miou", 0.9, 1, rests_on={"image": 1})
    assert say(one)[0] == "mIoU is 0.90 on 1 image."


def test_slices_of_too_few_images_are_not_compared():
    said = say(score("miou", 0.5, n=90), *by_class({"a": 0.0, "b": 1.0}, 0.0, n=3))
    assert said[1] == (
        "These data cannot tell where it is low or high: the largest slice has 3 images, and a statement needs 10."
    )
    said = say(score("miou", 0.5, n=90), *by_class({"a": 0.2, "b": 0.9}, n=40)[:1], *by_class({"b": 0.9}, n=4))
    assert said[1].endswith("fewer than two slices have 10 images and an interval.")


def test_undefined_scores_and_missing_intervals_are_said():
    gone = Score("miou", math.nan, 0, reason="no image has a label")
    assert say(gone, *by_class({"a": 0.1, "b": 0.9})) == ["mIoU is undefined: no image has a label."]
    assert say(Score("miou", math.nan, 0)) == ["mIoU is undefined."]
    bare = Score("miou", 0.5, 57, undefined=0.7, rests_on={"query image": 57})
    assert say(bare) == ["mIoU is 0.50 (no interval, since 70 % of the resamples are undefined) on 57 query images."]
    assert say() == ["No score over all units was computed."]


def test_equal_values_are_told_as_such():
    perfect = make_score("miou", bootstrap_mean(np.ones(30), rng=np.random.default_rng(0), resampled="image"), 30)
    values = {"a": 1.0, "b": 1.0 - 1e-16, "c": 1.0}
    assert say(perfect, *by_class(values, 0.02)) == [
        "mIoU is 1.00 on each of 30 images.", "IoU is 1.00 in each of the 3 classes."
    ]  # fmt: skip
    two = [score("miou", 1.0, 0.02, context=name) for name in ("day", "night")]
    assert say(perfect, *two)[1] == "mIoU is 1.00 in both contexts."


def test_the_interval_that_covers_the_draw_of_the_images_is_told():
    narrow = Interval(0.48, 0.52, 0.95, "t", 600, "task")
    wide = Interval(0.41, 0.59, 0.95, "shared images", 90, "image")
    assert say(Score("miou", 0.5, 600, narrow, wider=wide))[0] == "mIoU is 0.50 (0.41 to 0.59) on 600 tasks."


def test_cards_are_those_of_headline_scores_in_the_order_of_the_benchmark():
    scores = tuple(score(name, 0.5) for name in ("a", "b", "c", "d", "e", "f"))
    card = Scorecard("b", "1", "m", (*scores, score("f", 0.1, k="x")))
    meanings = [ScoreMeaning(name, name, "", headline=name != "d") for name in "fedcba"]
    assert [one.name for one in choose_headline_scores(card, meanings)] == ["f", "e", "c", "b"]
    assert [one.name for one in choose_headline_scores(card)] == ["a", "b", "c", "d"]
    assert [one.name for one in choose_headline_scores(card, [ScoreMeaning("d", "", "")])] == ["d"]
    assert [one.name for one in choose_headline_scores(card, [ScoreMeaning("z", "", "")], most=2)] == ["a", "b"]


def draw_class(rng, name, mean, images):
    values = np.clip(rng.normal(mean, 0.2, images), 0, 1)
    estimate = bootstrap_mean(values, rng=rng, resampled="image", range=(0, 1))
    return make_score("iou", estimate, images, slice={"class": name})


def test_a_planted_slice_is_found_and_none_is_found_where_none_is_planted():
    rng = np.random.default_rng(3)
    low = [draw_class(rng, f"class {i}", 0.35 if i == 7 else 0.7, 40) for i in range(12)]
    said = say(score("miou", 0.65), *low)[1]
    assert said.startswith("The average hides the class class 7: its IoU is 0.3")
    page = render_page(Scorecard("b", "1", "m", (score("miou", 0.65), *low)), [], meanings=[MIOU, IOU])
    assert f'<p class="lead">mIoU is 0.65 (0.62 to 0.68) on 40 images. {said}</p>' in page
    even = [draw_class(rng, f"class {i}", 0.7, 40) for i in range(12)]
    assert say(score("miou", 0.7), *even)[1].startswith(CANNOT_TELL)


def test_a_run_of_three_images_says_that_it_cannot_tell(tmp_path):
    small_run(tmp_path / "run", scenes=3, given={"resamples": 20})
    page = (write_report(score_run(RunFolder(tmp_path / "run")), examples=0)).read_text(encoding="utf-8")
    (lead,) = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert re.fullmatch(
        r"mIoU is 0\.\d\d on 3 images\. These data cannot tell how .*: a statement needs 10 images\.", lead
    )


VALUES = st.lists(
    st.tuples(st.floats(0, 1), st.one_of(st.none(), st.floats(0, 0.5)), st.integers(1, 60)), min_size=0, max_size=8
)


@given(st.floats(0, 1) | st.just(math.nan), st.floats(0, 0.5), st.integers(1, 60), VALUES, st.booleans())
def test_sentences_are_whole_at_most_two_and_name_only_slices_that_the_rule_allows(value, half, n, slices, higher):
    scores = [score("miou", value, half, n)] if math.isfinite(value) else [Score("miou", value, 0)]
    scores += [score("iou", v, h, k, **{"class": f"c{i}"}) for i, (v, h, k) in enumerate(slices)]
    card = Scorecard("b", "1", "m", tuple(scores))
    said = describe_run(card, [MIOU, ScoreMeaning("iou", "IoU", "", higher)])
    assert 1 <= len(said) <= 2
    assert all(line.endswith(".") and line[0] in "mITN" and "nan" not in line and "  " not in line for line in said)
    named = re.findall(r"the class (c\d)|The class (c\d)", said[-1])
    tests = [test for kind in compare_slices([scores for _, scores in list_slice_kinds(card)]) for test in kind]
    allowed = {test.score.slice["class"] for test in tests if test.differs}
    assert {one or other for one, other in named} <= allowed
    if n < 10 or not math.isfinite(value):
        assert not named
