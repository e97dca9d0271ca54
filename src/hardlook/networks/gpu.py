"""Networks on a GPU without waiting: faster layers of the same results, and calls replayed as CUDA graphs.

Transposed convolutions become matrix products, and layer norms over channels read their image as it lies in memory.
All give the results of the plain network up to the last bits of float32.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from hardlook.errors import RunWarning

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


def read_upscaling(convolution: nn.ConvTranspose2d) -> tuple[Tensor, Tensor | None]:
    """A transposed convolution whose kernel is its stride, as a product: weight (rows columns filters, C) and bias."""
    channels, filters, rows, columns = convolution.weight.shape
    weight = convolution.weight.detach().permute(2, 3, 1, 0).reshape(rows * columns * filters, channels)
    bias = convolution.bias
    return weight.contiguous(), None if bias is None else bias.detach().repeat(rows * columns)


def build_upscaling(convolution: nn.ConvTranspose2d) -> nn.Module:
    """A transposed convolution whose kernel is its stride, as one matrix product; cuDNN takes many times as long.

    >>> import torch
    >>> plain = torch.nn.ConvTranspose2d(3, 2, 2, 2)
    >>> image = torch.rand(1, 3, 4, 5)
    >>> bool(torch.allclose(build_upscaling(plain)(image), plain(image), atol=1e-6))
    True
    """
    from torch import nn
    from torch.nn.functional import linear

    _, filters, rows, columns = convolution.weight.shape

    class Upscaling(nn.Module):
        """Every pixel becomes a block of the kernel's size."""

        product: Tensor
        bias: Tensor | None

        def __init__(self) -> None:
            super().__init__()
            self.replaced_layers = (convolution,)  # whose parameters are counted
            product, bias = read_upscaling(convolution)
            self.register_buffer("product", product)
            self.register_buffer("bias", bias)

        def forward(self, image: Tensor) -> Tensor:
            """Map (N, channels, H, W) to (N, filters, H * rows, W * columns), whose channels lie last in memory."""
            count, _, height, width = image.shape
            blocks = linear(image.permute(0, 2, 3, 1), self.product, self.bias)
            blocks = blocks.view(count, height, width, rows, columns, filters).transpose(2, 3)
            return blocks.reshape(count, height * rows, width * columns, filters).permute(0, 3, 1, 2)

    return Upscaling()


def replace_transposed_convolutions(network: nn.Module) -> int:
    """Put `build_upscaling` in place of every transposed convolution that allows it; return how many there were."""
    from torch import nn

    replaced = 0
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.ConvTranspose2d) and _is_block_upscaling(child):
                setattr(module, name, build_upscaling(child))
                replaced += 1
    return replaced


def _is_block_upscaling(layer: nn.ConvTranspose2d) -> bool:
    zero, one = (0, 0), (1, 1)
    whole = layer.groups == 1 and tuple(layer.dilation) == one
    return (
        whole
        and tuple(layer.kernel_size) == tuple(layer.stride)
        and tuple(layer.padding) == zero
        and tuple(layer.output_padding) == zero
    )


def build_channel_norm(norm: nn.LayerNorm) -> nn.LayerNorm:
    """A layer norm over the channels of (N, C, H, W), computed in float32 as the image lies in memory.

    Torch's own kernel gives a block of threads to every pixel: for few channels most of them have nothing to do. Other
    types go to that kernel. The parameters and hooks are those of the given layer.
    """
    import torch
    from torch import nn

    class ChannelNorm(nn.LayerNorm):
        """Every pixel's channels, shifted to mean 0 and scaled to variance 1."""

        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.__dict__.update(vars(norm))
            self.data_format = "any"

        def forward(self, input: Tensor) -> Tensor:
            """Map (N, C, H, W) to the same shape."""
            if input.dtype != torch.float32:
                return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            variance, mean = torch.var_mean(input, dim=1, correction=0, keepdim=True)
            scaled = (input - mean) * (variance + self.eps).rsqrt()
            return torch.addcmul(self.bias[:, None, None], scaled, self.weight[:, None, None])

    return ChannelNorm()


def replace_channel_norms(network: nn.Module, most: int = 128) -> int:
    """Put `build_channel_norm` in place of layer norms over at most so many channels; return how many there were.

    These are torch's layer norms with the `data_format` "channels_first" of transformers.
    """
    from torch import nn

    replaced = 0
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            over_channels = getattr(child, "data_format", None) == "channels_first"
            if over_channels and isinstance(child, nn.LayerNorm) and child.normalized_shape[0] <= most:
                setattr(module, name, build_channel_norm(child))
                replaced += 1
    return replaced


