"""HSNet: its convolution, laws, training, and the released code."""

import numpy as np
import pytest
import torch
from goldens import read_golden
from one_shot_goldens import (
    check_array,
    fill_network,
    find_backbone,
    list_cases,
    list_goldens,
    list_keys,
    read_inputs,
)
from torch.nn import functional

from hardlook.errors import ModelError
from hardlook.networks.one_shot import hsnet
from hardlook.networks.one_shot.evaluation import vote
from hardlook.networks.one_shot.hsnet import CentrePivotConv4d, HSNet, correlate, normalise

LEVELS = ("layer2", "layer3", "layer4")


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return HSNet.build("resnet50-keras").eval()


@pytest.fixture(scope="module")
def pairs():
    """Queries, supports and masks of two pairs with two supports each; 255 around the class."""
    rng = torch.Generator().manual_seed(1)
    query, supports = torch.randn(2, 3, 97, 97, generator=rng), torch.randn(2, 2, 3, 97, 97, generator=rng)
    masks = torch.zeros(2, 2, 97, 97, dtype=torch.uint8)
    masks[0, :, 10:60, 20:70], masks[1, :, 20:80, 5:60] = 255, 255
    masks[0, :, 11:59, 21:69], masks[1, :, 21:79, 6:59] = 1, 1
    return query, supports, masks


def test_a_centre_pivot_is_a_4d_convolution_with_two_planes():
    """Against the sum over a kernel of four axes that is zero off the planes through its centre."""
    torch.manual_seed(0)
    stride = 2
    layer = CentrePivotConv4d(2, 3, 3, stride).double()
    x = torch.randn(1, 2, 4, 3, 5, 6, dtype=torch.float64)
    kernel = torch.zeros(3, 2, 3, 3, 3, 3, dtype=torch.float64)
    kernel[:, :, :, :, 1, 1] += layer.conv1.weight.detach()
    kernel[:, :, 1, 1] += layer.conv2.weight.detach()
    windows = functional.pad(x, (1, 1, 1, 1, 1, 1, 1, 1))
    for axis, step in ((2, 1), (3, 1), (4, stride), (5, stride)):
        windows = windows.unfold(axis, 3, step)
    expected = torch.einsum("bcijklpqrs,ocpqrs->boijkl", windows, kernel)
    expected += (layer.conv1.bias + layer.conv2.bias).detach().view(1, 3, 1, 1, 1, 1)
    torch.testing.assert_close(layer(x).detach(), expected)


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 25])
def test_convolving_correlations_in_chunks_equals_holding_them_all(chunk, monkeypatch):
    monkeypatch.setattr(hsnet, "CHUNK", chunk)
    torch.manual_seed(0)
    layer = CentrePivotConv4d(3, 4, 5, 4).double()
    query, support = torch.randn(2, 3, 7, 5, 4).double(), torch.randn(2, 3, 7, 6, 9).double()
    torch.testing.assert_close(layer.correlate(query, support), layer(correlate(query, support)))


def test_correlations_are_cosines_and_masked_positions_have_none(network, pairs):
    query, _, masks = pairs
    with torch.no_grad():
        features = network.encode(query)
        described = network.describe(features, masks[:, 0])
    for level, shown in zip(features, described, strict=True):
        found = correlate(normalise(level), shown)
        batch, layers, height, width = found.shape[:4]
        place = (torch.arange(height)[:, None], torch.arange(width))
        alike = found[:, :, place[0], place[1], place[0], place[1]]
        inside = shown.norm(dim=2) > 0
        torch.testing.assert_close(alike[inside], torch.ones_like(alike[inside]), atol=1e-3, rtol=0)
        assert found.min() >= 0 and found.max() < 1.001 and alike[~inside].eq(0).all()
        assert (batch, layers) == tuple(level.shape[:2])


def test_opposite_features_have_no_correlation():
    axis = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.6, 0.8]]).T.reshape(1, 1, 2, 1, 3)
    expected = torch.tensor([[1, 0, 0.6], [0, 1, 0], [0.6, 0, 1]])
    torch.testing.assert_close(correlate(axis, axis).view(3, 3), expected)


