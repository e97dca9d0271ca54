"""The network: its size as published, its factorisation against a literal one, and what its answers depend on."""

import numpy as np
import pytest

from hardlook.models.click_models.clickability.architecture import SEGNEXT_B, Architecture
from hardlook.models.click_models.clickability.light_ham import build_light_ham, first_bases
from hardlook.models.click_models.clickability.mscan import build_mscan
from hardlook.models.click_models.clickability.network import build_network, parameters_of

torch = pytest.importorskip("torch")


def inputs(count, size=64, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, 3, size, size)).astype(np.float32)
    masks = (rng.random((count, 2, size, size)) < 0.4).astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(masks)


def test_segnext_b_has_the_published_number_of_parameters():
    with torch.device("meta"):
        backbone = build_mscan(SEGNEXT_B)
    network = build_network(SEGNEXT_B)
    assert parameters_of(network) == pytest.approx(27.59e6, rel=0.01)
    # SegNeXt's own table: 27.6 M with a head over three stages; the backbone is all but the head's 1.3 M.
    assert parameters_of(backbone) == pytest.approx(26.27e6, rel=0.01)


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
