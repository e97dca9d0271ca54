"""Blocks whose normalisation, activation and pooling are taken in one, against the same blocks layer by layer."""

import copy

import pytest
import torch
import triton_loops  # noqa: F401
from triton_tests import DEVICE

from hardlook.networks.kernels import fused_norm


@pytest.fixture
def kernels(monkeypatch):
    """The kernels, also on a processor; the list has the pooling of each call."""
    calls, apply, built = [], fused_norm.FusedNorm.apply, fused_norm.Kernels()

    def count(*given, **options):
        calls.append(options["pool"])
        return apply(*given, **options)

    monkeypatch.setattr(fused_norm, "find_kernels", lambda where: built)
    monkeypatch.setattr(fused_norm.FusedNorm, "apply", staticmethod(count))
    return calls


def spread_norms(network):
    """Norms with weights and biases of both signs."""
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for parameter in module.parameters():
                parameter.data = torch.randn(parameter.shape, generator=generator) + 0.3
    return network.to(DEVICE)


def draw_maps(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(DEVICE)


def train(network, maps):
    """A step's result, its gradients by name, the input's among them, and the buffers."""
    leaf = maps.detach().clone().requires_grad_()
    result = network(leaf)
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    (result * weights.to(result.dtype)).sum().backward()
    found = {name: one.grad for name, one in network.named_parameters()}
    return {"result": result.detach(), "maps": leaf.grad, **found, **dict(network.named_buffers())}


def compare_with_layers(network, maps, *, tolerance=2e-5):
    """The network, told to fuse, does what its layers do in float64; those of biases before a norm is 0."""
    plain = copy.deepcopy(network).double()
    assert fused_norm.fuse_norms(network) > 0
    wanted, found = train(plain, maps.double()), train(network, maps)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if value is None:
            assert found[name] is None, name
            continue
        # The exact gradient of a bias before a norm is 0.
        wide = max(float(value.abs().max()), 1e-6)
        torch.testing.assert_close(
            found[name].double(),
            value.double(),
            rtol=tolerance,
            atol=tolerance * wide,
            msg=lambda m, n=name: f"{n}: {m}",
        )
