"""WRN-28-10. Zagoruyko and Komodakis, Wide Residual Networks, BMVC 2016."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.backbones.resnet12 import initialise


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
