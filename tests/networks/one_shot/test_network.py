"""What all one-shot networks share: weights of a backbone in their own names."""

import pytest

torch = pytest.importorskip("torch")

from hardlook.errors import ModelError  # noqa: E402
from hardlook.networks.one_shot.backbones import build_backbone  # noqa: E402
from hardlook.networks.one_shot.catalogue import find_network, list_networks  # noqa: E402
from hardlook.networks.one_shot.network import average_masked  # noqa: E402


@pytest.fixture(scope="module")
def weights():
    torch.manual_seed(5)
    return build_backbone("resnet50-keras", classes=1000).state_dict()


@pytest.mark.parametrize("name", [entry.name for entry in list_networks()])
def test_backbones_start_with_weights_of_their_kind(weights, name):
    network = find_network(name).load().build("resnet50-keras")
    network.load_backbone(weights)
    images = torch.randn(1, 3, 65, 65)
    own = network.state_dict()
    places = {"pfenet": "layer2.", "repri": "layer2.", "rpmm": "model_res.layer2.", "pmm": "model_res.layer2.",
              "panet": "encoder.layer2."}  # fmt: skip
    prefix = places.get(name, "backbone.layer2.")
    for key, value in weights.items():
        if key.startswith("layer2.") and not key.endswith("num_batches_tracked"):
            assert torch.equal(own[prefix + key.removeprefix("layer2.")], value), key
    assert all(torch.isfinite(one).all() for one in network.eval().encode(images))


def test_weights_of_another_backbone_are_refused(weights):
    network = find_network("pfenet").load().build("resnet50")
    with pytest.raises(ModelError, match="of another backbone"):
        network.load_backbone(weights)
    few = dict(list(weights.items())[:20])
    with pytest.raises(ModelError, match="are missing"):
        find_network("pfenet").load().build("resnet50-keras").load_backbone(few)


def test_an_empty_mask_averages_to_0():
    assert average_masked(torch.ones(1, 2, 3, 3), torch.zeros(1, 1, 3, 3)).tolist() == [[[[0.0]], [[0.0]]]]
