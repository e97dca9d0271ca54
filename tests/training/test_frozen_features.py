"""Cached features of a frozen backbone: the same weights, one pass per image, found again, refused where they vary."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from tiny_one_shot import make_data, make_recipe, train_tiny  # noqa: E402

from hardlook.errors import OptionError  # noqa: E402
from hardlook.models.feature_cache import FeatureFiles  # noqa: E402
from hardlook.networks.one_shot.catalogue import find_network  # noqa: E402
from hardlook.networks.one_shot.network import BACKBONE_PARTS  # noqa: E402
from hardlook.training.checkpoint import read_weights  # noqa: E402
from hardlook.training.frozen_features import FrozenFeatures  # noqa: E402
from hardlook.training.one_shot import OneShotTrainee, build_one_shot  # noqa: E402

SMALL = {
    "simpropnet": {"option.width": 8},
    "pfenet": {"option.width": 8, "option.bins": "3 2"},
    "hsnet": {"size": 97, "optimiser": "sgd", "momentum": 0.9},
    "rpmm": {"option.frozen": "yes", "option.width": 8},
    "repri": {"option.frozen": "yes", "option.width": 8},
}


def make_small(network, **changes):
    return make_recipe(network, augment="none", **{**SMALL[network], **changes})


def make_trainee(network, store=None, **changes):
    recipe = make_small(network, features="cached", **changes)
    built = build_one_shot(recipe, classes=3, seed=0)
    return OneShotTrainee(built, recipe, make_data(), seed=0, validation_pairs=4, store=store)


def run_epoch(trainee):
    trainee.start_stage(trainee.stages[0])
    trainee.module.train()
    call = lambda name, *inputs: getattr(trainee.module, name)(*inputs)  # noqa: E731
    for (batch,) in trainee.draw_batches(0, trainee.plans[0].last, 0, 1):
        trainee.compute_loss(call, batch)
    return trainee.validate(trainee.module)


def test_the_weights_are_those_of_a_training_without_the_cache(tmp_path, monkeypatch, one_thread):
    """Dropout, batch normalisation, validation and the choice of the best step included.

    Bit for bit on one thread, where the backbone sees an image at a time in both: the last bits of a convolution may
    depend on what else is in its batch.
    """
    kind = find_network("simpropnet").load()
    inner = kind.run_backbone
    one_by_one = lambda self, images: join([inner(self, one) for one in images.split(1)])  # noqa: E731
    monkeypatch.setattr(kind, "run_backbone", one_by_one)
    data = make_data(count=10, held=4)
    for features in ("computed", "cached"):
        train_tiny(tmp_path / features, make_small("simpropnet", features=features), data, validation_pairs=2)
    first, second = (read_weights(tmp_path / name) for name in ("computed", "cached"))
    assert all(torch.equal(first[key], second[key]) for key in first)


def join(each):
    return tuple(torch.cat(parts) for parts in zip(*each, strict=True))


@pytest.mark.parametrize("network", list(SMALL))
def test_loss_and_answer_are_those_of_the_images(one_thread, network):
    trainee = make_trainee(network)
    (batch,) = next(trainee.draw_batches(0, 1, 0, 1))
    images, masks = trainee.take_pairs(batch.pairs, batch.transforms)
    module = trainee.module.eval()
    with torch.no_grad():
        query, supports = trainee._take_features(trainee.features, batch.pairs, images)
        found, logits = module.compute_feature_loss(query, masks[:, 0], supports, masks[:, 1:])
        expected, whole = module.loss(images[:, 0], masks[:, 0], images[:, 1:], masks[:, 1:])
        answer = module(images[:, 0], images[:, 1:], masks[:, 1:])
    assert torch.allclose(found, expected, rtol=1e-3)
    assert (logits - answer).abs().max() < 1e-2 * answer.abs().max()
    assert (logits - whole).abs().max() < 1e-2 * whole.abs().max()


def test_the_loss_of_labelled_images_is_that_of_their_features(one_thread):
    cached, computed = (make_trainee("repri"), make_trainee("repri"))
    computed.features = None
    (batch,) = next(cached.draw_batches(0, 1, 0, 1))
    losses = []
    for trainee in (cached, computed):
        torch.manual_seed(0)
        trainee.module.train()
        call = lambda name, *inputs, module=trainee.module: getattr(module, name)(*inputs)  # noqa: E731
        losses.append(trainee.compute_loss(call, batch))
    assert cached.features.computed > 0
    assert torch.allclose(losses[0].loss, losses[1].loss, rtol=1e-4)
    assert losses[0].sums["pixel_accuracy"] == losses[1].sums["pixel_accuracy"]


@pytest.mark.parametrize("network", ["rpmm", "pmm", "repri"])
def test_a_frozen_backbone_keeps_its_weights_and_statistics(network):
    recipe = make_recipe(network, augment="none", features="cached", **{"option.frozen": "yes"})
    built = build_one_shot(recipe, classes=3, seed=0)
    before = {name: value.clone() for name, value in built.state_dict().items()}
    trainee = OneShotTrainee(built, recipe, make_data(), seed=0, validation_pairs=0)
    optimiser = trainee.start_stage(trainee.stages[0])
    built.train()
    call = lambda name, *inputs: getattr(built, name)(*inputs)  # noqa: E731
    (batch,) = next(trainee.draw_batches(0, 1, 0, 1))
    trainee.compute_loss(call, batch).loss.backward()
    optimiser.step()
    moved = {name for name, value in built.state_dict().items() if not torch.equal(value, before[name])}
    backbone = {name for name in before if name.partition(".")[0] in BACKBONE_PARTS}
    assert moved
    assert not moved & backbone
    # Images in training mode too: batch normalisation of the backbone must not see them.
    built.encode(torch.randn(2, 3, 33, 33, generator=torch.Generator().manual_seed(0)))
    assert all(torch.equal(built.state_dict()[name], before[name]) for name in backbone)


def test_an_image_passes_the_backbone_once():
    trainee = make_trainee("simpropnet", epochs=3)
    run_epoch(trainee)
    assert 0 < trainee.features.computed <= len(trainee.data.images)


def test_another_training_finds_the_features_of_the_same_backbone(tmp_path):
    files = FeatureFiles(tmp_path, "backbones")
    first, second, wider = (make_trainee("simpropnet", files) for _ in range(3))
    expected = run_epoch(first)
    second.module.load_state_dict(first.module.state_dict())
    assert run_epoch(second) == expected
    assert second.features.computed == 0
    with torch.no_grad():
        wider.module.backbone.bn1.running_mean += 1
    run_epoch(wider)
    assert wider.features.computed == first.features.computed  # another backbone, though its weights are the same


def test_rows_are_given_in_the_order_asked_for():
    network = build_one_shot(make_small("simpropnet"), classes=3, seed=0).eval()
    images = torch.randn(3, 3, 33, 33, generator=torch.Generator().manual_seed(0))
    kept = FrozenFeatures(network)
    kept.take(np.array([7, 5]), images[:2])
    found = kept.take(np.array([5, 9, 7]), images[[1, 2, 0]])
    expected = network.run_backbone(images[[1, 2, 0]])
    assert kept.computed == 3
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max() < 1e-4 * other.abs().max()


def test_what_varies_from_step_to_step_is_refused():
    with pytest.raises(OptionError, match="an augmented image has other features"):
        make_recipe("simpropnet", features="cached", augment="resized-crop")
    with pytest.raises(OptionError, match="PANet trains its backbone") as refused:
        FrozenFeatures(find_network("panet").load().build("resnet50-keras"))
    assert "option.frozen" not in str(refused.value)
    with pytest.raises(OptionError, match=r"(?s)RPMM trains its backbone.*option\.frozen=yes"):
        FrozenFeatures(find_network("rpmm").load().build("resnet50-keras"))
    released = find_network("pfenet").load().build("resnet50-keras", released=True)
    with pytest.raises(OptionError, match="PFENet trains its backbone"):
        FrozenFeatures(released)
