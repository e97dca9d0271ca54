"""Residual networks: ResNet10, ResNet18, ResNet50 and the wide WRN-28-10.

He et al., Deep Residual Learning for Image Recognition, CVPR 2016. ResNet10 is that of Chen et al., A Closer Look at
Few-shot Classification, ICLR 2019, with its parameter names; ResNet50 has torchvision's. WRN-28-10: Zagoruyko and
Komodakis, Wide Residual Networks, BMVC 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.backbones.resnet12 import initialise

WIDTHS = (64, 128, 256, 512)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut, with torchvision's parameter names."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / stride, w / stride)."""
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """ResNet18 for small images: a 3 x 3 stem without pooling; 84 pixels give maps of 512 x 11 x 11.

    With `last_stride` 1 they are 21 x 21.
    """

    def __init__(self, output: str = "vectors", *, last_stride: int = 2) -> None:
        super().__init__()
        self.output, self.channels = output, 512
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        strides = (1, 2, 2, last_stride)
        for number, (inputs, width, stride) in enumerate(zip((64, *WIDTHS), WIDTHS, strides, strict=False), start=1):
            self.add_module(
                f"layer{number}", nn.Sequential(BasicBlock(inputs, width, stride), BasicBlock(width, width, 1))
            )
        initialise(self, "relu")

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, 512) or maps (n, 512, h, w)."""
        x = functional.relu(self.bn1(self.conv1(images)))
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3)) if self.output == "vectors" else x


class TrunkBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut, with the names of A Closer Look at Few-shot Classification."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.C1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.BN1 = nn.BatchNorm2d(width)
        self.C2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.BN2 = nn.BatchNorm2d(width)
        if inputs != width:
            self.shortcut = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.BNshortcut = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / stride, w / stride)."""
        y = self.BN2(self.C2(functional.relu(self.BN1(self.C1(x)))))
        return functional.relu(y + (self.BNshortcut(self.shortcut(x)) if hasattr(self, "shortcut") else x))


def build_trunk(blocks: int, strides: Sequence[int]) -> nn.Sequential:
    """A 7 x 7 stem with pooling and four stages of `blocks` blocks, as one sequence."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    for inputs, width, stride in zip((64, *WIDTHS), WIDTHS, strides, strict=False):
        for number in range(blocks):
            layers.append(TrunkBlock(width if number else inputs, width, 1 if number else stride))
    return nn.Sequential(*layers)


class ResNet10(nn.Module):
    """ResNet10: a 7 x 7 stem with pooling and four stages of one block; 224 pixels give maps of 512 x 7 x 7."""

    def __init__(self, output: str = "vectors") -> None:
        super().__init__()
        self.output, self.channels = output, 512
        self.trunk = build_trunk(1, (1, 2, 2, 2))
        initialise(self, "relu")

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, 512) or maps (n, 512, h, w)."""
        x: Tensor = self.trunk(images)
        return x.mean((2, 3)) if self.output == "vectors" else x


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut; the 3 x 3 one has the stride."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != 4 * width:
            shortcut = nn.Conv2d(inputs, 4 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, 4 width, h / stride, w / stride)."""
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(functional.relu(self.bn2(self.conv2(y)))))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """ResNet50 with torchvision's names; 224 pixels give maps of 2,048 x 7 x 7."""

    def __init__(self, output: str = "vectors") -> None:
        super().__init__()
        self.output, self.channels = output, 2048
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for number, (width, blocks) in enumerate(zip(WIDTHS, (3, 4, 6, 3), strict=True), start=1):
            stage = []
            for block in range(blocks):
                stage.append(Bottleneck(inputs, width, 2 if block == 0 and number > 1 else 1))
                inputs = 4 * width
            self.add_module(f"layer{number}", nn.Sequential(*stage))
        initialise(self, "relu")

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, 2048) or maps (n, 2048, h, w)."""
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(images))), 3, 2, 1)
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3)) if self.output == "vectors" else x


class WideBlock(nn.Module):
    """Two pre-activated 3 x 3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.convShortcut = None if inputs == width else nn.Conv2d(inputs, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / stride, w / stride)."""
        active = functional.relu(self.bn1(x))
        y = self.conv2(functional.relu(self.bn2(self.conv1(active))))
        return y + (x if self.convShortcut is None else self.convShortcut(active))  # type: ignore[no-any-return]


class WideGroup(nn.Module):
    """Blocks of one width; the first has the stride."""

    def __init__(self, blocks: int, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        first = WideBlock(inputs, width, stride)
        self.layer = nn.Sequential(first, *(WideBlock(width, width, 1) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, width, h / stride, w / stride)."""
        return self.layer(x)  # type: ignore[no-any-return]


class WideResNet(nn.Module):
    """WRN of `depth` layers, `widening` times as wide; 84 pixels give maps of 640 x 21 x 21.

    Vectors are means over the map; the released few-shot code takes maxima although it calls them averages:
    `pooling="max"`.
    """

    def __init__(self, output: str = "vectors", *, depth: int = 28, widening: int = 10, pooling: str = "mean") -> None:
        super().__init__()
        self.output, self.channels, self.pooling = output, 64 * widening, pooling
        blocks, width = (depth - 4) // 6, 16 * widening
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.block1 = WideGroup(blocks, 16, width, 1)
        self.block2 = WideGroup(blocks, width, 2 * width, 2)
        self.block3 = WideGroup(blocks, 2 * width, 4 * width, 2)
        self.bn1 = nn.BatchNorm2d(4 * width)
        initialise(self, "relu")

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, C) or maps (n, C, h, w)."""
        x = functional.relu(self.bn1(self.block3(self.block2(self.block1(self.conv1(images))))))
        if self.output == "maps":
            return x
        return x.amax((2, 3)) if self.pooling == "max" else x.mean((2, 3))
