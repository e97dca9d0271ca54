"""ResNet12, the backbone of most few-shot papers, and its variants.

Oreshkin, Rodriguez and Lacoste, TADAM, NeurIPS 2018; Lee et al., Meta-Learning with Differentiable Convex Optimization,
CVPR 2019 (widths 64, 160, 320, 640 and DropBlock); Sun et al., Meta-Transfer Learning for Few-Shot Learning, CVPR 2019.
DropBlock: Ghiasi, Lin and Le, DropBlock: a regularization method for convolutional networks, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.kernels.fused_norm import FusedNorm, is_plain

WIDTHS = (64, 160, 320, 640)
SLOPE = 0.1
DROP_STEPS = 40_000  # training steps over which the share that is dropped grows to its full size


class DropBlock(nn.Module):
    """Drops squares of `size` pixels from maps (n, C, h, w) in training; the share grows with `step` to `rate`.

    The training loop sets `step` (`set_training_step`). Kept values are scaled by all / kept.
    """

    share: Tensor

    def __init__(self, rate: float, size: int) -> None:
        super().__init__()
        self.rate, self.size, self.step = rate, size, 0
        # A tensor, so that a recorded step sees what it becomes.
        self.register_buffer("share", torch.zeros((), dtype=torch.float64), persistent=False)

    def start_step(self, step: int) -> None:
        """Say which training step, from 0, comes next."""
        self.step = step
        if self.rate:
            self.share.fill_(self.rate * min(1.0, step / DROP_STEPS))

    def forward(self, maps: Tensor) -> Tensor:
        """The maps, in training with squares of zeros."""
        if not self.training or self.rate == 0 or self.step == 0:
            return maps
        height, width = maps.shape[2:]
        size = min(self.size, height, width)
        # The chance that a position is the corner of a square, so that `rate` of all positions are dropped.
        chance = self.share / size**2 * height * width / ((height - size + 1) * (width - size + 1))
        corners = torch.rand(*maps.shape[:2], height - size + 1, width - size + 1, device=maps.device) < chance
        dropped = functional.max_pool2d(functional.pad(corners.to(maps.dtype), [size - 1] * 4), size, 1)
        kept = 1 - dropped
        return maps * kept * (kept.numel() / kept.sum().clamp(min=1))


def set_training_step(network: nn.Module, step: int) -> None:
    """Tell every DropBlock of a network which training step, from 0, comes next."""
    for module in network.modules():
        if isinstance(module, DropBlock):
            module.start_step(step)


class Block(nn.Module):
    """Three 3 x 3 convolutions beside a 1 x 1 shortcut, then max pooling.

    `pool` False leaves the pooling out; `shortcut` False does not add the shortcut, whose parameters remain.
    """

    fused_norms = False
    """Whether a training step on a GPU normalises, activates and pools in one (`fuse_norms`)."""

    def __init__(self, inputs: int, width: int, *, pool: bool, dropping: nn.Module, shortcut: bool = True) -> None:
        super().__init__()
        for number, channels in enumerate((inputs, width, width), start=1):
            self.add_module(f"conv{number}", nn.Conv2d(channels, width, 3, padding=1, bias=False))
            self.add_module(f"bn{number}", nn.BatchNorm2d(width))
        self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width))
        self.dropping, self.pool, self.shortcut = dropping, pool, shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / 2, w / 2) of (n, inputs, h, w)."""
        norms = [self.get_submodule(f"bn{number}") for number in (1, 2, 3)]
        if self._fits(x, norms):
            return self.dropping(self._normalise_at_once(x, norms))  # type: ignore[no-any-return]
        y = x
        for number, norm in enumerate(norms, start=1):
            y = norm(self.get_submodule(f"conv{number}")(y))
            y = functional.leaky_relu(y, SLOPE) if number < 3 else y
        y = functional.leaky_relu(y + self.downsample(x) if self.shortcut else y, SLOPE)
        return self.dropping(functional.max_pool2d(y, 2) if self.pool else y)  # type: ignore[no-any-return]

    def _fits(self, x: Tensor, norms: Sequence[nn.Module]) -> bool:
        """Whether normalisations, activations and pooling can be taken in one."""
        if not self.fused_norms:
            return False
        if not self.shortcut:
            return FusedNorm.fits(x, *norms)
        whole = is_plain(self.downsample, nn.Sequential) and len(self.downsample) == 2
        return whole and FusedNorm.fits(x, *norms, self.downsample[1])

    def _normalise_at_once(self, x: Tensor, norms: Sequence[Any]) -> Tensor:
        y = x
        for number, norm in enumerate(norms[:2], start=1):
            y = FusedNorm.apply(self.get_submodule(f"conv{number}")(y), norm, slope=SLOPE, pool=False)
        y = self.get_submodule("conv3")(y)
        other: dict[str, Any] = {}
        if self.shortcut:
            convolution, other_norm = self.downsample
            other = {"other": convolution(x), "other_norm": other_norm}
        return FusedNorm.apply(y, norms[2], slope=SLOPE, pool=self.pool, **other)


