"""EfficientNet-Lite0 features: MobileNet blocks without squeeze-and-excitation, ReLU6, trained on ImageNet.

Tan and Le, "EfficientNet: Rethinking model scaling for convolutional neural networks", ICML 2019; the Lite
variant is of the TensorFlow authors, whose padding ("same", the odd pixel after) and input scale are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.extras import require
from hardlook.models.roles import Features, Image
from hardlook.models.torch_inference import exact_inference
from hardlook.models.weights.install import locate_weights
from hardlook.networks.loading import load_into, load_state_dict

if TYPE_CHECKING:
    from torch import Tensor, nn

    Layer = Callable[[Tensor], Tensor]
    Inference = Callable[[Tensor, tuple[int, ...]], tuple[Tensor, list[Tensor]]]

STAGES = (
    *((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80)),
    *((3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320)),
)
"""(repeats, kernel, stride, expansion, channels) of the stages."""

LAYERS = {"stride8": 4, "stride16": 10, "stride32": 15, "head": 16}
"""Which block's output is the map: 40, 112, 320 and 1280 channels."""

DIMENSION = 1280
GPU_BATCH = 128


class EfficientNetLite0:
    """Vectors are the average of the last map, (N, 1280); maps are of the chosen layer.

    Images are squashed to `size` x `size` pixels, so a map (C, size / stride, size / stride) covers the whole
    image. `layer` is one of `LAYERS`, or several as `stride16+head`: each layer's vector in each cell gets length 1,
    the coarser grids are interpolated to the finest, and the channels are joined. `weights` is a state dict with the
    usual names (default: the installed `efficientnet-lite0`); `batch` images at a time pass the network, on a GPU 128.
    """

    def __init__(
        self, weights: Path | None = None, device: str = "cpu", size: int = 224, layer: str = "head", batch: int = 32
    ) -> None:
        require("torch", extra="torch")
        self._depths = parse_layers(layer, LAYERS)
        if size < 32:
            raise OptionError(f"size {size} leaves nothing of the image", remedy="size is at least 32 pixels")
        path = Path(weights) if weights else locate_weights("efficientnet-lite0")["efficientnet-lite0-57934424.pth"]
        self._network = build_network()
        load_into(self._network, load_state_dict(path))
        self._network.eval().requires_grad_(False).to(device)
        on_gpu = device.startswith("cuda")
        self._infer: Inference = self._network if on_gpu else fuse_network(self._network)
        # Few large batches keep a GPU busy; there a row has the same bits in each.
        self._size, self._batch = size, max(batch, GPU_BATCH) if on_gpu else batch
        self.device, self.dimension = device, DIMENSION
        self.weights_files: tuple[Path, ...] = (path,)

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, 1280) and one map (C, h, w) per image, float32."""
        maps: list[NDArray[np.float32]] = []
        vectors = [np.empty((0, DIMENSION), np.float32)]
        for start in range(0, len(images), self._batch):
            inputs = self._prepare(images[start : start + self._batch])
            with exact_inference():
                head, chosen = self._infer(inputs, self._depths)
                vectors.append(head.mean((2, 3)).cpu().numpy())
                maps.extend((chosen[0] if len(chosen) == 1 else join_maps(chosen)).cpu().numpy())
        return Features(np.concatenate(vectors), maps)

    def encode_vectors(self, images: Sequence[Image]) -> Features:
        """Vectors (N, 1280) alone: maps stay on the GPU."""
        vectors = [np.empty((0, DIMENSION), np.float32)]
        for start in range(0, len(images), self._batch):
            inputs = self._prepare(images[start : start + self._batch])
            with exact_inference():
                vectors.append(self._infer(inputs, ())[0].mean((2, 3)).cpu().numpy())
        return Features(np.concatenate(vectors))

    def prepare_inputs(self, images: Sequence[Image]) -> Tensor:
        """The input of the network, (N, 3, size, size) float32 on its device."""
        import torch

        if not self.device.startswith("cuda"):
            return torch.from_numpy(np.stack([prepare_image(image, self._size) for image in images])).to(self.device)
        return self._prepare(images)

    def _prepare(self, images: Sequence[Image]) -> Tensor:
        """As `prepare_inputs`, with channels last on a processor. A GPU gets bytes and makes floats of them."""
        import torch

        resized = np.stack([self.resize(image) for image in images])
        pixels = torch.from_numpy(resized).to(self.device).permute(0, 3, 1, 2).float()
        scaled = pixels.sub_(127).div_(128)
        return scaled.contiguous() if self.device.startswith("cuda") else scaled

    def resize(self, image: Image) -> Image:
        """The image at the network's size; to encode it gives the same features. Threads may call this."""
        return image if image.shape[:2] == (self._size, self._size) else resize_image(image, self._size)

    def copy_network(self) -> nn.Module:
        """A copy of the network for tuning, from `prepare_inputs` to vectors (N, 1280); this encoder stays as it is.

        Batch normalisation keeps its trained statistics: a few supports are too few for new ones.
        """
        from torch import nn

        class VectorNetwork(nn.Module):
            """The average of the last map as the only answer."""

            def __init__(self, network: nn.Module) -> None:
                super().__init__()
                self.network = network

            def forward(self, x: Tensor) -> Tensor:
                """(N, 3, S, S) to (N, 1280)."""
                head, _ = self.network(x, ())
                vectors: Tensor = head.mean((2, 3))
                return vectors

        return VectorNetwork(copy.deepcopy(self._network).requires_grad_(True)).eval()


