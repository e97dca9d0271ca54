"""Published weights: prefixes, missing and surplus names, refused pickles, the command."""

import json
import pickle

import pytest
import torch

from hardlook.errors import DataError, ModelError
from hardlook.networks.backbones import build_backbone
from hardlook.training.checkpoint import read_card, read_weights
from hardlook.training.imported_weights import import_weights, read_backbone_weights, strip_prefixes


@pytest.fixture
def state():
    torch.manual_seed(3)
    return build_backbone("conv64f").state_dict()


@pytest.mark.parametrize("prefix", ["", "module.", "emb_func.", "module.emb_func.", "encoder.", "backbone."])
def test_prefixes_of_toolkits_are_removed(state, prefix, tmp_path):
    file = tmp_path / "weights.pth"
    torch.save({f"{prefix}{key}": value for key, value in state.items()}, file)
    assert not import_weights(file, "conv64f", tmp_path / "out")
    found = read_weights(tmp_path / "out")
    assert all(torch.equal(found[key], value) for key, value in state.items())


def test_a_head_beside_a_backbone_is_left_out(state, tmp_path):
    whole = {f"emb_func.{key}": value for key, value in state.items()} | {"classifier.weight": torch.ones(2, 2)}
    assert strip_prefixes(whole).keys() == state.keys()
    torch.save(whole, tmp_path / "method.pth")
    assert read_backbone_weights(tmp_path / "method.pth").keys() == state.keys()


def test_what_is_missing_and_left_over_is_reported(hardlook, state, tmp_path):
    given = {key: value for key, value in state.items() if not key.endswith("num_batches_tracked")}
    torch.save({**given, "fc.weight": torch.ones(3)}, tmp_path / "weights.pth")
    words = ("weights", "import", tmp_path / "weights.pth", "--as", "conv64f", "--out", tmp_path / "out")
    found = json.loads(hardlook(*words, "--json").out)
    assert found["unexpected"] == ["fc.weight"] and found["missing"] == [
        f"layer{number}.1.num_batches_tracked" for number in range(1, 5)
    ]
    assert "unexpected, left out: fc.weight" in hardlook(*words).out
    card = read_card(tmp_path / "out")
    assert (
        card["kind"] == "backbone" and card["imported"]["file"] == "weights.pth" and card["unexpected"] == ["fc.weight"]
    )


def test_weights_of_another_network_write_nothing(state, tmp_path):
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(ModelError, match=r"the weights are none of resnet12: \d+ missing"):
        import_weights(tmp_path / "weights.pth", "resnet12", tmp_path / "out")
    with pytest.raises(ModelError, match="of another shape"):
        import_weights(tmp_path / "weights.pth", "conv32f", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pickled_code_is_refused(tmp_path):
    (tmp_path / "evil.pth").write_bytes(pickle.dumps({"a": print}))
    with pytest.raises(DataError, match="never unpickles"):
        import_weights(tmp_path / "evil.pth", "conv64f", tmp_path / "out")