def copy_without_weights(network: nn.Module) -> nn.Module:
    """A network whose layers can be replaced, over the same parameters, buffers and hooks as the given one's.

    >>> import torch
    >>> plain = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    >>> other = copy_without_weights(plain)
    >>> other[1] = torch.nn.Identity()
    >>> other[0].weight is plain[0].weight, plain[1]
    (True, ReLU())
    """
    twin = copy.copy(network)
    children = network._modules.items()
    twin._modules = {name: None if one is None else copy_without_weights(one) for name, one in children}
    return twin


def is_observed() -> bool:
    """Whether a mode such as torch's FLOP counter sees every step of torch; it would not see a kernel of Triton."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode() is not None


def is_switched_off(variable: str) -> bool:
    """Whether an environment variable says "off", "no" or "0"."""
    return os.environ.get(variable, "").lower() in ("off", "no", "0")


class RoundedTypes(NamedTuple):
    """Which operations a GPU computes in TF32."""

    products: bool
    convolutions: bool


def read_tf32() -> RoundedTypes:
    """The present setting by torch's older names, or by `fp32_precision`, after whose use the older ones may raise."""
    import torch

    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    try:
        products = matmul.allow_tf32
    except RuntimeError:
        products = matmul.fp32_precision == "tf32"
    try:
        convolutions = cudnn.allow_tf32
    except RuntimeError:
        convolutions = cudnn.conv.fp32_precision == "tf32"
    return RoundedTypes(products, convolutions)


@contextlib.contextmanager
def multiplying(*, rounded: bool, benchmark: bool, deterministic: bool) -> Iterator[None]:
    """float32 multiplies in TF32 on a GPU if `rounded`, else with all digits; what was set before is set again.

    `benchmark` and `deterministic` are cuDNN's.
    """
    import torch

    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    try:
        before, _, named = matmul.allow_tf32, cudnn.allow_tf32, torch.get_float32_matmul_precision()
    except RuntimeError:  # somebody has used torch's newer names, and the older ones no longer tell
        with _multiplying_by_newer_names(rounded, benchmark, deterministic):
            yield
        return
    # The matrix product has a switch of its own; since torch 2.9 the older one for cuDNN lives in its flags only.
    matmul.allow_tf32 = rounded
    try:
        with cudnn.flags(enabled=True, benchmark=benchmark, deterministic=deterministic, allow_tf32=rounded):
            yield
    finally:
        matmul.allow_tf32 = before
        if named == "medium":  # which neither value of the switch stands for
            torch.set_float32_matmul_precision(named)


@contextlib.contextmanager
def _multiplying_by_newer_names(rounded: bool, benchmark: bool, deterministic: bool) -> Iterator[None]:
    import torch

    cudnn: Any = torch.backends.cudnn
    precision = "tf32" if rounded else "ieee"
    changes: list[tuple[Any, str, Any]] = [
        *((one, "fp32_precision", precision) for one in (torch.backends.cuda.matmul, cudnn.conv, cudnn.rnn)),
        *((cudnn, "benchmark", benchmark), (cudnn, "deterministic", deterministic), (cudnn, "enabled", True)),
    ]
    before = [getattr(one, name) for one, name, _ in changes]
    try:
        for one, name, value in changes:
            setattr(one, name, value)
        yield
    finally:
        for (one, name, _), value in zip(changes, before, strict=True):
            setattr(one, name, value)


def renew_generator(device: torch.device) -> None:
    """Give torch's generator of a GPU a new state with the same numbers to come.

    After a recording that has failed the old one may still say that it is recorded (its `capturing_`), and drawing from
    it would be an error. Graphs that were recorded before draw from the old state.
    """
    import torch

    if device.type != "cuda":
        return
    own = torch.cuda.default_generators[device.index]
    fresh = torch.Generator(device)
    fresh.set_state(own.get_state())
    own.graphsafe_set_state(fresh.graphsafe_get_state())


