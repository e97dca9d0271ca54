import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from panoptic_images import literal_sums, random_image

from hardlook.metrics.open_pq import (
    OpenPQ,
    class_quality,
    mean_quality,
    open_pq,
    panoptic_scores,
    quality_sums,
    quality_sums_by_image,
    segment_costs,
)
from hardlook.metrics.panoptic import Segments, join_matches, match_segments

CLASSES = 5

LABELS = ["a", "b", "c", "d", "e"]

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, images=4):
    rng = np.random.default_rng(seed)
    similarity = rng.choice([0.0, 0.3, 0.8, 1.0], (CLASSES, CLASSES))
    similarity = np.maximum(np.maximum(similarity, similarity.T), np.eye(CLASSES))
    return [random_image(rng, CLASSES) for _ in range(images)], similarity, rng.random(CLASSES) < 0.5, rng


def matched(images, crowds="last"):
    return join_matches([match_segments(*image, crowds=crowds) for image in images])


def means(scores):
    return np.array([[q.pq, q.sq, q.rq, q.classes] for q in (scores.all, scores.things, scores.stuff)])


def worked_check():
    """The 10 x 10 image of the specification; its class 1 is our class 0."""
    truth, prediction = np.zeros((2, 10, 10), int)
    for k, area in enumerate((slice(0, 2), slice(2, 4), slice(4, 8), slice(8, 9)), 1):
        truth[area] = k
    flat = prediction.reshape(-1)
    flat[0:18], flat[20:36], flat[90:92], flat[40:70], flat[80:88] = 11, 12, 12, 13, 14
    return truth, Segments([1, 2, 3, 4], [0, 1, 2, 3]), prediction, Segments([11, 12, 13, 14], [0, 0, 3, 0])


def test_worked_check():
    similarity = np.eye(4)
    similarity[0, 1] = similarity[1, 0] = 0.5
    similarity[2, 3] = similarity[3, 2] = 0.25
    metric = OpenPQ(["1", "2", "3", "4"], similarity, [True, True, False, False])
    metric.update(*worked_check())
    result = metric.compute()
    assert result.open.all.pq == pytest.approx(0.336905, abs=5e-7)
    assert result.open.all.sq == pytest.approx(0.6125)
    assert result.open.all.rq == pytest.approx(0.409524, abs=5e-7)
    assert result.open.things.pq == pytest.approx(0.523810, abs=5e-7)
    assert result.open.stuff.pq == pytest.approx(0.15)
    assert result.vanilla.all.pq == pytest.approx(0.1125)


@given(SEEDS, st.sampled_from(["last", "all"]))
def test_equals_the_text_of_the_specification(seed, crowds):
    images, similarity, things, _ = draw(seed)
    expected = literal_sums(images, similarity, things, crowds)
    assert quality_sums(matched(images, crowds), similarity, things) == pytest.approx(expected)


@settings(max_examples=60)
@given(SEEDS, st.sampled_from([("strict", "last"), ("corrected", "all")]))
def test_identity_equals_panopticapi(seed, parity):
    panoptic = pytest.importorskip("vernier.panoptic")
    mode, crowds = parity
    images, _, things, _ = draw(seed)
    # panopticapi takes the last crowd of the table, its stand-in the one with the highest id.
    images = [(truth, in_order(table), *prediction) for truth, table, *prediction in images]
    ours = open_pq(matched(images, crowds), np.eye(CLASSES), things).open
    # Of a group without any class the stand-in makes an error.
    assume(ours.things.classes and ours.stuff.classes)
    categories = [{"id": k + 1, "name": LABELS[k], "isthing": int(things[k])} for k in range(CLASSES)]
    theirs = panoptic.Evaluator(parity_mode=mode).evaluate(
        panoptic.Dataset.from_arrays(
            {k: image[0].astype(np.uint32) for k, image in enumerate(images)},
            json.dumps({k: segments_info(image[0], image[1]) for k, image in enumerate(images)}).encode(),
            json.dumps(categories).encode(),
        ),
        panoptic.Predictions.from_arrays(
            {k: image[2].astype(np.uint32) for k, image in enumerate(images)},
            json.dumps({k: segments_info(image[2], image[3]) for k, image in enumerate(images)}).encode(),
        ),
    )
    groups = [theirs.to_dict()[name] for name in ("All", "Things", "Stuff")]
    assert means(ours) == pytest.approx(np.array([[g["pq"], g["sq"], g["rq"], g["n"]] for g in groups]), abs=1e-12)
    occurring = {k + 1: pq for k, pq in enumerate(ours.pq) if not np.isnan(pq)}
    assert occurring == pytest.approx({k: theirs.per_class()[k].pq for k in occurring}, abs=1e-12)


def in_order(segments):
    order = np.argsort(segments.ids)
    return Segments(segments.ids[order], segments.classes[order], segments.crowd[order])


