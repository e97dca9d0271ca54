"""Blocks of Conv64F whose normalisation, activation and pooling are taken in one do what their layers do."""

import copy

import pytest
import torch
from fused_blocks import compare_with_layers, draw_maps, kernels, spread_norms, train
from torch import nn
from torch.func import functional_call, grad
from torch.utils.checkpoint import checkpoint
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.backbones.convolutional import Conv32F, Conv64F, ConvolutionBlock, activate
from hardlook.networks.kernels.fused_norm import fuse_norms

__all__ = ["kernels"]

pytestmark = NEEDS_TRITON


def make_block(slope=0.1, *more, channels=16, **options):
    torch.manual_seed(0)
    convolution = nn.Conv2d(3, channels, 3, padding=1, **options)
    return spread_norms(ConvolutionBlock(convolution, nn.BatchNorm2d(channels), activate(slope), *more))


@pytest.mark.parametrize("slope", [0.0, 0.1])
@pytest.mark.parametrize("pool", [True, False])
def test_a_block_is_its_layers(kernels, slope, pool):
    compare_with_layers(make_block(slope, *([nn.MaxPool2d(2)] if pool else [])), draw_maps(2, 3, 5, 7))
    assert kernels == [pool]


@pytest.mark.parametrize("options", [{"bias": False}, {"padding_mode": "reflect"}, {"stride": 2}])
def test_convolutions_of_other_kinds(kernels, options):
    compare_with_layers(make_block(0.1, nn.MaxPool2d(2), **options), draw_maps(2, 3, 8, 8))
    assert kernels == [True]


@pytest.mark.parametrize(
    ("network", "pooled"),
    [
        (lambda: Conv64F("maps", channels=16), [True] * 4),
        (lambda: Conv64F(channels=16, slope=0.1, last_pool=False), [True] * 3 + [False]),
        (lambda: Conv64F(channels=16, pool_third=False, running_statistics=False), [True, True, False, True]),
        (lambda: Conv32F(), [True] * 4),
    ],
)
def test_networks_are_their_layers(kernels, network, pooled):
    torch.manual_seed(0)
    compare_with_layers(spread_norms(network()), draw_maps(2, 3, 20, 16), tolerance=2e-4)
    assert kernels == pooled


def changed(change):
    block = make_block(0.1, nn.MaxPool2d(2))
    change(block)
    return block


def set_layer(number, layer):
    return lambda block: block.__setitem__(number, layer)


class OtherConvolution(nn.Conv2d):
    pass


class OtherActivation(nn.LeakyReLU):
    pass


@pytest.mark.parametrize(
    "change",
    [
        set_layer(0, OtherConvolution(3, 16, 3)),
        set_layer(0, nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 16, 3))),
        set_layer(1, nn.Identity()),
        set_layer(1, nn.BatchNorm2d(16).eval()),
        set_layer(2, nn.GELU()),
        set_layer(2, OtherActivation(0.1)),
        set_layer(2, nn.LeakyReLU(-0.1)),
        set_layer(3, nn.AvgPool2d(2)),
        set_layer(3, nn.MaxPool2d(3)),
        set_layer(3, nn.MaxPool2d((2, 1))),
        set_layer(3, nn.MaxPool2d(2, 1)),
        set_layer(3, nn.MaxPool2d(2, padding=1)),
        set_layer(3, nn.MaxPool2d(2, dilation=2)),
        set_layer(3, nn.MaxPool2d(2, ceil_mode=True)),
        set_layer(3, nn.Dropout(0.0)),
        lambda block: block.append(nn.Dropout(0.0)),
        lambda block: block.append(nn.MaxPool2d(2)),
        lambda block: block.pop(2),
        lambda block: block.__delitem__(slice(1, None)),
        lambda block: block.insert(0, nn.Identity()),
        lambda block: block.eval(),
        lambda block: setattr(block[2], "forward", torch.nn.functional.relu),
    ],
)
def test_blocks_of_other_layers_are_called_layer_by_layer(kernels, change):
    block = changed(change).to(DEVICE)
    fuse_norms(block)
    maps = draw_maps(2, 3, 9, 9)
    expected = maps
    for layer in copy.deepcopy(block):
        expected = layer(expected)
    assert torch.equal(block(maps), expected) and not kernels


@pytest.mark.parametrize("pool", [nn.MaxPool2d((2, 2)), nn.MaxPool2d(2, (2, 2), (0, 0), (1, 1))])
def test_sizes_of_pooling_may_be_pairs(kernels, pool):
    compare_with_layers(make_block(0.0, pool), draw_maps(2, 3, 5, 4))
    assert kernels == [True]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("pre", [True, False])
def test_hooks_of_layers_are_called(kernels, number, pre):
    block, seen = make_block(0.1, nn.MaxPool2d(2)), []
    fuse_norms(block)
    register = block[number].register_forward_pre_hook if pre else block[number].register_forward_hook
    handle = register(lambda layer, *given: seen.append(layer))
    block(draw_maps(2, 3, 4, 4))
    assert seen == [block[number]] and not kernels
    handle.remove()
    block(draw_maps(2, 3, 4, 4))
    assert len(seen) == 1 and kernels == [True]


