"""The click model: its role's contract, batches against single maps, and its errors."""

import numpy as np
import pytest

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance.suite import check_named
from hardlook.models.identity import identify
from hardlook.models.registry import build
from hardlook.networks.clickability import build_network, save_checkpoint
from hardlook.rclicks.click_models.clickability import KEPT_IMAGES, Clickability

pytest.importorskip("torch")


@pytest.fixture
def checkpoint(tiny, tmp_path):
    path = tmp_path / "tiny.safetensors"
    save_checkpoint(build_network(tiny, seed=1), path, tiny, size=64)
    return path


def scene(seed=0, shape=(48, 80)):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
    target = np.zeros(shape, bool)
    target[10:40, 20:60] = True
    errors = [target, target & (rng.random(shape) < 0.5), ~target]
    return image, target, errors


def test_it_keeps_the_contract_of_click_models(checkpoint):
    findings = check_named("clickability", "click-model", {"path": str(checkpoint)})
    assert findings
    assert [finding.line() for finding in findings if not finding.passed] == []


def test_several_errors_at_once_are_as_one_by_one(checkpoint):
    image, target, errors = scene()
    model = Clickability(checkpoint, batch=2)
    together = model.click_maps(image, target, errors, [True, True, False])
    assert len(together) == 3
    for chances, error in zip(together, errors, strict=True):
        alone = model.click_map(image, target, error, True)
        np.testing.assert_allclose(chances, alone, atol=1e-4)
        assert (chances.dtype, chances.shape) == (np.float64, target.shape)
        assert (chances.min(), chances.max()) == (0, 1)
    assert np.abs(together[0] - together[2]).max() > 1e-3


def test_an_image_that_was_written_to_is_prepared_again(checkpoint):
    image, target, _ = scene()
    model = Clickability(checkpoint)
    first = model.click_map(image, target, target, True)
    assert np.array_equal(model.click_map(image.copy(), target, target, True), first)
    image[:] = 255 - image
    changed = model.click_map(image, target, target, True)
    assert np.array_equal(changed, Clickability(checkpoint).click_map(image, target, target, True))
    assert not np.array_equal(changed, first)


def test_only_a_few_images_are_kept(checkpoint):
    model = Clickability(checkpoint)
    for seed in range(KEPT_IMAGES + 2):
        image, target, _ = scene(seed)
        model.click_map(image, target, target, True)
    assert len(model._prepared) == KEPT_IMAGES


def test_its_identity_is_that_of_its_weights(checkpoint, tiny):
    args = {"path": str(checkpoint)}

    def fingerprint():
        model = build("clickability", "click-model", args)
        return identify(model, name="clickability", role="click-model", args=args).fingerprint()

    first = fingerprint()
    assert fingerprint() == first
    save_checkpoint(build_network(tiny, seed=2), checkpoint, tiny, size=64)
    assert fingerprint() != first


def test_errors_name_the_remedy(checkpoint, tmp_path):
    with pytest.raises(ModelError, match="hardlook clicks train"):
        build("clickability", "click-model")
    with pytest.raises(ModelError, match="hardlook clicks train"):
        Clickability(tmp_path / "absent")
    with pytest.raises(OptionError, match="at least 32"):
        Clickability(checkpoint, size=8)