def parse_layers(layer: str, layers: Mapping[str, int]) -> tuple[int, ...]:
    """The values in `layers` of the layer or layers that a name stands for, in the order of the name.

    >>> parse_layers("head", LAYERS), parse_layers("stride16+head", LAYERS)
    ((16,), (10, 16))
    """
    names = layer.split("+")
    unknown = [name for name in names if name not in layers]
    if unknown or len(set(names)) < len(names):
        what = f"no layer is called {unknown[0]!r}" if unknown else f"{layer!r} names a layer twice"
        raise OptionError(what, remedy=f"layer is one of {', '.join(layers)}, or several with + between them")
    return tuple(layers[name] for name in names)


def join_maps(maps: Sequence[Tensor]) -> Tensor:
    """Maps (N, C, h, w) of several grids as one (N, sum of C, finest h, finest w), each layer with the same weight."""
    import torch
    import torch.nn.functional as functional

    finest = max((one.shape[2], one.shape[3]) for one in maps)
    # Lengths first: layers differ in scale by a factor of ten, and the largest would decide every cosine alone.
    units = [functional.normalize(one, dim=1) for one in maps]
    return torch.cat([functional.interpolate(unit, size=finest, mode="bilinear") for unit in units], dim=1)


def prepare_image(image: Image, size: int) -> NDArray[np.float32]:
    """The network's input (3, size, size), scaled from 0..255 to about -1..1 as in its training.

    >>> prepare_image(np.full((4, 6, 3), 255, np.uint8), 32).shape
    (3, 32, 32)
    """
    resized = resize_image(image, size)
    return ((resized.astype(np.float32) - np.float32(127)) / np.float32(128)).transpose(2, 0, 1)


def resize_image(image: Image, size: int) -> Image:
    """The image squashed to (size, size, 3) uint8."""
    shrinks = min(image.shape[:2]) >= size
    resized = cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
    return np.asarray(resized, np.uint8)