def segments_info(segment_map, segments):
    crowd = np.zeros(len(segments.ids), int) if segments.crowd is None else segments.crowd
    return [
        {
            "id": int(one),
            "category_id": int(label) + 1,
            "iscrowd": int(mark),
            "area": int((segment_map == one).sum()),
            "bbox": [0, 0, 1, 1],
        }
        for one, label, mark in zip(segments.ids, segments.classes, crowd, strict=True)
    ]


@given(SEEDS)
def test_no_open_quality_is_below_the_vanilla_one(seed):
    images, similarity, things, rng = draw(seed)
    result = open_pq(matched(images), similarity, things, known=rng.random(CLASSES) < 0.5)
    for name in ("all", "things", "stuff", "known", "unknown"):
        one, other = getattr(result.open, name), getattr(result.vanilla, name)
        for gained in (one.pq - other.pq, one.rq - other.rq):
            assert np.isnan(gained) or gained >= -1e-12


@given(SEEDS)
def test_raising_a_similarity_lowers_no_true_positives(seed):
    images, similarity, things, rng = draw(seed)
    raised = similarity.copy()
    i, j = rng.choice(CLASSES, 2, replace=False)
    raised[i, j] += (1 - raised[i, j]) * rng.random()
    matches = matched(images)
    assert (quality_sums(matches, raised, things)[1] >= quality_sums(matches, similarity, things)[1]).all()


@given(SEEDS)
def test_similarity_of_classes_that_never_meet_changes_nothing(seed):
    images, similarity, things, rng = draw(seed)
    matches = matched(images)
    apart = ~np.eye(CLASSES, dtype=bool)
    pairs = (matches.true >= 0) & (matches.called >= 0)
    apart[matches.true[pairs], matches.called[pairs]] = False
    # Things and stuff never meet, whatever they overlap.
    apart |= things[:, None] != things
    changed = np.where(apart, rng.random(apart.shape), similarity)
    assert (quality_sums(matches, changed, things) == quality_sums(matches, similarity, things)).all()


@given(SEEDS)
def test_permuting_the_classes_with_their_similarity_changes_nothing(seed):
    images, similarity, things, rng = draw(seed)
    order = rng.permutation(CLASSES)
    place = np.argsort(order)
    renamed = [
        (truth, Segments(t.ids, place[t.classes], t.crowd), prediction, Segments(p.ids, place[p.classes]))
        for truth, t, prediction, p in images
    ]
    one = open_pq(matched(images), similarity, things).open
    other = open_pq(matched(renamed), similarity[np.ix_(order, order)], things[order]).open
    assert means(one) == pytest.approx(means(other), nan_ok=True)
    assert one.pq[order] == pytest.approx(other.pq, nan_ok=True)


@given(SEEDS, st.integers(1, 4))
def test_merging_parts_in_any_order_equals_one_pass_exactly(seed, parts):
    images, similarity, things, rng = draw(seed, images=6)
    whole = OpenPQ(LABELS, similarity, things)
    for image in images:
        whole.update(*image)
    pieces = []
    for piece in np.array_split(rng.permutation(len(images)), parts):
        pieces.append(OpenPQ(LABELS, similarity, things))
        for k in piece:
            pieces[-1].update(*images[k])
    for other in pieces[1:]:
        pieces[0].merge(other)
    assert pieces[0].matches.images == len(images)
    assert np.array_equal(means(pieces[0].compute().open), means(whole.compute().open), equal_nan=True)


@given(SEEDS)
def test_images_add_up_to_the_whole(seed):
    images, similarity, things, _ = draw(seed)
    matches = matched(images)
    by_image = quality_sums_by_image(matches, similarity, things)
    assert by_image.sum(0) == pytest.approx(quality_sums(matches, similarity, things))
    assert by_image[1] == pytest.approx(quality_sums(match_segments(*images[1]), similarity, things))


def test_known_and_unknown_classes_have_means_of_their_own_be_they_things_or_stuff():
    metric = OpenPQ(["1", "2", "3", "4"], np.eye(4), [True, False, True, False], known=[True, True, False, False])
    metric.update(*worked_check())
    scores = metric.compute().vanilla
    assert scores.known.pq == pytest.approx((scores.pq[0] + scores.pq[1]) / 2)
    assert scores.unknown.pq == pytest.approx((scores.pq[2] + scores.pq[3]) / 2)
    assert scores.known.classes == scores.unknown.classes == 2


def test_a_class_claimed_only_where_the_truth_is_its_equal_leaves_the_mean():
    image = np.ones((2, 2), int)
    matches = match_segments(image, Segments([1], [0]), image, Segments([1], [1]))
    result = open_pq(matches, np.ones((2, 2)), [True, True])
    assert (result.open.all.pq, result.open.all.classes) == (1, 1)
    assert (result.vanilla.all.pq, result.vanilla.all.classes) == (0, 2)


