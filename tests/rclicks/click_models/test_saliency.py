"""Clicks where a saliency model looks: which cut-out it is shown, and what is kept of its answer."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.models.conformance import check_named
from hardlook.models.planted.saliency import PlantedSaliency
from hardlook.rclicks.click_models.saliency import SaliencyClicks
from hardlook.world.planted import PlantedWorld


class Brightness:
    """Bright is salient; keeps what it was shown."""

    def __init__(self):
        self.shown = []

    def saliency(self, images):
        self.shown += [image.copy() for image in images]
        return [(image.mean(axis=2) / 255).astype(np.float32) for image in images]


class Blind:
    def saliency(self, images):
        return [np.zeros(image.shape[:2], np.float32) for image in images]


def clicks_by(kind, **options):
    return SaliencyClicks(model=f"{__name__}:{kind.__name__}", **options)


def shown_to(model):
    return model._inner.model.shown


def instance():
    image = np.random.default_rng(0).integers(1, 256, (60, 80, 3)).astype(np.uint8)
    image[image == 128] = 127
    target = np.zeros((60, 80), bool)
    target[20:30, 30:50] = True
    target[20, 30] = False
    return image, target


def test_the_object_is_cut_out_with_grey_around():
    image, target = instance()
    model = clicks_by(Brightness)
    chance = model.click_map(image, target, target, True)
    [shown] = shown_to(model)
    # The box is 10 x 20; two rows and four columns more on each side make it 14 x 28.
    window = np.s_[18:32, 26:54]
    assert shown.shape == (14, 28, 3)
    assert (shown[~target[window]] == 128).all() and np.array_equal(shown[target[window]], image[target])
    expected = np.where(target, image.mean(axis=2) / 255, 0)
    np.testing.assert_allclose(chance, expected, atol=1e-6)


def test_without_grey_the_surroundings_are_shown():
    image, target = instance()
    model = clicks_by(Brightness, grey=False, grow=2.0)
    model.click_map(image, target, target, True)
    assert np.array_equal(shown_to(model)[0], image[15:35, 20:60])


def test_rounds_and_groups_share_one_look():
    image, target = instance()
    model = clicks_by(Brightness)
    whole = model.click_map(image, target, target, True)
    parts = [np.where(np.arange(80) < column, target, False) for column in (35, 40, 45)]
    maps = [model.click_map(image.copy(), target.copy(), part, True) for part in parts]
    assert len(shown_to(model)) == 1
    assert all(np.array_equal(one, np.where(part, whole, 0)) for one, part in zip(maps, parts, strict=True))
    together = model.click_maps(image, target, parts, [True] * 3)
    assert all(np.array_equal(one, other) for one, other in zip(maps, together, strict=True))
    model.click_map(255 - image, target, target, True)
    assert len(shown_to(model)) == 2


def test_a_surplus_part_is_looked_at_itself():
    image, target = instance()
    surplus = np.zeros_like(target)
    surplus[50:55, 0:10] = True
    model = clicks_by(Brightness)
    chance = model.click_map(image, target, surplus, False)
    assert shown_to(model)[0].shape == (7, 12, 3)  # the frame ends on the left
    np.testing.assert_allclose(chance, np.where(surplus, image.mean(axis=2) / 255, 0), atol=1e-6)


def test_a_missing_part_may_be_looked_at_itself_too():
    image, target = instance()
    part = np.zeros_like(target)
    part[25:30, 40:50] = True
    model = clicks_by(Brightness, look="error")
    model.click_map(image, target, part, True)
    assert shown_to(model)[0].shape == (7, 14, 3)


def test_where_nothing_is_salient_all_of_the_error_is_alike():
    image, target = instance()
    assert np.array_equal(clicks_by(Blind).click_map(image, target, target, True), target.astype(float))


def test_it_is_the_planted_models_map_inside_the_object():
    scene = PlantedWorld(seed=2, count=1, size=(80, 64), salient=True)[0]
    model = SaliencyClicks(model="planted-saliency", model_args="centre=0.5", grey=False, grow=100)
    [whole] = PlantedSaliency(centre=0.5).saliency([scene.image])
    chance = model.click_map(scene.image, scene.target_mask, scene.target_mask, True)
    np.testing.assert_array_equal(chance, np.where(scene.target_mask, whole, 0))
    assert "planted-saliency" in model.conduct and model.conduct.startswith("SI")


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["object", "error"]))
def test_all_chance_lies_in_the_error(seed, positive, look):
    rng = np.random.default_rng(seed)
    image, target = rng.integers(0, 256, (9, 11, 3)).astype(np.uint8), rng.random((9, 11)) < 0.5
    error = rng.random((9, 11)) < 0.3
    chance = clicks_by(Brightness, look=look).click_map(image, target, error, positive)
    assert chance.dtype == np.float64 and chance.shape == (9, 11)
    assert not chance[~error].any() and (chance >= 0).all()
    assert chance.any() == error.any()


def test_it_keeps_its_contract():
    findings = check_named("saliency-clicks", "click-model", {"model": "planted-saliency"})
    assert [finding.line() for finding in findings if not finding.passed] == []


def test_options_that_cannot_be():
    with pytest.raises(OptionError, match="cut into the mask"):
        clicks_by(Blind, grow=0.5)
    with pytest.raises(OptionError, match="no look"):
        clicks_by(Blind, look="away")


@pytest.mark.real
def test_a_real_model_on_a_real_object(shared_data):
    from hardlook.errors import HardlookError
    from hardlook.models.u2netp import U2NetP

    try:
        network = U2NetP()
    except HardlookError as error:
        pytest.skip(str(error))
    folder = shared_data / "data" / "GrabCut"
    image = cv2.cvtColor(cv2.imread(str(folder / "data_GT" / "flower.jpg")), cv2.COLOR_BGR2RGB)
    target = cv2.imread(str(folder / "boundary_GT" / "flower.bmp"), cv2.IMREAD_GRAYSCALE) > 128
    model = SaliencyClicks()
    chance = model.click_map(image, target, target, True)
    rows, columns = np.nonzero(target)
    down, across = (np.ptp(rows) + 1) / 5, (np.ptp(columns) + 1) / 5
    window = (
        slice(max(int(np.floor(rows.min() - down)), 0), int(np.ceil(rows.max() + 1 + down))),
        slice(max(int(np.floor(columns.min() - across)), 0), int(np.ceil(columns.max() + 1 + across))),
    )
    cut = np.where(target[window][..., None], image[window], 128).astype(np.uint8)
    expected = np.where(target[window], network.saliency([cut])[0], 0)
    np.testing.assert_allclose(chance[window], expected, atol=1e-6)
    # The object on grey is what catches the eye, so most of it has a good chance.
    assert chance[target].mean() > 0.5 and "u2netp" in model.conduct
