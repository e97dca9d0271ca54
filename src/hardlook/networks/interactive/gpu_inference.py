"""Networks prepared for inference on a GPU: faster layers of the same results, replayed as CUDA graphs.

RITM and SimpleClick have such a form. It reads the network's parameters; nothing of the network itself is changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hardlook.networks.gpu import CudaGraphs
from hardlook.networks.interactive.gpu_ritm import FoldedRITM
from hardlook.networks.interactive.gpu_simpleclick import RowsSimpleClick
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.simpleclick import SimpleClick
from hardlook.networks.split_products import state_of
from hardlook.networks.triton_kernels import on_device_of


@dataclass(frozen=True)
class GpuOptions:
    """What is done for speed: `layers` replaced, Triton's `kernels` for some of them, calls that `replay` as graphs."""

    layers: bool = True
    kernels: bool = True
    replay: bool = True


class GpuNetwork:
    """Logits of a network on a GPU, up to rounding those of the network itself."""

    def __init__(self, network: RITM | SimpleClick, options: GpuOptions) -> None:
        kind: Any = FoldedRITM if isinstance(network, RITM) else RowsSimpleClick
        form = kind(network, kernels=options.kernels)

        # No method: graphs that hold the object that holds them would keep their memory until Python looks for cycles.
        def run(_: Hashable, inputs: Tensor, maps: Tensor, sizes: Tensor | None) -> tuple[Tensor]:
            device = inputs.device.type
            on, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
            # Weights that autocast converts and keeps are not a graph's: they are gone when autocast ends.
            with torch.autocast(device, dtype, enabled=on, cache_enabled=False):
                return (form(inputs, maps, sizes),)

        self.takes_sizes: bool = kind.takes_sizes
        self._run, self._click_maps = run, network.click_maps
        replay = options.replay and network.logit_layer.weight.is_cuda
        self._graphs: CudaGraphs | None = CudaGraphs(run) if replay else None

    @torch.no_grad()
    def __call__(self, inputs: Tensor, points: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Logits (B, 1, H, W) of inputs and points as of the network, and with `takes_sizes` of sizes."""
        # Outside of the graph: clicks become more, and each number of clicks would be a graph of its own.
        maps = self._click_maps(points, (inputs.shape[2], inputs.shape[3]), inputs.dtype)
        with on_device_of(inputs):
            found: Tensor = (self._graphs or self._run)(_read_precision(), inputs, maps, sizes)[0]
        return found


def _read_precision() -> Hashable:
    """What a recorded graph has fixed."""
    rounded = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    return (
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"),
        *rounded,
        torch.backends.cudnn.deterministic,
        torch.is_inference_mode_enabled(),
    )


_PREPARED: weakref.WeakKeyDictionary[nn.Module, dict[GpuOptions, tuple[Hashable, GpuNetwork]]]
_PREPARED = weakref.WeakKeyDictionary()
"""As long as a network lives: its graphs are of use for every picture."""


def prepare(network: Any, options: GpuOptions | None = None) -> GpuNetwork | None:
    """The network's form for a GPU, made anew once a parameter has changed; None where it has none.

    There is none for other networks and subclasses, in training, where hooks watch a layer, and where one was replaced
    by a layer of somebody else's.
    """
    options = options or GpuOptions()
    if type(network) not in (RITM, SimpleClick) or not options.layers:
        return None
    if not all(_is_plain(layer) for layer in network.modules()):
        return None
    if network.logit_layer.weight.dtype not in (torch.float32, torch.float64):
        return None
    state = tuple(state_of(one) for one in (*network.parameters(), *network.buffers()))
    known = _PREPARED.setdefault(network, {})
    if options not in known or known[options][0] != state:
        known.pop(options, None)  # its memory is free before the next is made
        known[options] = state, GpuNetwork(network, options)
    return known[options][1]


def _is_plain(layer: nn.Module) -> bool:
    """Whether the layer computes what its class says, of which the forms know what it is."""
    watched = layer.training or layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer)
    return not watched and type(layer).__module__.partition(".")[0] in ("torch", __name__.partition(".")[0])
