import argparse

import numpy as np
import pytest
import torch

import training_speed
from hardlook.training.few_shot import build_method
from hardlook.training.images.colours import jitter_colours
from hardlook.training.recipes import change_recipe, find_recipe
from training_speed import TaskDataset, check_losses, jitter, make_data, maml_loss, protonet_joint_loss, protonet_loss

GIVEN = argparse.Namespace(image_size=32, device="cpu", precision="float32", loader_workers=0, seconds=0.0, warm_up=1)


@pytest.fixture(autouse=True)
def always_on_one_thread(one_thread):
    """Every test of this file."""


def build(name, **changes):
    given = {"ways": 5, "shots": 5, "queries": 15, "tasks": 2, "backbone.channels": 8, **changes}
    recipe = change_recipe(find_recipe(name, "conv64f", ("episodes",)), given)
    return recipe, build_method(recipe, classes=64, size=32, seed=0)


@pytest.mark.parametrize(("name", "loss"), [("protonet", protonet_joint_loss), ("maml", maml_loss)])
def test_both_loops_have_the_same_loss(name, loss):
    ours, theirs = check_losses(build(name)[1], make_data(37), GIVEN, loss)
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_both_augment_alike():
    image = make_data(37).images[0].astype(np.float32)
    found = jitter(image, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    order = rng.permutation(3)
    factors = np.empty(3, np.float32)
    for which in order:
        factors[which] = rng.uniform(0.6, 1.4)
    expected = jitter_colours(
        torch.from_numpy(image.transpose(2, 0, 1))[None], torch.from_numpy(factors)[None], torch.from_numpy(order)[None]
    )
    assert np.abs(found.transpose(2, 0, 1) - expected[0].numpy()).max() <= 1  # a rounding of the factor


@pytest.mark.parametrize(("name", "loss"), [("protonet", protonet_loss), ("maml", maml_loss)])
def test_both_loops_take_steps(name, loss):
    data = make_data(37)
    for kind in ("ours", "peer", "bare"):
        recipe, network = build(name, **({"option.steps": 1} if name == "maml" else {}))
        before = [one.detach().clone() for one in network.emb_func.parameters()]
        more = (loss,) if kind == "peer" else ()
        next(getattr(training_speed, f"run_{kind}")(network, recipe, data, GIVEN, *more))
        assert any(not torch.equal(one, two) for one, two in zip(before, network.emb_func.parameters(), strict=True))


def test_a_task_of_the_data_loader_has_the_images_of_ours():
    data = make_data(37)
    support, query = TaskDataset(data, 32, False)[4]
    rows = data.draw(np.array([4]))
    assert support.shape == (25, 3, 32, 32) and query.shape == (75, 3, 32, 32)
    from hardlook.training.images.augmentation import ImageStore

    store = ImageStore(torch.from_numpy(data.images), 32)
    assert torch.allclose(support, store.crop_centre(torch.from_numpy(rows.support.ravel())), atol=1e-5)