def test_hooks_of_blocks_see_their_own_maps(kernels):
    """The pooling behind a block is a layer of its own."""
    network, seen = spread_norms(Conv64F("maps", channels=16)), {}
    fuse_norms(network)
    for name in ("layer2", "layer3", "layer4"):
        network.get_submodule(name).register_forward_hook(
            lambda _, given, maps, n=name: seen.update({n: (given, maps)})
        )
    network.layer3_maxpool.register_forward_hook(lambda _, given, maps: seen.update(pool=maps))
    result = network(draw_maps(1, 3, 16, 16))
    pooled = seen.pop("pool")
    assert {name: maps.shape[-1] for name, (_, maps) in seen.items()} == {"layer2": 4, "layer3": 4, "layer4": 2}
    assert all(len(given) == 1 for given, _ in seen.values())
    assert pooled.shape[-1] == 2 and result.shape[-1] == 1 and kernels == [True, True, False, False]


def test_a_network_may_have_more_layers(kernels):
    network = spread_norms(Conv64F("maps", channels=16))
    plain = network(draw_maps(1, 3, 16, 16))
    network.add_module("scaled", nn.LeakyReLU(0.5))
    network.layer4_maxpool = nn.AvgPool2d(2)
    network.layer1 = nn.Sequential(*network.layer1)
    fuse_norms(network)
    found = network(draw_maps(1, 3, 16, 16))
    assert found.shape == plain.shape and not torch.allclose(found, plain) and kernels == [True, True, False]


@pytest.mark.parametrize("fused", [True, False])
def test_a_part_of_a_block_is_called_layer_by_layer(kernels, fused):
    block = make_block(0.1, nn.MaxPool2d(2))
    block.fused_norms = fused
    part = block[:2]
    maps = draw_maps(2, 3, 4, 4)
    assert torch.equal(part(maps), block[1](block[0](maps))) and not kernels


def test_blocks_fuse_only_where_they_are_told(kernels):
    make_block()(draw_maps(2, 3, 4, 4))
    assert not kernels


def test_under_autocast_maps_are_rounded_where_they_were(kernels):
    block, maps = make_block(0.1, nn.MaxPool2d(2)), draw_maps(4, 3, 16, 16)
    plain = copy.deepcopy(block)
    exact = train(copy.deepcopy(block).double(), maps.double())
    fuse_norms(block)
    with torch.autocast(DEVICE.type, torch.bfloat16):
        wanted, found = train(plain, maps), train(block, maps)
    assert found["result"].dtype == wanted["result"].dtype == torch.bfloat16 and kernels == [True]
    errors = {}
    for name in ("result", "maps", "0.weight", "1.weight", "1.bias", "1.running_mean", "1.running_var"):
        assert found[name].dtype == wanted[name].dtype
        errors[name] = [
            float((one[name].double() - exact[name]).norm() / exact[name].norm()) for one in (found, wanted)
        ]
    # The interpreter cuts bits off where a GPU rounds to the nearest.
    assert errors["result"][0] < (1.1 if DEVICE.type == "cuda" else 1.6) * errors["result"][1]
    # A gradient may go to another pixel of nearly the same value.
    assert max(own for own, _ in errors.values()) < 0.1
    # Here the bias is not rounded.
    assert errors["1.running_mean"][0] < 0.5 * errors["1.running_mean"][1] and errors["1.running_var"][0] < 1e-4


def test_transformations_of_torch_see_the_layers(kernels):
    block = make_block(0.1, nn.MaxPool2d(2))
    maps, parameters = draw_maps(2, 3, 4, 4), dict(block.named_parameters())
    block[1].track_running_stats = False  # torch.func allows no buffer to change
    fuse_norms(block)

    def loss(own):
        return functional_call(block, own, (maps,)).square().sum()

    found = grad(loss)(parameters)
    assert not kernels
    loss(parameters).backward()
    assert kernels == [True]
    for name, parameter in parameters.items():
        torch.testing.assert_close(parameter.grad, found[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_block_may_be_computed_again_on_the_way_back(kernels, reentrant):
    block, maps = make_block(0.1, nn.MaxPool2d(2)), draw_maps(2, 3, 4, 4)
    again = copy.deepcopy(block)
    fuse_norms(block)
    fuse_norms(again)
    wanted = train(block, maps)
    found = train(lambda_module(again, reentrant), maps)
    for name in ("result", "maps", *dict(block.named_parameters())):
        torch.testing.assert_close(found[name.replace("inner.", "")], wanted[name], rtol=1e-5, atol=1e-5)
    assert int(again[1].num_batches_tracked) == 2


class lambda_module(nn.Module):
    def __init__(self, inner, reentrant):
        super().__init__()
        self.inner, self.reentrant = inner, reentrant

    def forward(self, maps):
        return checkpoint(self.inner, maps, use_reentrant=self.reentrant)

    def named_parameters(self, *given, **options):
        return self.inner.named_parameters(*given, **options)


def test_a_copy_fuses_as_well(kernels):
    block = make_block()
    fuse_norms(block)
    assert copy.deepcopy(block).fused_norms and block.state_dict().keys() == make_block().state_dict().keys()
    assert not make_block().fused_norms
