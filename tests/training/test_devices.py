"""Memory layouts of networks in training."""

import pytest
import torch
from torch import nn

from hardlook.training.devices import arrange_channels


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
def test_channels_are_last_where_a_gpu_rounds(device, precision, moved):
    layer = nn.Conv2d(3, 4, 3)
    before = layer.weight.detach().clone()
    arrange_channels(layer, torch.device(device), precision)
    assert layer.weight.is_contiguous(memory_format=torch.channels_last) == moved
    assert torch.equal(layer.weight, before)
