"""Checkpoints: ours there and back, in parts, and the authors' under the names that MMSegmentation gives."""

import importlib.util
from pathlib import Path

import pytest

from hardlook.errors import DataError, HardlookError, ModelError
from hardlook.models.click_models.clickability.architecture import SEGNEXT_B
from hardlook.models.click_models.clickability.checkpoint import (
    load_backbone,
    load_network,
    save_checkpoint,
    save_parts,
)
from hardlook.models.click_models.clickability.network import build_network

torch = pytest.importorskip("torch")
_spec = importlib.util.spec_from_file_location("names", Path(__file__).with_name("mmsegmentation_names.py"))
names = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(names)


@pytest.fixture(scope="module")
def published():
    """A state dict with the authors' names and shapes; each tensor has a value of its own."""
    shapes = names.published_checkpoint()
    return {
        key: torch.full(shape, place, dtype=torch.int64 if key.endswith("tracked") else torch.float32)
        for place, (key, shape) in enumerate(shapes.items())
    }


def saved(state, path):
    torch.save(state, path)
    return path


def test_the_authors_checkpoint_loads_by_its_names(published, tmp_path):
    loaded = load_network(saved(published, tmp_path / "segnext.pth"))
    assert (loaded.architecture, loaded.size, loaded.files) == (SEGNEXT_B, 416, (tmp_path / "segnext.pth",))
    state = loaded.network.state_dict()
    assert len(state) == len(published)
    for theirs, ours in (
        ("encoder_decoder.backbone.block3.11.attn.spatial_gating_unit.conv2_2.weight",) * 2,
        ("encoder_decoder.decode_head.0.hamburger.ham.bases", "decode_head.hamburger.ham.bases"),
        ("maps_transform.5.scale", "maps_transform.5.scale"),
        ("encoder_decoder.decode_head.0.align.gn.bias", "decode_head.align.gn.bias"),
    ):
        given, wanted = state[ours.removeprefix("encoder_decoder.")], published[theirs]
        assert torch.equal(given, wanted)


def test_wrapped_and_older_names_load_too(published, tmp_path):
    older = {f"module.{key}".replace("mlp.dwconv.", "mlp.dwconv.dwconv."): value for key, value in published.items()}
    del older["module.encoder_decoder.decode_head.0.hamburger.ham.bases"]
    network = load_network(saved({"state_dict": older}, tmp_path / "older.pth")).network
    key = "encoder_decoder.backbone.block1.0.mlp.dwconv.weight"
    assert torch.equal(network.state_dict()[key.removeprefix("encoder_decoder.")], published[key])
    seeded = build_network(SEGNEXT_B).decode_head.hamburger.ham.bases
    assert torch.equal(network.decode_head.hamburger.ham.bases, seeded)


def test_what_does_not_fit_is_listed(published, tmp_path):
    state = dict(published)
    state["encoder_decoder.auxiliary_head.weight"] = torch.zeros(1)
    del state["encoder_decoder.decode_head.0.squeeze.conv.weight"]
    state["maps_transform.0.weight"] = torch.zeros(16, 3, 1, 1)
    with pytest.raises(ModelError) as error:
        load_network(saved(state, tmp_path / "other.pth"))
    words = str(error.value)
    assert "1 missing: decode_head.squeeze.conv.weight" in words
    assert "1 unexpected: auxiliary_head.weight" in words
    assert "maps_transform.0.weight (network (16, 2, 1, 1), file (16, 3, 1, 1))" in words
    assert str(tmp_path / "other.pth") in words


def test_a_backbone_trained_on_imagenet_starts_the_network(tmp_path):
    state = {key: torch.full(shape, 7.0) for key, shape in names.backbone() if not key.endswith("tracked")}
    state |= {"head.weight": torch.zeros(1000, 512), "head.bias": torch.zeros(1000)}
    network = build_network(SEGNEXT_B)
    head = network.decode_head.squeeze.conv.weight.clone()
    load_backbone(network, saved({"state_dict": state}, tmp_path / "mscan_b.pth"))
    assert all(bool((value == 7).all()) for value in network.backbone.parameters())
    assert torch.equal(network.decode_head.squeeze.conv.weight, head)


def test_our_checkpoint_comes_back_as_it_was(tiny, tmp_path):
    network = build_network(tiny, seed=4)
    save_checkpoint(network, tmp_path / "one.safetensors", tiny, size=96)
    loaded = load_network(tmp_path / "one.safetensors")
    assert (loaded.architecture, loaded.size) == (tiny, 96)
    for key, value in network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[key], value)
    assert not loaded.network.training


def test_parts_are_small_and_make_one_network(tiny, tmp_path):
    network, limit = build_network(tiny, seed=4), 40_000
    # Both happen in training: a variance and a weight that float16 cannot hold.
    network.backbone.block1[0].norm1.running_var.fill_(2e6)
    network.decode_head.conv_seg.weight.data[0, 0] = 1e5
    paths = save_parts(network, tmp_path, tiny, size=96, limit=limit)
    assert len(paths) > 1
    assert max(path.stat().st_size for path in paths) <= limit
    loaded = load_network(tmp_path)
    assert loaded.files == paths
    for key, value in network.state_dict().items():
        rounded = value.ndim > 1 and key != "decode_head.conv_seg.weight"
        assert torch.equal(loaded.network.state_dict()[key], value.half().float() if rounded else value)
    paths[-1].unlink()
    with pytest.raises(ModelError, match=f"expected {len(paths)} parts, found {len(paths) - 1}"):
        load_network(tmp_path)


def test_files_that_are_no_checkpoint(tiny, tmp_path):
    with pytest.raises(ModelError, match="hardlook clicks train"):
        load_network(tmp_path / "absent.safetensors")
    with pytest.raises(ModelError, match="no clickability weights"):
        load_network(tmp_path)
    (tmp_path / "text.safetensors").write_text("no tensors")
    with pytest.raises(DataError, match="not a readable"):
        load_network(tmp_path / "text.safetensors")
    with pytest.raises(HardlookError):
        load_network(saved({"a": torch.zeros(1)}, tmp_path / "a.pth"))
