"""Memory layouts of networks in training."""

import pytest
import torch
from torch import nn

from hardlook.networks.backbones.convolutional import ConvolutionBlock
from hardlook.training.devices import arrange_network


@pytest.mark.parametrize(
    ("device", "precision", "moved"),
    [
        ("cuda", "bfloat16", True),
        ("cuda", "float16", True),
        ("cuda", "tf32", True),
        ("cuda", "float32", False),
        ("cuda", None, False),
        ("cpu", "bfloat16", False),
    ],
)
def test_channels_are_last_and_norms_fused_where_a_gpu_rounds(device, precision, moved):
    block = ConvolutionBlock(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
    layer = block[0]
    before = layer.weight.detach().clone()
    arrange_network(block, torch.device(device), precision)
    assert block.fused_norms == moved
    assert layer.weight.is_contiguous(memory_format=torch.channels_last) == moved
    assert torch.equal(layer.weight, before)
