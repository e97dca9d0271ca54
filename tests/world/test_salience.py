from __future__ import annotations

import cv2
import numpy as np
import pytest

from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene


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
