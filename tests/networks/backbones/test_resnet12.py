"""Blocks of ResNet12 whose normalisations, activations and pooling are taken in one do what their layers do."""

import copy

import pytest
import torch
from fused_blocks import compare_with_layers, draw_maps, kernels, spread_norms, train
from torch import nn
from triton_tests import NEEDS_TRITON

from hardlook.networks.backbones.resnet12 import Block, DropBlock, ResNet12, ScaledConvolution
from hardlook.networks.kernels.fused_norm import fuse_norms

__all__ = ["kernels"]

pytestmark = NEEDS_TRITON


def make_block(*, pool=True, shortcut=True, dropping=None):
    torch.manual_seed(0)
    return spread_norms(Block(3, 16, pool=pool, shortcut=shortcut, dropping=dropping or nn.Identity()))


@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize("shortcut", [True, False])
def test_a_block_is_its_layers(kernels, pool, shortcut):
    compare_with_layers(make_block(pool=pool, shortcut=shortcut), draw_maps(2, 3, 5, 6), tolerance=1e-4)
    assert kernels == [False, False, pool]


def test_a_network_is_its_layers(kernels):
    torch.manual_seed(0)
    network = spread_norms(ResNet12(widths=(16, 16, 32, 48), drop_rate=0.0))
    compare_with_layers(network, draw_maps(2, 3, 18, 16), tolerance=5e-4)
    assert kernels == [False, False, True] * 4


def test_what_is_dropped_comes_after(kernels):
    block, other = (make_block(dropping=DropBlock(0.5, 2)) for _ in range(2))
    for one in (block, other):
        one.dropping.start_step(10**6)
    fuse_norms(block)
    found = []
    for one in (block, other):
        torch.manual_seed(7)
        found.append(train(one, draw_maps(2, 3, 8, 8)))
    assert (found[0]["result"] == 0).float().mean() > 0.2 and len(kernels) == 3
    for name, value in found[1].items():
        torch.testing.assert_close(found[0][name], value, rtol=1e-4, atol=1e-4)


def test_other_convolutions_are_called(kernels):
    block = make_block()
    block.conv2 = ScaledConvolution.like(block.conv2)
    block.downsample[0] = ScaledConvolution.like(block.downsample[0])
    block.conv2.mtl_weight.data.fill_(1.5)
    compare_with_layers(block, draw_maps(2, 3, 4, 4), tolerance=1e-4)
    assert len(kernels) == 3 and block.conv2.mtl_weight.grad is not None


@pytest.mark.parametrize("name", ["bn1", "bn2", "bn3", "downsample", "downsample.1"])
def test_hooks_of_layers_are_called(kernels, name):
    block, seen = make_block(), []
    fuse_norms(block)
    handle = block.get_submodule(name).register_forward_hook(lambda layer, *given: seen.append(layer))
    block(draw_maps(2, 3, 4, 4))
    assert len(seen) == 1 and not kernels
    handle.remove()
    block(draw_maps(2, 3, 4, 4))
    assert len(seen) == 1 and len(kernels) == 3


@pytest.mark.parametrize("name", ["conv1", "conv3", "downsample.0", "dropping", ""])
def test_hooks_of_what_is_called_anyway_are_called(kernels, name):
    block, seen = make_block(), []
    fuse_norms(block)
    block.get_submodule(name).register_forward_hook(lambda layer, *given: seen.append(layer))
    block(draw_maps(2, 3, 4, 4))
    assert len(seen) == 1 and len(kernels) == 3


def test_a_shortcut_that_is_not_added_may_be_anything(kernels):
    block = make_block(shortcut=False)
    block.downsample = nn.Identity()
    compare_with_layers(block, draw_maps(2, 3, 4, 4), tolerance=1e-4)
    assert len(kernels) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda block: block.bn2.eval(),
        lambda block: block.downsample[1].eval(),
        lambda block: block.downsample.append(nn.ReLU()),
        lambda block: setattr(block, "bn1", nn.Identity()),
        lambda block: setattr(block, "downsample", nn.Conv2d(3, 16, 1)),
        lambda block: setattr(block, "fused_norms", False),
    ],
)
def test_blocks_of_other_layers_are_called_layer_by_layer(kernels, change):
    block = make_block()
    fuse_norms(block)
    change(block.cpu())
    other = copy.deepcopy(block)
    other.fused_norms = False
    maps = draw_maps(2, 3, 4, 4).cpu()
    assert torch.equal(block(maps), other(maps)) and not kernels