class CudaGraphs:
    """A function of CUDA tensors, replayed as one CUDA graph per combination of shapes.

    A network of many small steps spends more time on launching them than on computing. The first `warm_ups` calls with
    the same `key` and shapes run as usual; the next one is recorded, and later ones are replayed: the same kernels on
    the same shapes, so the same bits. At most `most` graphs are kept, the latest used; they share their memory. Under a
    dispatch mode such as torch's FLOP counter, and for shapes whose recording ran out of memory, the function is called
    instead. So it is from then on where a recording fails otherwise, with a warning, and where a call runs out of
    memory, without the graphs, which keep theirs. Threads take turns. A copy starts without graphs.
    """

    _recording = threading.RLock()
    """A process records one graph at a time."""

    def __init__(self, function: Callable[..., tuple[Tensor, ...]], *, warm_ups: int = 2, most: int = 64) -> None:
        self._function, self._warm_ups, self._most = function, warm_ups, most
        self._uses: dict[Hashable, int] = {}
        self._graphs: OrderedDict[Hashable, tuple[Any, list[Tensor | None], tuple[Tensor, ...]]] = OrderedDict()
        self._too_large: set[Hashable] = set()
        self._records = True
        self._captures: dict[Any, tuple[Any, Any]] = {}
        self._last: Any = None
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(CudaGraphs, warm_ups=self._warm_ups, most=self._most), (self._function,)

    def __call__(self, key: Hashable, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        """The function of `key` and the inputs; an input may be None."""
        import torch

        if is_observed():
            return self._function(key, *inputs)
        shapes = tuple(None if one is None else (tuple(one.shape), one.dtype, one.device) for one in inputs)
        place = (key, shapes)
        with self._lock:
            try:
                if self._has_graph(place, key, inputs):
                    return self._replay(place, inputs)
                return self._function(key, *inputs)
            except torch.cuda.OutOfMemoryError:
                if not self._graphs:
                    raise
            # Outside of the handler, which keeps what the failed call has computed.
            self._records = False
            self._graphs.clear()
            torch.cuda.empty_cache()
            return self._function(key, *inputs)

    def _has_graph(self, place: Hashable, key: Hashable, inputs: tuple[Tensor | None, ...]) -> bool:
        """Whether there is one, which is recorded now if it is time."""
        import torch

        if place in self._graphs or not self._records:
            return place in self._graphs
        self._uses[place] = self._uses.get(place, 0) + 1
        if len(self._uses) > 16 * self._most:  # shapes that seldom come back
            del self._uses[next(one for one in self._uses if one != place and one not in self._graphs)]
        if self._uses[place] <= self._warm_ups or place in self._too_large:
            return False
        try:
            self._record(place, key, inputs)
        except RuntimeError as error:
            # The end of a recording that has failed may fail, too.
            if any(isinstance(one, torch.cuda.OutOfMemoryError) for one in (error, error.__context__)):
                self._too_large.add(place)
            else:
                self._records = False
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                warnings.warn(f"calls are not replayed as CUDA graphs ({reason})", RunWarning, stacklevel=4)
            renew_generator(next(one.device for one in inputs if one is not None))
        return place in self._graphs

    def _replay(self, place: Hashable, inputs: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
        self._graphs.move_to_end(place)
        graph, static, results = self._graphs[place]
        self._wait_for_last(results)
        for target, one in zip(static, inputs, strict=True):
            if target is not None and one is not None:
                target.copy_(one)
        graph.replay()
        return tuple(result.clone() for result in results)

    def _wait_for_last(self, results: tuple[Tensor, ...]) -> None:
        """Another stream, such as that of another thread, may still use the memory that graphs share."""
        import torch

        if results[0].is_cuda:
            stream = torch.cuda.current_stream(results[0].device)
            if self._last is not None and self._last != stream:
                stream.wait_stream(self._last)
            self._last = stream

    def _record(self, place: Hashable, key: Hashable, inputs: tuple[Tensor | None, ...]) -> None:
        import torch

        device = next(one.device for one in inputs if one is not None)
        with self._recording, torch.cuda.device(device):
            # A stream of this GPU: torch's own is on the one where a graph was recorded first.
            if device not in self._captures:
                stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
                self._captures[device] = torch.cuda.graph_pool_handle(), stream
            pool, stream = self._captures[device]
            static = [None if one is None else one.clone() for one in inputs]
            graph: Any = torch.cuda.CUDAGraph()
            torch.cuda.synchronize(device)
            before = torch.cuda.current_stream(device)
            try:
                # Other threads may ask for memory meanwhile.
                with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                    results = self._function(key, *static)
            finally:
                torch.cuda.set_stream(before)  # a recording that fails may end without setting it again
        self._graphs[place] = graph, static, results
        while len(self._graphs) > self._most:
            earliest, _ = self._graphs.popitem(last=False)
            del self._uses[earliest]