def test_reset_forgets_and_nothing_at_all_is_undefined():
    metric = OpenPQ(["1", "2", "3", "4"], np.eye(4), [True] * 4)
    metric.update(*worked_check())
    metric.reset()
    assert np.isnan(metric.compute().open.all.pq)
    assert metric.matches.images == 0


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"things: expected shape \(2,\), got \(1,\)"):
        OpenPQ(["a", "b"], np.eye(2), [True])
    with pytest.raises(ValueError, match="expected the same 1 labels"):
        OpenPQ(["a"], [[1]], [True]).merge(OpenPQ(["b"], [[1]], [True]))
    with pytest.raises(ValueError, match="matches: expected classes from 0 to 1, got 3"):
        open_pq(match_segments(*worked_check()), np.eye(2), [True, True])
    with pytest.raises(ValueError, match=r"known: expected shape \(1,\), got \(2,\)"):
        panoptic_scores(np.zeros((4, 1)), np.array([True]), known=[True, False])


IMAGE = np.array([[1, 2, 3]])

MATCHES = match_segments(IMAGE, Segments([1, 2, 3], [0, 1, 2]), IMAGE, Segments([1, 2, 3], [1, 2, 2]))

SIMILARITY = np.array([[1, 0.4, 0.4], [0.4, 1, 0.9], [0.4, 0.9, 1]])


def test_bad_arguments_get_a_sentence():
    uneven = [[1, 0.5], [0.25, 1]]
    with pytest.raises(ValueError, match="expected a symmetric matrix; give asymmetric=True"):
        OpenPQ(["a", "b"], uneven, [True, True])
    metric = OpenPQ(["a", "b"], uneven, [True, True], asymmetric=True)
    image = np.array([[1, 1]])
    metric.update(image, Segments([1], [1]), image, Segments([1], [0]))
    assert metric.compute().open.pq[1] == pytest.approx(0.25 / (0.25 + 0.75 / 2))
    with pytest.raises(ValueError, match="expected a symmetric matrix"):
        open_pq(metric.matches, uneven, [True, True])
    with pytest.raises(ValueError, match="labels: expected names that differ"):
        OpenPQ(["a", "a"], np.eye(2), [True, True])
    for name, value, got in (("things", [0, 2], "2"), ("known", [0, 2], "2"), ("known", ["a", "b"], "a")):
        given = {"things": [True, True], name: value}
        with pytest.raises(ValueError, match=f"{name}: expected true or false for each class, got {got}"):
            OpenPQ(["a", "b"], np.eye(2), **given)
    for work in (
        lambda: OpenPQ(["a"], [[1]], [True], crowds="first"),
        lambda: match_segments(image, Segments([1], [0]), image, Segments([1], [0]), crowds="first"),
    ):
        with pytest.raises(ValueError, match="crowds: expected last or all, got 'first'"):
            work()
    with pytest.raises(ValueError, match="true segments, classes: expected integers, got float64"):
        metric.update(image, Segments([1], [0.5]), image, Segments([1], [0]))


def test_between_things_and_stuff_nothing_is_forgiven():
    costs = segment_costs(MATCHES, SIMILARITY, [True, True, False])
    assert list(zip(costs.true, costs.called, costs.hard, strict=True)) == [(1, 2, 1), (0, 1, 1)]
    assert costs.soft == pytest.approx([1, 0.6])


def test_costs_are_the_misses_of_segments_that_were_matched():
    rng = np.random.default_rng(0)
    matches = join_matches([match_segments(*random_image(rng, 4)) for _ in range(40)])
    similarity, things = np.maximum(rng.random((4, 4)), np.eye(4)), np.array([True, True, False, False])
    missed = np.count_nonzero((matches.true >= 0) & (matches.called < 0))
    false_negatives = quality_sums(matches, similarity, things)[3].sum()
    assert segment_costs(matches, similarity, things).soft.sum() == pytest.approx(false_negatives - missed)
    assert len(segment_costs(matches, similarity, things, by="hard", most=2)) == 2


def test_metrics_of_other_things_or_another_rule_for_crowds_are_not_merged():
    one = OpenPQ(["a", "b"], np.eye(2), [True, False])
    for other in (
        OpenPQ(["a", "b"], np.eye(2), [True, True]),
        OpenPQ(["a", "b"], np.eye(2), [True, False], crowds="all"),
    ):
        with pytest.raises(ValueError, match="other: expected the same things and the same rule for crowds"):
            one.merge(other)


def test_matches_that_were_made_elsewhere_are_added():
    direct, given_matches = (OpenPQ(["1", "2", "3", "4"], np.eye(4), [True] * 4) for _ in range(2))
    direct.update(*worked_check())
    given_matches.add_matches(match_segments(*worked_check()))
    assert given_matches.compute().open.all.pq == direct.compute().open.all.pq


def test_qualities_of_stacked_sums_are_those_of_each():
    sums = np.random.default_rng(0).random((2, 3, 4, 5))
    sums[0, 1, :, 2] = 0.0  # a class that does not occur
    within = np.array([True, False, True, True, False])
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(class_quality(sums)[place], class_quality(sums[place]))
        np.testing.assert_allclose(mean_quality(sums)[place], mean_quality(sums[place]), rtol=1e-14)
        np.testing.assert_allclose(mean_quality(sums, within)[place], mean_quality(sums[place], within), rtol=1e-14)
