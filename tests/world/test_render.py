from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import defaultdict

import cv2
import numpy as np
import pytest

from hardlook.world import signature
from hardlook.world.objects import render_silhouette
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene, render_scene
from hardlook.world.scene import MIN_VISIBLE_PIXELS, MIN_VISIBLE_SHARE, describe_scene
from hardlook.world.vocabulary import BY_NAME, CONTEXTS, VOID

_HASH = """
import hashlib
from hardlook.world.planted import PlantedWorld
world = PlantedWorld(seed=4, count=16)
print(hashlib.sha256(b"".join(world[i].image.tobytes() + world[i].classes.tobytes() for i in {order})).hexdigest())
"""


def test_same_bytes_in_another_process_and_order() -> None:
    world = PlantedWorld(seed=4, count=16)
    backwards = {i: world[i] for i in reversed(range(16))}
    here = hashlib.sha256(b"".join(backwards[i].image.tobytes() + backwards[i].classes.tobytes() for i in range(16)))
    command = [sys.executable, "-c", _HASH.format(order="range(16)")]
    there = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert here.hexdigest() == there


def test_the_signature_is_the_truth(scenes: tuple[RenderedScene, ...]) -> None:
    for rendered in scenes:
        truth = signature.read_signature(rendered.image)
        assert np.array_equal(truth.classes, rendered.classes)
        assert np.array_equal(truth.instances, rendered.instances)
        assert np.array_equal(truth.salient, rendered.salient)


def test_every_annotated_object_is_visible(scenes: tuple[RenderedScene, ...]) -> None:
    for rendered in scenes:
        for thing in rendered.scene.objects:
            visible = int(rendered.mask_of(thing).sum())
            assert visible >= MIN_VISIBLE_PIXELS
            assert visible >= MIN_VISIBLE_SHARE * render_silhouette(thing, rendered.scene.size).sum()


def test_some_objects_are_partly_hidden(scenes: tuple[RenderedScene, ...]) -> None:
    hidden = [
        r.mask_of(thing).sum() < render_silhouette(thing, r.scene.size).sum()
        for r in scenes
        for thing in r.scene.objects
    ]
    assert 0.02 < np.mean(hidden) < 0.6


def test_truth_names_exactly_the_objects_the_sky_and_one_ground(scenes: tuple[RenderedScene, ...]) -> None:
    grounds = {context.name: context.ground for context in CONTEXTS}
    for rendered in scenes:
        expected = {"sky", grounds[rendered.scene.context], *(thing.concept for thing in rendered.scene.objects)}
        expected |= {"sea"} if rendered.scene.context == "beach" else set()
        assert set(np.unique(rendered.classes).tolist()) - {VOID} == {BY_NAME[name].code for name in expected}
        assert (rendered.classes == VOID).mean() < 0.17
        assert rendered.class_mask(grounds[rendered.scene.context]).mean() > 0.1


def test_salience_map_is_the_salient_objects(scenes: tuple[RenderedScene, ...]) -> None:
    for rendered in scenes:
        union = np.zeros(rendered.classes.shape, bool)
        for thing in rendered.scene.objects:
            union |= rendered.mask_of(thing) & thing.salient
        assert np.array_equal(union, rendered.salient)


@pytest.mark.parametrize("size", [(96, 96), (96, 72), (120, 160), (512, 384)])
def test_other_sizes(size: tuple[int, int]) -> None:
    rendered = render_scene(describe_scene(0, 5, salient=False, size=size))
    assert rendered.image.shape == (size[1], size[0], 3)
    assert rendered.image.dtype == np.uint8
    assert rendered.target_mask.sum() >= MIN_VISIBLE_PIXELS


def test_pictures_are_pictures_not_noise(scenes: tuple[RenderedScene, ...]) -> None:
    for rendered in scenes:
        grey = rendered.image.astype(int).sum(axis=2)
        assert np.median(np.abs(np.diff(grey, axis=1))) < 12
        assert grey.std() > 20


def test_contexts_are_told_apart_by_colour_and_concepts_vary_within(scenes: tuple[RenderedScene, ...]) -> None:
    means = defaultdict(list)
    looks = defaultdict(set)
    for rendered in scenes:
        means[rendered.scene.context].append(rendered.image.reshape(-1, 3).mean(axis=0))
        looks[rendered.scene.subject.concept].add(rendered.scene.subject.look)
    centres = {name: np.mean(values, axis=0) for name, values in means.items()}
    names = sorted(centres)
    assert min(np.linalg.norm(centres[a] - centres[b]) for a in names for b in names if a < b) > 8
    assert all(len(found) == 8 for found in looks.values())


def _area(rendered: RenderedScene) -> float:
    return float(rendered.target_mask.mean())


def _off_centre(rendered: RenderedScene) -> float:
    rows, columns = np.nonzero(rendered.target_mask)
    height, width = rendered.target_mask.shape
    return float(np.hypot(columns.mean() / width - 0.5, rows.mean() / height - 0.5))


def _contrast(rendered: RenderedScene) -> float:
    """Colour distance between the target and the ring of pixels around it."""
    inside = rendered.target_mask
    ring = (cv2.dilate(inside.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0) & ~inside
    return float(np.linalg.norm(rendered.image[inside].mean(axis=0) - rendered.image[ring].mean(axis=0)))


@pytest.fixture(scope="module")
def pairs() -> tuple[list[RenderedScene], list[RenderedScene]]:
    return tuple(list(PlantedWorld(seed=9, count=48, salient=state)) for state in (True, False))  # type: ignore[return-value]


def test_salient_targets_are_larger(pairs: tuple[list[RenderedScene], list[RenderedScene]]) -> None:
    salient, hidden = ([_area(r) for r in side] for side in pairs)
    assert min(salient) > max(hidden)
    assert np.median(salient) > 5 * np.median(hidden)


def test_salient_targets_are_nearer_the_centre(pairs: tuple[list[RenderedScene], list[RenderedScene]]) -> None:
    salient, hidden = ([_off_centre(r) for r in side] for side in pairs)
    assert max(salient) < 0.17
    assert np.mean(hidden) > 2.5 * np.mean(salient)


def test_salient_targets_stand_out(pairs: tuple[list[RenderedScene], list[RenderedScene]]) -> None:
    salient, hidden = ([_contrast(r) for r in side] for side in pairs)
    assert np.median(salient) > 1.8 * np.median(hidden)
    assert np.mean(np.array(salient)[:, None] > np.array(hidden)[None]) > 0.85


def test_an_unnoticed_target_often_has_a_salient_rival(pairs: tuple[list[RenderedScene], list[RenderedScene]]) -> None:
    salient, hidden = pairs
    assert all(not (t.salient and t.concept != r.scene.subject.concept) for r in salient for t in r.scene.objects)
    assert 0.25 < np.mean([r.salient.any() for r in hidden]) < 0.75
    assert not any(r.salient[r.target_mask].any() for r in hidden)
