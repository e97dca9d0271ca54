"""CDNet, GPCIS and FocalClick with random parameters on photographs, as promptable segmenters."""

from dataclasses import replace
from itertools import pairwise

import cv2
import numpy as np
import pytest

from hardlook.models.registry import build, list_models
from hardlook.models.roles import Clicks

ROLE = "promptable-segmenter"
NAMES = [("cdnet", "resnet34"), ("gpcis", "resnet50"), ("focalclick", "hrnet18s"), ("focalclick", "segformerb0-s1")]


@pytest.fixture(scope="module")
def objects(shared_data):
    """Two small photographs of GrabCut, each with a pixel inside and one outside of its object (x, y)."""
    folder = shared_data / "data" / "GrabCut"
    if not folder.is_dir():
        pytest.skip(f"no GrabCut at {folder}")
    found = []
    for name in ("flower", "llama"):
        image = cv2.imread(str(folder / "data_GT" / f"{name}.jpg"))[..., ::-1]
        truth = cv2.imread(str(folder / "boundary_GT" / f"{name}.bmp"), cv2.IMREAD_GRAYSCALE)
        image = cv2.resize(image, (120, 90), interpolation=cv2.INTER_AREA)
        truth = cv2.resize(truth, (120, 90), interpolation=cv2.INTER_NEAREST)
        inside, outside = (np.argwhere(mask)[len(np.argwhere(mask)) // 2][::-1] for mask in (truth > 128, truth == 0))
        found.append((image, np.array([inside, outside, inside + 3], np.float32)))
    return found


@pytest.mark.parametrize(("name", "size"), NAMES)
def test_runs_on_photographs(objects, name, size):
    model = build(name, ROLE, {"weights": "random:1", "size": size})
    assert f"{name} with random parameters of seed 1" in model.conduct
    # For time: the published sizes take a second a click.
    model._settings = replace(model._settings, input_size=(96, 96))
    signs, first = np.array([True, False, True]), []
    for image, points in objects:
        session, state, maps = model.open(image), None, []
        for count in (1, 2, 3):
            (answer,) = session.predict([Clicks(points[:count], signs[:count], state)])
            state = answer.state
            maps.append(state.course.probabilities.numpy())
            assert np.array_equal(answer.mask, maps[-1] > model.settings.threshold)
        assert all(map_.shape == (90, 120) and 0 <= map_.min() < map_.max() <= 1 for map_ in maps)
        assert all(np.abs(after - before).max() > 0.01 for before, after in pairwise(maps)), "clicks matter"
        first.append(maps[0])
    assert np.abs(first[0] - first[1]).max() > 0.01, "and so do pictures"


def test_the_list_of_models_says_what_was_not_checked():
    listed = {card.name: card.summary for card in list_models(role=ROLE)}
    for name in ("cdnet", "gpcis", "focalclick"):
        assert "predictor not checked against released code" in listed[name]


def test_settings_are_those_of_the_family():
    model = build("focalclick", ROLE, {"weights": "random:1", "size": "segformerb0", "reading": "ours"})
    assert "network at 256 x 256" in model.conduct
    assert "the region that the last click changed refined" in model.conduct
    assert "reading ours" in model.conduct
