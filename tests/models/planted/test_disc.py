"""The promptable segmenter's and the click model's dials: what clicking off-centre costs, and where clicks fall."""

import cv2
import numpy as np
import pytest
from planted_measures import DIALS, assert_flat, assert_rises, iou, scenes

from hardlook.models.planted.click_models import PlantedClicks
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Clicks

SCENES = scenes(count=12, salient=True)


def depths(mask):
    return cv2.distanceTransform(np.pad(mask.astype(np.uint8), 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1]


def at_depth(mask, rank):
    """The (x, y) of the mask's pixel at a rank of depth: 0 at the edge, 1 the innermost."""
    rows, columns = np.nonzero(mask)
    order = np.argsort(depths(mask)[mask], kind="stable")
    position = order[round(rank * (len(order) - 1))]
    return columns[position], rows[position]


def ask(session, points, positive=None):
    points = np.array(points, np.float32).reshape(-1, 2)
    wanted = np.ones(len(points), bool) if positive is None else np.array(positive)
    return session.predict([Clicks(points, wanted)])[0].mask


def trajectory(scene, rank, rounds=8, **dials):
    """IoU after each click, every click at the same rank of depth in what is still missing."""
    session, points, overlaps = Disc(**dials).open(scene.image), [], []
    missing = scene.target_mask
    for _ in range(rounds):
        if missing.any():
            points.append(at_depth(missing, rank))
        mask = ask(session, points)
        overlaps.append(iou(mask, scene.target_mask))
        missing = scene.target_mask & ~mask
    return overlaps


def clicks_to_ninety(rank, **dials):
    counts = [next((n for n, v in enumerate(trajectory(s, rank, **dials), 1) if v >= 0.9), 20) for s in SCENES]
    return float(np.mean(counts))


def test_fragility_costs_clicks_at_the_edge_and_none_in_the_middle():
    assert_rises(lambda dial: clicks_to_ninety(0.0, fragility=dial))
    assert_flat(lambda dial: clicks_to_ninety(1.0, fragility=dial))
    assert clicks_to_ninety(1.0, fragility=1.0) == 1


def test_overlap_falls_smoothly_with_eccentricity():
    scene = SCENES[0]
    overlaps = [trajectory(scene, rank, rounds=1, fragility=1.0)[0] for rank in np.linspace(0, 1, 11)]
    assert overlaps == sorted(overlaps)
    assert overlaps[0] < 0.4
    assert overlaps[-1] == 1
    assert max(np.diff(overlaps)) < 0.35


@pytest.mark.parametrize("scene", SCENES[:4])
def test_further_clicks_repair(scene):
    overlaps = trajectory(scene, 0.0, fragility=1.0)
    assert overlaps == sorted(overlaps)
    assert overlaps[-1] > 0.95


def test_a_blunt_rim_costs_all_clicks_alike():
    def spread(dial):
        return float(np.ptp([trajectory(SCENES[0], rank, rounds=1, blunt=dial)[0] for rank in (0.0, 0.5, 1.0)]))

    assert_flat(spread, tolerance=0.01)
    assert [clicks_to_ninety(0.0, blunt=dial) for dial in DIALS] == [1.0] * len(DIALS)


def test_negative_clicks_remove_what_is_under_them():
    scene = SCENES[0]
    session = Disc().open(scene.image)
    target = at_depth(scene.target_mask, 1.0)
    stuff = at_depth(scene.classes > 12, 0.5)
    assert np.array_equal(ask(session, [target]), scene.target_mask)
    assert not ask(session, [target, target], [True, False]).any()
    assert np.array_equal(ask(session, [target, stuff], [True, False]), scene.target_mask)
    both = ask(session, [target, stuff])
    assert both[scene.target_mask].all()
    assert both[stuff[1], stuff[0]]


def test_no_clicks_and_clicks_outside_are_answered():
    session = Disc(fragility=1.0).open(SCENES[0].image)
    assert not ask(session, []).any()
    assert ask(session, [(-5, 9999)]).shape == SCENES[0].target_mask.shape


def test_clicks_move_to_the_edge():
    mask = SCENES[0].target_mask
    image = SCENES[0].image

    def shallowness(dial, loud=0.0):
        chance = PlantedClicks(edge=dial, loud=loud).click_map(image, mask, mask, True)
        assert (chance[mask] > 0).all()
        assert not chance[~mask].any()
        relative = depths(mask) / depths(mask).max()
        return 1 - float((chance * relative).sum() / chance.sum())

    assert_rises(shallowness)
    assert_flat(lambda dial: shallowness(0.3, loud=dial))
    assert not PlantedClicks().click_map(image, mask, np.zeros_like(mask), True).any()


def test_pictures_of_another_world_get_discs_around_positive_clicks():
    """A floor for real images: every pixel goes with its nearest click, up to a fifth of the shorter side."""
    image = np.random.default_rng(0).integers(0, 256, (50, 80, 3)).astype(np.uint8)
    prompt = Clicks(np.array([[20, 25], [60, 25], [60, 30]], np.float32), np.array([True, True, False]))
    session = Disc(fragility=1.0).open(image)
    [answer] = session.predict([prompt])
    [before] = session.predict([Clicks(prompt.points[:2], prompt.positive[:2])])
    [after] = session.predict([Clicks(prompt.points, prompt.positive, before.state)])
    assert (answer.mask == after.mask).all()
    expected = np.zeros((50, 80), bool)
    for row in range(50):
        for column in range(80):
            away = [(column - x) ** 2 + (row - y) ** 2 for x, y in prompt.points]
            expected[row, column] = bool(prompt.positive[int(np.argmin(away))]) and min(away) <= 100
    assert (answer.mask == expected).all()
