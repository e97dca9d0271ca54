"""Networks prepared for inference on a GPU: faster layers of the same results, replayed as CUDA graphs.

RITM and SimpleClick have such a form. It reads the network's parameters; nothing of the network itself is changed.
Whoever uses a form asks `prepare` for it at every call, as parameters may have changed.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook
from torch.overrides import TorchFunctionMode

from hardlook.networks.gpu import CudaGraphs, read_tf32
from hardlook.networks.interactive.gpu.ritm import FoldedRITM
from hardlook.networks.interactive.gpu.simpleclick import RowsSimpleClick
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.simpleclick import SimpleClick
from hardlook.networks.kernels.triton_kernels import on_device_of


@dataclass(frozen=True)
class GpuOptions:
    """What is done for speed: anything at all (`enabled`), `kernels` in Triton, calls that `replay` as graphs."""

    enabled: bool = True
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
        # Graphs read memory by its address, and a form is known by the addresses of what it was made of.
        self._kept = [one.detach() for one in (*network.parameters(), *network.buffers())]
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
    return (
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"),
        read_tf32(),
        torch.backends.cudnn.deterministic,
        torch.is_inference_mode_enabled(),
    )


_PREPARED: weakref.WeakKeyDictionary[nn.Module, dict[GpuOptions, tuple[Any, GpuNetwork | None]]]
_PREPARED = weakref.WeakKeyDictionary()
"""As long as a network lives: its graphs are of use for every picture."""

_LOCK = threading.Lock()


def prepare(network: Any, options: GpuOptions | None = None) -> GpuNetwork | None:
    """The network's form for a GPU, made anew once a parameter or a layer has changed; None where it has none.

    There is none for other networks and subclasses, in training, where hooks watch a layer, where a layer is not the
    one that the network was built with, and where parameters were made in inference mode, which have no version.

    Not seen are an attribute of a layer that is set later (`layer.stride = 1`) and numbers that are changed through a
    parameter's `data` (`weight.data.mul_(2)`), which torch does not count: change the parameter itself, with
    `torch.no_grad()`.
    """
    options = options or GpuOptions()
    if type(network) not in (RITM, SimpleClick) or not options.enabled:
        return None
    state = _read_state(network)
    if state is None:
        return None
    with _LOCK:
        known = _PREPARED.setdefault(network, {})
        if options not in known or known[options][0] != state:
            known.pop(options, None)  # its memory is free before the next is made
            known[options] = state, GpuNetwork(network, options) if _is_as_built(network) else None
        return known[options][1]


def _read_state(network: nn.Module) -> tuple[Any, ...] | None:
    """What differs once a layer or a number has: quick, as it is asked for at every call.

    None in training, with hooks and with parameters of inference mode.
    """
    layers = [network]
    for layer in layers:  # which becomes longer
        if layer._modules:
            layers += [one for one in layer._modules.values() if one is not None]
    if _has_any_global_hook() or any(  # type: ignore[no-untyped-call]
        one.training or one._forward_hooks or one._forward_pre_hooks or "forward" in vars(one) for one in layers
    ):
        return None
    tensors = [one for one in _tensors_of(layers) if one is not None]
    if any(one.is_inference() for one in tensors):
        return None
    del layers[0]  # what is kept of a network must not keep the network
    return layers, [one.data_ptr() for one in tensors], [one._version for one in tensors]


def _tensors_of(layers: list[nn.Module]) -> chain[Tensor | None]:
    return chain.from_iterable(found.values() for one in layers for found in (one._parameters, one._buffers) if found)


def _is_as_built(network: RITM | SimpleClick) -> bool:
    """Whether the layers are those that such a network is built with, of which the forms know what they compute."""
    tensors = [one for one in (*network.parameters(), *network.buffers()) if one.is_floating_point()]
    places = {(type(one) in (Tensor, nn.Parameter), one.dtype, one.device) for one in tensors}
    kinds = [(True, dtype, tensors[0].device) for dtype in (torch.float32, torch.float64)]
    if len(places) != 1 or places.pop() not in kinds:
        return False
    try:
        arguments: Mapping[str, Any] = {}
        if isinstance(network, RITM):
            arguments = {"use_leaky_relu": isinstance(network.maps_transform[1], nn.LeakyReLU)}
        with torch.device("meta"), _Unfilled():
            fresh = type(network).from_checkpoint(arguments, network.state_dict())
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError):
        return False  # shapes or names that no such network has
    return _describe(network) == _describe(fresh)


class _Unfilled(TorchFunctionMode):
    """Parameters are not drawn: for tensors without memory that takes seconds at first."""

    def __torch_function__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        return given[0] if function is Tensor.normal_ else function(*given, **(named or {}))


_FREE = re.compile(r"(?:^|, )(?:eps|momentum|negative_slope|inplace|p)=[^,]+")
"""Attributes of layers that a form reads, or that change nothing in evaluation mode."""


def _describe(network: nn.Module) -> list[tuple[Any, ...]]:
    """Name, class, attributes, parameters and buffers of every layer."""
    return [
        (
            name,
            type(layer),
            _FREE.sub("", layer.extra_repr()),
            [
                (key, one.shape)
                for key, one in chain(layer._parameters.items(), layer._buffers.items())
                if one is not None
            ],
        )
        for name, layer in network.named_modules()
    ]
