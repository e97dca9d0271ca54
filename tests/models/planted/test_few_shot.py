"""The one-shot segmenter's and the learner's dials, on the gaps that their benchmarks report."""

import cv2
import numpy as np
import pytest
from planted_measures import assert_flat, assert_rises, iou, scenes

from hardlook.models.planted.few_shot import PlantedLearner, PlantedOneShot
from hardlook.models.roles import Episode, Support


def pairs(salient):
    """A query and a support of its class, for targets that are salient or beside a rival that is."""
    queries = scenes(count=48, salient=salient)
    shown = {scene.scene.subject.concept: scene for scene in scenes(count=12, salient=True)}
    rivalled = [q for q in queries if salient or q.salient.any()]
    return [(query, shown[query.scene.subject.concept]) for query in rivalled]


def loss(found, salient=True, **dials):
    chosen = pairs(salient)
    supports = [[Support(s.image, s.class_mask(s.scene.subject.concept))] for _, s in chosen]
    masks = PlantedOneShot(**dials).segment_queries([query.image for query, _ in chosen], supports)
    return float(
        np.mean([found(m, q.class_mask(q.scene.subject.concept)) for m, (q, _) in zip(masks, chosen, strict=True)])
    )


def off(mask, true):
    return 1 - iou(mask, true)


def test_salience_costs_targets_that_are_not_salient():
    assert loss(off) == loss(off, salient=False) == 0
    assert_rises(lambda dial: loss(off, salient=False, saliency=dial))
    assert_rises(lambda dial: loss(off, salient=False, saliency=dial) - loss(off, salient=True, saliency=dial))


@pytest.mark.parametrize("dials", [{"saliency": 0.5}, {"support_blind": 0.5, "ragged": 0.5}])
def test_pairs_asked_together_are_answered_as_alone(dials):
    shown = scenes(count=6, salient=True)
    supports = [Support(s.image, s.class_mask(s.scene.subject.concept)) for s in shown]
    asked = [(query.image, [support]) for query in shown for support in supports]
    together = PlantedOneShot(**dials).segment_queries(*zip(*asked, strict=True))
    for mask, (query, given) in zip(together, asked, strict=True):
        copies = [Support(support.image.copy(), support.mask.copy()) for support in given]
        [alone] = PlantedOneShot(**dials).segment_queries([query.copy()], [copies])
        assert np.array_equal(mask, alone)


def test_ragged_borders_hide_nothing_and_open_no_gap():
    def missing(mask, true):
        return np.count_nonzero(true & ~mask)

    assert_flat(lambda dial: loss(missing, salient=False, ragged=dial))
    assert_rises(lambda dial: loss(off, ragged=dial))


def test_blindness_costs_no_target_that_is_shown():
    for salient in (True, False):
        assert_flat(lambda dial, salient=salient: loss(off, salient=salient, support_blind=dial))


QUERIES = scenes(count=24, salient=True)


def unmasked(query):
    return Support(query.image, np.zeros_like(query.salient))


def black(query):
    return Support(np.zeros_like(query.image), np.zeros_like(query.salient))


def absent(query):
    present = {thing.concept for thing in query.scene.objects}
    shown = next(scene for scene in QUERIES if scene.scene.subject.concept not in present)
    return Support(shown.image, shown.target_mask)


def answers(support, **dials):
    return PlantedOneShot(**dials).segment_queries([q.image for q in QUERIES], [[support(q)] for q in QUERIES])


@pytest.mark.parametrize("support", [unmasked, black, absent])
def test_blindness_shows_when_the_support_says_nothing(support):
    def spoken(**dials):
        return float(np.mean([mask.any() for mask in answers(support, **dials)]))

    assert spoken() == 0
    assert_rises(lambda dial: spoken(support_blind=dial))
    assert_flat(lambda dial: spoken(saliency=dial))
    # What is taken is the query's subject, so that the levels which count its class lose by it.
    taken = answers(support, support_blind=1.0)
    own = [iou(mask, q.class_mask(q.scene.subject.concept)) for mask, q in zip(taken, QUERIES, strict=True)]
    assert np.mean(own) > 0.8


def turned(scene, degrees):
    """Picture and mask of the subject's class, rotated about the middle by nearest neighbour, black around."""
    height, width = scene.salient.shape
    turn = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    mask = scene.class_mask(scene.scene.subject.concept).astype(np.uint8)
    return [cv2.warpAffine(array, turn, (width, height), flags=cv2.INTER_NEAREST) for array in (scene.image, mask)]


@pytest.mark.parametrize("degrees", [17, 90, 200])
def test_a_rotated_picture_still_reads(degrees):
    for scene in QUERIES[:8]:
        picture, mask = turned(scene, degrees)
        assert (picture == 0).all(axis=2).any()
        straight = Support(scene.image, scene.class_mask(scene.scene.subject.concept))
        [found] = PlantedOneShot().segment_queries([picture], [[straight]])
        assert np.array_equal(found, mask.astype(bool))
        [back] = PlantedOneShot().segment_queries([scene.image], [[Support(picture, mask.astype(bool))]])
        assert np.array_equal(back, straight.mask)
        [blind] = PlantedOneShot(support_blind=1.0).segment_queries([picture], [[black(scene)]])
        assert blind.any() and not (blind & (picture == 0).all(axis=2)).any()


def test_several_supports_vote():
    first, second = scenes(count=12, salient=True)[:2]
    shown = [Support(s.image, s.target_mask) for s in (first, second, second)]
    [mask] = PlantedOneShot().segment_queries([second.image], [shown])
    assert np.array_equal(mask, second.class_mask(second.scene.subject.concept))


def episodes(mode, ways=4):
    """Tasks of one shot: queries in their support's context (iid), or in that of the next way (swapped)."""
    table = {
        (s.scene.subject.concept, s.scene.context): s.image for s in scenes(count=96, size=(64, 64), distractors=0)
    }
    concepts, contexts = sorted({c for c, _ in table}), sorted({c for _, c in table})
    made = []
    for start in range(12):
        chosen = [concepts[(start + way) % len(concepts)] for way in range(ways)]
        places = [contexts[(start + 2 * way) % len(contexts)] for way in range(ways)]
        asked = places if mode == "iid" else [*places[1:], places[0]]
        support = [table[pair] for pair in zip(chosen, places, strict=True)]
        query = [table[pair] for pair in zip(chosen, asked, strict=True)]
        made.append(Episode(support, np.arange(ways), query, ways, key=f"{mode}-{start}"))
    return made


def mistakes(mode, **dials):
    asked = episodes(mode)
    answers = PlantedLearner(**dials).classify(asked)
    return float(
        np.mean([(scores.argmax(axis=1) != np.arange(e.ways)).mean() for e, scores in zip(asked, answers, strict=True)])
    )


def test_context_opens_the_gap_and_noise_does_not():
    assert mistakes("iid") == mistakes("swapped") == 0
    assert_rises(lambda dial: mistakes("swapped", context=dial))
    assert mistakes("swapped", context=1.0) == 1
    assert_flat(lambda dial: mistakes("iid", context=dial))
    assert_rises(lambda dial: mistakes("iid", noise=dial))
    assert_flat(lambda dial: mistakes("swapped", noise=dial) - mistakes("iid", noise=dial), tolerance=0.25)


def test_a_dial_of_four_tenths_strikes_four_tenths():
    assert 0.2 < mistakes("swapped", context=0.4) < 0.6