def find_padding(conv: nn.Conv2d, x: Tensor) -> list[int]:
    """Pixels to add left, right, above and below (N, C, H, W), as TensorFlow's "same" does: the odd one goes last."""
    pads: list[int] = []
    for side in (x.shape[3], x.shape[2]):
        kernel, stride = conv.kernel_size[0], conv.stride[0]
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        pads += [total // 2, total - total // 2]
    return pads


def fuse_network(network: nn.Module) -> Inference:
    """The network of `build_network` for one image at a time on a processor: the same call, equal up to rounding.

    Batch normalisation is part of the weights, channels come last in memory, and convolutions of one pixel are matrix
    products: on one thread torch's own way takes half as long again or more (docs/benchmarks.md).
    """
    import torch
    import torch.nn.functional as functional

    def fold(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
        mean, variance = norm.running_mean, norm.running_var
        if mean is None or variance is None:
            raise ValueError("expected batch normalisation with trained statistics")
        scale = norm.weight.double() / (variance.double() + norm.eps).sqrt()
        weight = conv.weight.double() * scale[:, None, None, None]
        return weight.float().detach(), (norm.bias.double() - mean.double() * scale).float().detach()

    def make_pointwise(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Layer:
        weight, bias = fold(conv, norm)
        matrix = weight[:, :, 0, 0].contiguous()
        return lambda x: functional.linear(x.permute(0, 2, 3, 1), matrix, bias).permute(0, 3, 1, 2)

    def make_spatial(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Layer:
        weight, bias = fold(conv, norm)
        weight = weight.contiguous(memory_format=torch.channels_last)

        def apply(x: Tensor) -> Tensor:
            left, right, top, bottom = pads = find_padding(conv, x)
            if left == right and top == bottom:  # without a copy
                return functional.conv2d(x, weight, bias, conv.stride, (top, left), groups=conv.groups)
            return functional.conv2d(functional.pad(x, pads), weight, bias, conv.stride, groups=conv.groups)

        return apply

    def make_block(block: Any) -> Layer:
        expand = make_pointwise(block._expand_conv, block._bn0) if block.expands else None
        spatial = make_spatial(block._depthwise_conv, block._bn1)
        project = make_pointwise(block._project_conv, block._bn2)

        def apply(x: Tensor) -> Tensor:
            y = expand(x).clamp_(0, 6) if expand else x
            y = project(spatial(y).clamp_(0, 6))
            return y.add_(x) if block.shortcut else y

        return apply

    parts: Any = network
    stem, head = make_spatial(parts._conv_stem, parts._bn0), make_pointwise(parts._conv_head, parts._bn1)
    blocks = [make_block(block) for block in parts._blocks]

    def infer(x: Tensor, depths: tuple[int, ...]) -> tuple[Tensor, list[Tensor]]:
        x = stem(x.contiguous(memory_format=torch.channels_last)).clamp_(0, 6)
        outputs = {}
        for number, block in enumerate(blocks):
            x = block(x)
            if number in depths:
                outputs[number] = x
        outputs[len(blocks)] = last = head(x).clamp_(0, 6)
        return last, [outputs[depth].contiguous() for depth in depths]

    return infer


def build_network() -> nn.Module:
    """The network with random weights; its call takes (N, 3, S, S) and depths: see its `forward`."""
    import torch.nn.functional as functional
    from torch import nn

    def norm(channels: int) -> nn.BatchNorm2d:
        return nn.BatchNorm2d(channels, eps=1e-3)

    class SameConv(nn.Conv2d):
        """A convolution padded as TensorFlow does: the output is ceil(input / stride), the odd pixel goes last."""

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to (N, C', ceil(H / stride), ceil(W / stride))."""
            return super().forward(functional.pad(x, find_padding(self, x)))

    class Block(nn.Module):
        """Expand, filter by depth, project; with a shortcut where shape allows."""

        def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
            super().__init__()
            wide = inputs * expansion
            self.expands = expansion > 1
            self.shortcut = stride == 1 and inputs == outputs
            if self.expands:
                self._expand_conv, self._bn0 = nn.Conv2d(inputs, wide, 1, bias=False), norm(wide)
            self._depthwise_conv = SameConv(wide, wide, kernel, stride, groups=wide, bias=False)
            self._bn1 = norm(wide)
            self._project_conv, self._bn2 = nn.Conv2d(wide, outputs, 1, bias=False), norm(outputs)

        def forward(self, x: Tensor) -> Tensor:
            """(N, inputs, H, W) to (N, outputs, H / stride, W / stride)."""
            y = functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
            y = functional.relu6(self._bn1(self._depthwise_conv(y)))
            y = self._bn2(self._project_conv(y))
            out: Tensor = x + y if self.shortcut else y
            return out

    class Network(nn.Module):
        """Stem, sixteen blocks, head and (unused here) the ImageNet classifier."""

        def __init__(self) -> None:
            super().__init__()
            self._conv_stem, self._bn0 = SameConv(3, 32, 3, 2, bias=False), norm(32)
            self._blocks, inputs = nn.ModuleList(), 32
            for repeats, kernel, stride, expansion, outputs in STAGES:
                for repeat in range(repeats):
                    self._blocks.append(Block(inputs, outputs, kernel, stride if repeat == 0 else 1, expansion))
                    inputs = outputs
            self._conv_head, self._bn1 = nn.Conv2d(inputs, DIMENSION, 1, bias=False), norm(DIMENSION)
            self._fc = nn.Linear(DIMENSION, 1000)

        def forward(self, x: Tensor, depths: tuple[int, ...]) -> tuple[Tensor, list[Tensor]]:
            """The last map (N, 1280, S/32, S/32) and the outputs of the chosen blocks (the last map at 16)."""
            x = functional.relu6(self._bn0(self._conv_stem(x)))
            outputs = {}
            for number, block in enumerate(self._blocks):
                x = block(x)
                if number in depths:
                    outputs[number] = x
            head = functional.relu6(self._bn1(self._conv_head(x)))
            outputs[len(self._blocks)] = head
            return head, [outputs[depth] for depth in depths]

    return Network()