class ResNet12(nn.Module):
    """Four stages of one block: 84 pixels give maps of 640 x 5 x 5; their means are the vectors (n, 640).

    `drop_rate` is that of dropout after stages 1 and 2 and of DropBlock (squares of 5) after stages 3 and 4. Without
    `pool_last_two` stages 3 and 4 are not pooled (21 x 21), without `pool_last` stage 4 is not (10 x 10). With `window`
    n the vectors are the flattened means of all n x n windows: the released code has 5, which differs from the mean
    for maps of another size.
    """

    def __init__(
        self,
        output: str = "vectors",
        *,
        widths: Sequence[int] = WIDTHS,
        drop_rate: float = 0.1,
        pool_last_two: bool = True,
        pool_last: bool = True,
        last_shortcut: bool = True,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.output, self.channels, self.window = output, widths[-1], window
        for number, (inputs, width) in enumerate(zip((3, *widths), widths, strict=False), start=1):
            dropping = nn.Dropout(drop_rate) if number < 3 else DropBlock(drop_rate, 5)
            pool = number < 3 or (pool_last_two and (number < 4 or pool_last))
            block = Block(inputs, width, pool=pool, dropping=dropping, shortcut=number < 4 or last_shortcut)
            self.add_module(f"layer{number}", nn.Sequential(block))
        initialise(self, "leaky_relu")

    def maps(self, images: Tensor) -> Tensor:
        """Maps (n, C, h, w) of images (n, 3, H, W)."""
        x = images
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
        return x

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, C), with `window` (n, C k), or maps (n, C, h, w)."""
        x = self.maps(images)
        if self.output == "maps":
            return x
        return x.mean((2, 3)) if self.window is None else functional.avg_pool2d(x, self.window, 1).flatten(1)


class ResNet12NoLastShortcut(ResNet12):
    """ResNet12 of widths 64, 128, 256, 512 whose last block has no shortcut."""

    def __init__(
        self,
        output: str = "vectors",
        *,
        drop_rate: float = 0.1,
        pool_last_two: bool = True,
        window: int | None = None,
    ) -> None:
        widths = (64, 128, 256, 512)
        super().__init__(
            output,
            widths=widths,
            drop_rate=drop_rate,
            pool_last_two=pool_last_two,
            last_shortcut=False,
            window=window,
        )


class AppendixBlock(nn.Module):
    """A block as MetaCoCo's appendix words it: pooling after each of the three convolutions, then DropBlock."""

    def __init__(self, inputs: int, width: int, drop_rate: float) -> None:
        super().__init__()
        for number, channels in enumerate((inputs, width, width), start=1):
            self.add_module(f"conv{number}", nn.Conv2d(channels, width, 3, padding=1, bias=False))
            self.add_module(f"bn{number}", nn.BatchNorm2d(width))
        self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width))
        self.dropping = DropBlock(drop_rate, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / 8, w / 8), at least 1 x 1, of (n, inputs, h, w)."""
        y, shortcut = x, self.downsample(x)
        for number in (1, 2, 3):
            y = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(y))
            y = functional.leaky_relu(y, SLOPE) if number < 3 else y
            # Rounded up: twelve poolings of 84 pixels would else leave nothing.
            y, shortcut = (functional.max_pool2d(part, 2, ceil_mode=True) for part in (y, shortcut))
        return self.dropping(functional.leaky_relu(y + shortcut, SLOPE))  # type: ignore[no-any-return]


class ResNet12Appendix(nn.Module):
    """ResNet12 in the words of MetaCoCo's appendix, which no implementation in use follows; maps of 640 x 1 x 1."""

    def __init__(self, output: str = "vectors", *, widths: Sequence[int] = WIDTHS, drop_rate: float = 0.1) -> None:
        super().__init__()
        self.output, self.channels = output, widths[-1]
        for number, (inputs, width) in enumerate(zip((3, *widths), widths, strict=False), start=1):
            self.add_module(f"layer{number}", nn.Sequential(AppendixBlock(inputs, width, drop_rate)))
        initialise(self, "leaky_relu")

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, 640) or maps (n, 640, h, w)."""
        x = images
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3)) if self.output == "vectors" else x


class ScaledConvolution(nn.Conv2d):
    """A convolution whose kernel is multiplied by `mtl_weight` (out, in, 1, 1) and whose bias is shifted by `mtl_bias`.

    Of meta-transfer learning, which trains scale and shift and keeps the rest fixed (`Mtl.start_stage`).
    """

    def __init__(self, inputs: int, outputs: int, size: int, *, stride: int = 1, bias: bool = False) -> None:
        super().__init__(inputs, outputs, size, stride=stride, padding=size // 2, bias=bias)
        self.mtl_weight = nn.Parameter(torch.ones(outputs, inputs, 1, 1))
        self.mtl_bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    @classmethod
    def like(cls, plain: nn.Conv2d) -> ScaledConvolution:
        """A scaled convolution with the weights of a plain one, of any size, stride and padding."""
        made = cls(plain.in_channels, plain.out_channels, plain.kernel_size[0], bias=plain.bias is not None)
        made.stride, made.padding = plain.stride, plain.padding
        made.weight = plain.weight
        made.bias = plain.bias
        return made

    def forward(self, x: Tensor) -> Tensor:
        """The convolution with scaled kernel and shifted bias."""
        bias = None if self.bias is None or self.mtl_bias is None else self.bias + self.mtl_bias
        return functional.conv2d(x, self.weight * self.mtl_weight, bias, self.stride, self.padding)


def make_convolution(
    inputs: int, outputs: int, size: int, *, scaled: bool, stride: int = 1, bias: bool = False
) -> nn.Conv2d:
    """A convolution that keeps the size of maps but for its stride, `scaled` or plain."""
    if scaled:
        return ScaledConvolution(inputs, outputs, size, stride=stride, bias=bias)
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=bias)


class BasicMtlBlock(nn.Module):
    """Two 3 x 3 convolutions, `scaled` or plain, beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, *, scaled: bool) -> None:
        super().__init__()
        self.conv1 = make_convolution(inputs, width, 3, scaled=scaled, stride=stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = make_convolution(width, width, 3, scaled=scaled)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != width:
            shortcut = make_convolution(inputs, width, 1, scaled=scaled, stride=stride)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / stride, w / stride)."""
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet12Mtl(nn.Module):
    """The network of meta-transfer learning: a stem and three stages of four blocks; 80 pixels give 640 numbers.

    Average pooling of 10 x 10 with stride 1: 84 pixels give 4 x 640 numbers. Without `scaled` convolutions are plain.
    """

    def __init__(self, output: str = "vectors", *, scaled: bool = True) -> None:
        super().__init__()
        self.output, self.channels = output, 640
        self.conv1 = make_convolution(3, 80, 3, scaled=scaled, bias=True)
        self.bn1 = nn.BatchNorm2d(80)
        for number, (inputs, width) in enumerate(((80, 160), (160, 320), (320, 640)), start=1):
            blocks = [
                BasicMtlBlock(inputs if first else width, width, 2 if first else 1, scaled=scaled)
                for first in (1, 0, 0, 0)
            ]
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        initialise(self, "relu")

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, D) or maps (n, 640, h, w)."""
        x = functional.relu(self.bn1(self.conv1(images)))
        for number in (1, 2, 3):
            x = self.get_submodule(f"layer{number}")(x)
        if self.output == "maps":
            return x
        return functional.avg_pool2d(x, min(10, *x.shape[2:]), 1).flatten(1)


def initialise(network: nn.Module, nonlinearity: str) -> None:
    """Kaiming's normal initialisation (fan out) of the convolutions of a network."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity=nonlinearity)  # type: ignore[arg-type]