def test_ignored_pixels_are_not_the_class(network, pairs):
    masks = pairs[2][:, 0].clone()
    masks[:, :30] = 255
    features = tuple(torch.randn(2, 3, 4, side, side) for side in (13, 7, 4))
    given, without = (network.describe(features, one) for one in (masks, (masks == 1).byte()))
    assert all(torch.equal(*pair) for pair in zip(given, without, strict=True))


def test_pairs_do_not_mix_supports_have_no_order_and_encoding_once_is_enough(network, pairs):
    query, supports, masks = pairs
    with torch.no_grad():
        together = network(query, supports, masks)
        assert together.shape == (2, 2, 97, 97)
        moved = network(query.flip(0), supports.flip(0).flip(1), masks.flip(0).flip(1))
        features, shown = network.encode(query), [network.encode(supports[:, shot]) for shot in range(2)]
        described = [network.describe(one, masks[:, shot]) for shot, one in enumerate(shown)]
        stacked = tuple(torch.stack(parts, 1) for parts in zip(*described, strict=True))
        single = [tuple(one[1:] for one in given) for given in (features, stacked)]
        alone = network.match(*single, (97, 97))
        shots = network.match_shots(*single, (97, 97))
    torch.testing.assert_close(moved.flip(0), together, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(alone, together[1:], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(alone.exp(), shots.softmax(2).mean(1), atol=1e-6, rtol=1e-4)


def test_several_supports_vote_as_released(network, monkeypatch):
    monkeypatch.setattr(network, "released", True)
    shots = torch.randn(2, 5, 2, 97, 97)
    monkeypatch.setattr(network, "match_shots", lambda *given: shots)
    logits = network.match((), (), (97, 97))
    assert torch.equal(logits.argmax(1).bool(), vote(shots.argmax(2), released=True))


def test_training_changes_all_but_the_backbone_and_ignores_255_unless_released(pairs, monkeypatch):
    torch.manual_seed(0)
    query, supports, masks = (one[:1, :1] if one.ndim > 4 or one.dtype == torch.uint8 else one[:1] for one in pairs)
    network = HSNet.build("resnet50-keras").train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    labels = masks[:, 0]
    loss, logits = network.loss(query, labels, supports, masks)
    loss.backward()
    ((trained, factor),) = network.list_groups()
    assert factor == 1 and {id(one) for one in trained} == {id(one) for one in network.hpn_learner.parameters()}
    assert all(one.grad is not None and one.grad.isfinite().all() for one in trained)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    kept = labels != 255
    torch.testing.assert_close(loss, functional.cross_entropy(logits.movedim(1, -1)[kept], labels[kept].long()))
    monkeypatch.setattr(network, "released", True)
    with torch.no_grad():
        expected = functional.cross_entropy(logits, (labels == 1).long())
        torch.testing.assert_close(network.loss(query, labels, supports, masks)[0], expected)


def test_a_size_whose_levels_do_not_meet_is_refused():
    """VGG16 rounds sizes down: 272 pixels leave 34, 17 and 8 positions, which are squeezed to 2, 2 and 1."""
    with torch.device("meta"), pytest.raises(ModelError, match="400 x 400"), torch.no_grad():
        HSNet.build("vgg16")(torch.zeros(1, 3, 272, 272), torch.zeros(1, 1, 3, 272, 272), torch.zeros(1, 1, 272, 272))


@pytest.mark.parametrize(("backbone", "layers"), [("vgg16", (3, 3, 1)), ("resnet101", (4, 23, 3))])
def test_other_backbones_have_other_layers(backbone, layers):
    with torch.device("meta"):
        network = HSNet.build(backbone).eval()
        levels = network.encode(torch.zeros(1, 3, 400, 400))
    assert tuple(level.shape[1] for level in levels) == layers
    assert tuple(network.hpn_learner.get_submodule(f"encoder_{name}")[0].conv1.in_channels for name in LEVELS) == layers
    with torch.device("meta"):
        shown = network.describe(levels, torch.zeros(1, 400, 400))
        assert network.match(levels, tuple(one[:, None] for one in shown), (400, 400)).shape == (1, 2, 400, 400)


def test_bfloat16_by_autocast(network, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert network(query, supports, masks).isfinite().all()


def run(network, golden, case, dtype):
    """Outputs of the parts by the names of the arrays, for the first support; and the logits of every one."""
    query, supports, masks, labels = read_inputs(golden, case, dtype)
    learner, seen = network.hpn_learner, {}

    def keep_first(name):
        def keep(part, given, output):  # returns nothing: what a hook returns replaces the output
            seen.setdefault(name, output.clone())

        return keep

    hooks = [part[-1].register_forward_hook(keep_first(name)) for name, part in learner.named_children()]
    with torch.no_grad():
        features, shown = network.encode(query), network.encode(supports.flatten(0, 1))
        described = [one.view(*masks.shape[:2], *one.shape[1:]) for one in network.describe(shown, masks.flatten(0, 1))]
        size = tuple(query.shape[-2:])
        logits = network.match_shots(features, described, size)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(network, "forward", lambda *given: logits[:, 0])
            loss = network.loss(query, labels, supports[:, :1], masks[:, :1])[0]
    for hook in hooks:
        hook.remove()
    found = {"loss": loss, "logits": logits[:, 0], "logits.stride4": logits[:, 0, :, ::4, ::4]}
    shots = masks.shape[1]
    for number, name in enumerate(LEVELS):
        soft = functional.interpolate(
            (masks[:, :1] == 1).to(dtype), features[number].shape[3:], mode="bilinear", align_corners=True
        )
        for block in range(features[number].shape[1]):
            found[f"query.{name}.{block}"] = features[number][:, block]
            found[f"support_masked.{name}.{block}"] = shown[number][::shots, block] * soft
        of = correlate(normalise(features[number]), described[number][:, 0])
        key, (height, width), step = f"corr_l{name[-1]}", of.shape[2:4], max(1, of.shape[4] // 10)
        found[key] = of
        found |= {f"{key}.mean_per_layer": of.mean((2, 3, 4, 5)), f"{key}.max_per_layer": of.amax((2, 3, 4, 5))}
        rows = [
            of[:, :, y, x, ::step, ::step] for y, x in ((0, 0), (height // 2, width // 2), (height - 1, width // 3))
        ]
        found |= {f"{key}.mean_over_support": of.mean((4, 5)), f"{key}.rows": torch.stack(rows, 2)}
    for name, output in seen.items():
        if name.startswith("encoder"):
            found |= {name: output, f"{name}.mean_over_query_hw": output.mean((2, 3))[:, ::8]}
            found[f"{name}.mean_over_support_hw"] = output.mean((4, 5))
        else:
            found[name] = output
    found["encoded"] = found["encoder_layer3to2.mean_over_support_hw"]
    if f"{case}.votes" in golden.arrays:
        found["votes"] = logits.argmax(2)
        found["pred"] = vote(found["votes"], released=True)
        height, width = golden.arrays[f"{case}.orig_hw"].tolist()
        # From the decoder's size at once, not by way of the input's.
        voted = network.match_shots(features, described, (height, width)).argmax(2)
        found["pred_at_original_size"] = vote(voted, released=True)
        found["orig_hw"] = torch.tensor([height, width])
    return found


@pytest.mark.parametrize("name", list_goldens("hsnet"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_released_code(name, dtype):
    golden = read_golden("one_shot", name)
    network = fill_network(HSNet(find_backbone(golden), released=True), golden).eval().to(dtype)
    for case in list_cases(golden):
        found = run(network, golden, case, dtype)
        for key in list_keys(golden, case):
            name = key.removeprefix(f"{case}.")
            if name == "logits" and dtype == torch.float64:  # stored at every fourth row and column
                expected = golden.arrays[f"{key}.f64"]
                np.testing.assert_allclose(found[name][..., ::4, ::4], expected, atol=1e-9 * np.abs(expected).max())
            else:
                check_array(golden, key, found[name], exact=1e-9)
