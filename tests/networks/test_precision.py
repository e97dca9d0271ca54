"""Functions that autocast leaves alone."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.func import vmap

from hardlook.networks.precision import full_precision


@dataclass(frozen=True)
class Pair:
    left: torch.Tensor
    name: str = ""


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2, 2), 1 / 3))

    @full_precision
    def square(self):
        return self.weight @ self.weight

    @full_precision
    def apply_to(self, pair, *, other):
        assert pair.name == "a" and pair.left.dtype == other.dtype == torch.float32
        return pair.left @ other


def test_half_precision_inputs_come_as_float32():
    half = torch.full((2, 2), 1 / 3, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Layer().apply_to(Pair(half, "a"), other=half).dtype == torch.float32
        assert torch.is_autocast_enabled("cpu")
        # Of a method without tensors among its inputs the device is that of its parameters.
        torch.testing.assert_close(Layer().square().detach(), torch.full((2, 2), 2 / 9))


def test_without_autocast_nothing_changes():
    for kind in (torch.bfloat16, torch.float32, torch.float64):
        given = torch.full((2, 2), 1 / 3, dtype=kind)
        assert full_precision(lambda one: one @ one)(given).dtype == kind
    assert full_precision(lambda *given: given)(1, "a") == (1, "a")


def test_it_works_inside_vmap():
    given = torch.full((3, 2, 2), 1 / 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = vmap(full_precision(lambda one: one @ one))(given.bfloat16() * 3)
    assert torch.equal(found, torch.full((3, 2, 2), 2.0)) and found.dtype == torch.float32
