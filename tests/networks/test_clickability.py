"""Checkpoints: ours there and back, in parts, and the authors' under the names that MMSegmentation gives.

The network: its size as published, its factorisation against a literal one, and what its answers depend on.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from hardlook.errors import DataError, HardlookError, ModelError
from hardlook.networks.clickability import (
    build_network,
    count_parameters,
    load_backbone,
    load_network,
    save_checkpoint,
    save_parts,
)
from hardlook.networks.segnext import SEGNEXT_B, Architecture, build_light_ham, build_mscan, first_bases

torch = pytest.importorskip("torch")

_spec = importlib.util.spec_from_file_location(
    "names", Path(__file__).parents[1] / "support" / "mmsegmentation_names.py"
)

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


def inputs(count, size=64, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, 3, size, size)).astype(np.float32)
    masks = (rng.random((count, 2, size, size)) < 0.4).astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(masks)


def test_segnext_b_has_the_published_number_of_parameters():
    with torch.device("meta"):
        backbone = build_mscan(SEGNEXT_B)
    network = build_network(SEGNEXT_B)
    assert count_parameters(network) == pytest.approx(27.59e6, rel=0.01)
    # SegNeXt's own table: 27.6 M with a head over three stages; the backbone is all but the head's 1.3 M.
    assert count_parameters(backbone) == pytest.approx(26.27e6, rel=0.01)


def test_convolutions_take_the_published_operations():
    # A multiply-add counts as two; the factorisation's matrix products come on top, about 3 more. All sides of all
    # stages at 416 are 13 times those at 32, so that one small call counts for a large one.
    from torch.utils.flop_counter import FlopCounterMode

    network = build_network(SEGNEXT_B).eval()
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        network(torch.zeros(1, 3, 32, 32), torch.zeros(1, 2, 32, 32))
    convolutions = counter.get_flop_counts()["Global"][torch.ops.aten.convolution]
    assert 13**2 * convolutions == pytest.approx(64e9, rel=0.01)
    assert 13**2 * counter.get_total_flops() == pytest.approx(67e9, rel=0.02)


def literal_factorisation(x, bases, steps):
    """Multiplicative updates of Lee and Seung on one (C, P) matrix, in float64."""
    x, bases = x.astype(np.float64), bases.astype(np.float64)
    logits = x.T @ bases
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    for _ in range(steps):
        shares = shares * (x.T @ bases) / (shares @ bases.T @ bases + 1e-6)
        bases = bases * (x @ shares) / (bases @ shares.T @ shares + 1e-6)
    shares = shares * (x.T @ bases) / (shares @ bases.T @ bases + 1e-6)
    return bases @ shares.T


@pytest.mark.parametrize("training", [True, False])
def test_the_factorisation_is_the_literal_one(tiny, training):
    ham = build_light_ham(tiny, seed=3).hamburger.ham.train(training)
    x = np.random.default_rng(1).random((2, tiny.head, 5, 6)).astype(np.float32)
    given = ham(torch.from_numpy(x)).numpy()
    bases = first_bases(tiny.head, tiny.rank, seed=3)
    steps = tiny.train_steps if training else tiny.eval_steps
    for one, matrix in zip(given, x, strict=True):
        wanted = literal_factorisation(matrix.reshape(tiny.head, -1), bases, steps)
        np.testing.assert_allclose(one.reshape(tiny.head, -1), wanted, rtol=1e-4, atol=1e-5)


def test_equal_seeds_give_equal_weights_and_torch_keeps_its_random_state(tiny):
    before = torch.random.get_rng_state()
    first, again, other = build_network(tiny, 5), build_network(tiny, 5), build_network(tiny, 6)
    assert torch.equal(torch.random.get_rng_state(), before)
    for key, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[key])
    assert not torch.equal(first.get_buffer("decode_head.hamburger.ham.bases"), other.decode_head.hamburger.ham.bases)


def test_an_answer_depends_on_image_and_masks_and_not_on_the_batch(tiny):
    network = build_network(tiny).eval()
    images, masks = inputs(3)
    with torch.inference_mode():
        together = network(images, masks)
        alone = torch.cat([network(images[i : i + 1], masks[i : i + 1]) for i in range(3)])
        assert torch.equal(together, network(images, masks))
        assert not torch.allclose(together[:1], network(images[1:2], masks[:1]), atol=1e-3)
        assert not torch.allclose(together[:1], network(images[:1], masks[1:2]), atol=1e-5)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    assert together.amin((1, 2)).tolist() == [0, 0, 0]
    torch.testing.assert_close(together.amax((1, 2)), torch.ones(3))


def test_masks_start_as_a_whisper_and_all_parts_learn(tiny):
    network = build_network(tiny).train()
    assert network.maps_transform[5].scale.item() == pytest.approx(0.05)
    images, masks = inputs(2)
    maps = network(images, masks)
    (maps * torch.linspace(0, 1, 64)).sum().backward()
    without = [name for name, value in network.named_parameters() if value.grad is None or not value.grad.any()]
    # Biases before a normalisation have no effect; all else has.
    assert not [name for name in without if name.endswith("weight") or "scale" in name]


@pytest.mark.parametrize("size", [64, 70, 97])
def test_grids_need_not_be_multiples_of_the_stride(tiny, size):
    images, masks = inputs(1, size)
    with torch.inference_mode():
        assert build_network(tiny).eval()(images, masks).shape == (1, size, size)


def test_measures_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="4 stages"):
        Architecture(dims=(8, 8))
    with pytest.raises(ValueError, match="multiple of 32"):
        Architecture(head=100)
    with pytest.raises(ValueError, match="wide"):
        Architecture.from_json({"wide": 3})
