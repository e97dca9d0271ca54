"""Published weights: prefixes, missing and surplus names, refused pickles, the command."""

import json
import pickle

import pytest
import torch

from hardlook.errors import DataError, ModelError
from hardlook.metacoco.training.run import read_start
from hardlook.networks.backbones import build_backbone
from hardlook.training.checkpoint import read_card, read_weights
from hardlook.training.imported_weights import import_weights, read_backbone_weights, strip_prefixes
from hardlook.training.recipes import find_recipe


@pytest.fixture
def state():
    torch.manual_seed(3)
    return build_backbone("conv64f").state_dict()


PREFIXES = ["", "module.", "emb_func.", "module.emb_func.", "encoder.", "backbone.", "encoder.module.", "_orig_mod."]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_of_toolkits_are_removed(state, prefix, tmp_path):
    file = tmp_path / "weights.pth"
    torch.save({f"{prefix}{key}": value for key, value in state.items()}, file)
    assert not import_weights(file, "conv64f", tmp_path / "out")
    found = read_weights(tmp_path / "out")
    assert all(torch.equal(found[key], value) for key, value in state.items())


@pytest.mark.parametrize("key", ["state_dict", "model", "params", "state", "model_sd"])
def test_state_dicts_lie_below_the_keys_of_toolkits(state, key, tmp_path):
    """FEAT and RENet save below `params`, DeepBDC below `state`, Meta-Baseline below `model_sd` beside its `model`."""
    torch.save({"model": "resnet12", "epoch": 3, key: state}, tmp_path / "weights.pth")
    assert read_backbone_weights(tmp_path / "weights.pth").keys() == state.keys()


@pytest.mark.parametrize(("kind", "named"), [(torch.int8, "whole"), (torch.complex64, "complex")])
def test_numbers_of_another_kind_are_refused(state, kind, named, tmp_path):
    """Rounded to whole numbers, or without their imaginary part, weights are others."""
    torch.save({key: (50 * value).to(kind) for key, value in state.items()}, tmp_path / "weights.pth")
    with pytest.raises(ModelError, match=f"24 weights are {named} numbers: layer1.0.weight"):
        import_weights(tmp_path / "weights.pth", "conv64f", tmp_path / "out")
    with pytest.raises(ModelError, match=f"24 weights are {named} numbers"):
        read_start(tmp_path / "weights.pth", find_recipe("protonet", "conv64f", ("episodes",)))
    assert not (tmp_path / "out").exists()


def test_half_precision_and_views_of_one_tensor_are_read_as_they_are(state, tmp_path):
    torch.save({key: value.to(torch.bfloat16) for key, value in state.items()}, tmp_path / "half.pth")
    import_weights(tmp_path / "half.pth", "conv64f", tmp_path / "half")
    found = read_weights(tmp_path / "half")
    assert all(torch.equal(found[key], value.to(torch.bfloat16).to(value)) for key, value in state.items())
    floats = {key: value for key, value in state.items() if value.is_floating_point()}
    whole = torch.cat([value.flatten() for value in floats.values()])
    parts = whole.split([value.numel() for value in floats.values()])
    views = {key: part.view(value.shape) for (key, value), part in zip(floats.items(), parts, strict=True)}
    views["layer1.0.weight"] = views["layer1.0.weight"].mT.contiguous().mT
    torch.save(views, tmp_path / "views.pth")
    import_weights(tmp_path / "views.pth", "conv64f", tmp_path / "views")
    found = read_weights(tmp_path / "views")
    assert all(torch.equal(found[key], value) for key, value in floats.items())


def test_a_head_beside_a_backbone_is_left_out(state, tmp_path):
    whole = {f"emb_func.{key}": value for key, value in state.items()} | {"classifier.weight": torch.ones(2, 2)}
    assert strip_prefixes(whole).keys() == state.keys()
    torch.save(whole, tmp_path / "method.pth")
    assert read_backbone_weights(tmp_path / "method.pth").keys() == state.keys()
    assert import_weights(tmp_path / "method.pth", "conv64f", tmp_path / "out").unexpected == ("classifier.weight",)


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
