"""Options of backbones that released recipes have, against networks of other options or layers written out."""

import math

import pytest
import torch
from torch.nn import functional

from hardlook.networks.backbones import build_backbone


def draw(size, count=2):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_conv64f_without_running_statistics_goes_by_the_batch_also_at_test():
    torch.manual_seed(0)
    plain = build_backbone("conv64f", channels=4)
    without = build_backbone("conv64f", channels=4, running_statistics=False)
    names = without.state_dict().keys()
    assert not any("running" in name or "num_batches" in name for name in names)
    without.load_state_dict({name: value for name, value in plain.state_dict().items() if name in names})
    images = draw(20)
    torch.testing.assert_close(without.eval()(images), plain.train()(images))


@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("conv32f", {"output": "maps", "last_pool": False}, (32, 5, 5)),
        ("conv64f", {"output": "maps", "pool_third": False}, (64, 5, 5)),
        ("conv64f", {"output": "maps", "pool_third": False, "last_pool": False}, (64, 10, 10)),
        ("resnet12-no-last-shortcut", {"output": "maps", "pool_last_two": False}, (512, 10, 10)),
        ("resnet12", {"window": 2}, (640,)),
        ("resnet12", {"window": 2, "pool_last_two": False}, (640 * 81,)),
        ("resnet12-mtl", {"scaled": False}, (640,)),
    ],
)
def test_what_is_not_pooled_stays_large(name, options, shape):
    torch.manual_seed(0)
    with torch.no_grad():
        assert build_backbone(name, **options).eval()(draw(40, 1)).shape == (1, *shape)


def test_windows_of_the_released_pooling():
    """Maps of 3 x 3: four windows of 2 x 2, which go into the vector channel by channel."""
    torch.manual_seed(0)
    network = build_backbone("resnet12", widths=(2, 2, 2, 3), window=2).eval()
    images = draw(48)
    with torch.no_grad():
        maps, vectors = network.maps(images), network(images)
    assert maps.shape[2:] == (3, 3) and vectors.shape == (2, 12)
    torch.testing.assert_close(vectors[1, 4 * 2 + 1], maps[1, 2, :2, 1:].mean())
    network.window = 3
    with torch.no_grad():
        torch.testing.assert_close(network(images), maps.mean((2, 3)))


def test_convolutions_of_meta_transfer_learning_may_be_plain():
    plain, scaled = (build_backbone("resnet12-mtl", scaled=flag) for flag in (False, True))
    names = {name for name in scaled.state_dict() if "mtl_" not in name}
    assert names == set(plain.state_dict())
    scaled.load_state_dict(plain.state_dict(), strict=False)
    with torch.no_grad():
        torch.testing.assert_close(scaled.eval()(draw(24)), plain.eval()(draw(24)))


def interpolate(values, count):
    """Cubic convolution (a = -.75) of 14 values at the centres of `count` pixels of the scale (count + .1) / 14."""
    found = []
    for number in range(count):
        place = (number + 0.5) * 14 / (count + 0.1) - 0.5
        total = 0.0
        for near in range(math.floor(place) - 1, math.floor(place) + 3):
            d = abs(place - near)
            inner, outer = (1.25 * d - 2.25) * d * d + 1, ((-0.75 * d + 3.75) * d - 6) * d + 3
            total += (inner if d <= 1 else outer) * values[min(max(near, 0), 13)]
        found.append(total)
    return torch.tensor(found)


def test_positions_of_a_vision_transformer_at_another_size():
    network = build_backbone("vit-small", width=12, depth=1, heads=2)
    generator = torch.Generator().manual_seed(0)
    rows, columns = torch.rand(14, generator=generator), torch.rand(14, generator=generator)
    with torch.no_grad():
        table = torch.outer(rows, columns).reshape(1, 196, 1).repeat(1, 1, 12)
        network.pos_embed.copy_(torch.cat([torch.full((1, 1, 12), 5.0), table], 1))
        found = network.positions(7, 9)
    assert found.shape == (1, 64, 12) and (found[0, 0] == 5).all()
    expected = torch.outer(interpolate(rows.tolist(), 7), interpolate(columns.tolist(), 9))
    torch.testing.assert_close(found[0, 1:, 3].reshape(7, 9), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("widening", [1, 2])
def test_wide_networks_of_other_sizes(widening):
    """A group of WRN-16 written out: where the width does not change, the shortcut is the input as it was."""
    torch.manual_seed(0)
    network = build_backbone("wrn-28-10", depth=16, widening=widening, pooling="max").double().eval()
    x = torch.randn(2, 16, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    state = network.state_dict()

    def norm(x, name):
        mean, variance, weight, bias = (
            state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return functional.relu(functional.batch_norm(x, mean, variance, weight, bias))

    expected = x
    for number in range(2):
        prefix = f"block1.layer.{number}"
        active = norm(expected, f"{prefix}.bn1")
        shortcut = expected
        if f"{prefix}.convShortcut.weight" in state:
            shortcut = functional.conv2d(active, state[f"{prefix}.convShortcut.weight"])
        y = functional.conv2d(active, state[f"{prefix}.conv1.weight"], padding=1)
        expected = shortcut + functional.conv2d(norm(y, f"{prefix}.bn2"), state[f"{prefix}.conv2.weight"], padding=1)
    with torch.no_grad():
        torch.testing.assert_close(network.block1(x), expected)
    assert ("block1.layer.0.convShortcut.weight" in state) == (widening > 1)
