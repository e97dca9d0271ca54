"""HRNet with object-contextual representations, as RITM and FocalClick use it.

Sun et al., Deep High-Resolution Representation Learning, CVPR 2019; Yuan et al., Object-Contextual Representations,
ECCV 2020. Four branches at 1/4, 1/8, 1/16 and 1/32 of the picture exchange what they see after every module; one logit
per pixel comes from all of them, once without (`aux`) and once with the context of the object that `aux` found.

Pictures of different sizes can go through it in one padded batch (`Frame`): padding is kept at zero before every
convolution that would see it, and resizes and sums know each picture's own size, so each has the answer that it
would have alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

Size = tuple[int, int]


class Frame:
    """Which part of a padded batch belongs to the pictures: the top left `sizes` (B, 2) of (H, W), at any stride."""

    def __init__(self, sizes: Tensor, padded: Size) -> None:
        self._sizes: dict[Size, Tensor] = {}
        self._masks: dict[Size, Tensor] = {}
        self._limits: dict[tuple[Size, torch.dtype], Tensor] = {}
        self._weights: dict[tuple[Size, Size], tuple[Tensor, Tensor]] = {}
        rows, columns = padded
        while (rows, columns) not in self._sizes:
            self._sizes[rows, columns] = sizes
            # A convolution of stride 2 rounds up.
            rows, columns, sizes = (rows + 1) // 2, (columns + 1) // 2, (sizes + 1) // 2

    def sizes(self, x: Tensor) -> Tensor:
        """(B, 2) heights and widths of the pictures in maps (B, C, h, w)."""
        return self._sizes[x.shape[2], x.shape[3]]

    def mask(self, x: Tensor) -> Tensor:
        """(B, 1, h, w) bool: where maps (B, C, h, w) belong to a picture."""
        key = (x.shape[2], x.shape[3])
        if key not in self._masks:
            inside = [
                torch.arange(length, device=x.device) < self._sizes[key][:, axis, None]
                for axis, length in enumerate(key)
            ]
            self._masks[key] = (inside[0][:, :, None] & inside[1][:, None, :])[:, None]
        return self._masks[key]

    def limit(self, x: Tensor) -> Tensor:
        """(B, 1, h, w) of the maps' type: infinity inside each picture, 0 in the padding."""
        key = (x.shape[2], x.shape[3]), x.dtype
        if key not in self._limits:
            mask = self.mask(x)
            self._limits[key] = torch.zeros_like(mask, dtype=x.dtype).masked_fill_(mask, float("inf"))
        return self._limits[key]

    def clear(self, x: Tensor) -> Tensor:
        """The maps with zeros for padding, which a picture alone would have there."""
        return x * self.mask(x)

    def resize(self, x: Tensor, size: Size) -> Tensor:
        """Each picture resized on its own to what it has at `size`, bilinear with the corners' centres kept."""
        key = ((x.shape[2], x.shape[3]), size)
        if key not in self._weights:
            before, after = self._sizes[key[0]], self._sizes[size]
            self._weights[key] = (
                _weights(before[:, 0], after[:, 0], key[0][0], size[0]),
                _weights(before[:, 1], after[:, 1], key[0][1], size[1]),
            )
        # Not in half precision, which would round where the pixels lie.
        exact = torch.promote_types(x.dtype, torch.float32)
        down, across = (weights.to(exact)[:, None] for weights in self._weights[key])
        with torch.autocast(x.device.type, enabled=False):
            return (down @ x.to(exact) @ across.mT).to(x.dtype)


def _weights(before: Tensor, after: Tensor, length: int, new_length: int) -> Tensor:
    """(B, new_length, length) that interpolate sides of `before` pixels to `after`; float64."""
    places = torch.arange(new_length, device=before.device, dtype=torch.float64)
    steps = ((before - 1) / (after - 1).clamp(min=1).double()).clamp(min=0)
    at = (places * steps[:, None]).minimum((before - 1).double()[:, None])
    return (1 - (at[:, :, None] - torch.arange(length, device=before.device)).abs()).clamp(min=0)


def through(layer: nn.Module, x: Tensor, frame: Frame | None) -> Tensor:
    """What a layer makes of maps (B, C, h, w); padding is cleared before each convolution that sees beyond a pixel."""
    if isinstance(layer, nn.Sequential):
        for part in layer:
            x = through(part, x, frame)
        return x
    if isinstance(layer, Bottleneck | BasicBlock):
        return layer(x, frame)  # type: ignore[no-any-return]
    if frame is not None and isinstance(layer, nn.Conv2d) and layer.kernel_size != (1, 1):
        x = frame.clear(x)
    return layer(x)  # type: ignore[no-any-return]


def resize(x: Tensor, size: Size, frame: Frame | None) -> Tensor:
    """Maps (B, C, h, w) at another size, bilinear with the corners' centres kept."""
    if frame is not None:
        return frame.resize(x, size)
    return functional.interpolate(x, size=size, mode="bilinear", align_corners=True)


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


def _normalised(inputs: int, outputs: int, *, stride: int = 1, active: bool = True) -> nn.Sequential:
    layers = [_convolution(inputs, outputs, stride), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU()] if active else []))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions with four times the channels at the end, beside a shortcut."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _convolution(width, width), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = None
        if inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor, frame: Frame | None = None) -> Tensor:
        """(B, 4 width, h, w) of (B, inputs, h, w)."""
        found = functional.relu(self.bn1(self.conv1(x)))
        found = functional.relu(self.bn2(through(self.conv2, found, frame)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(self.bn3(self.conv3(found)) + shortcut)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _convolution(width, width), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _convolution(width, width), nn.BatchNorm2d(width)

    def forward(self, x: Tensor, frame: Frame | None = None) -> Tensor:
        """(B, width, h, w) of the same shape."""
        found = functional.relu(self.bn1(through(self.conv1, x, frame)))
        return functional.relu(self.bn2(through(self.conv2, found, frame)) + x)


class ExchangeModule(nn.Module):
    """Blocks on each branch, then every branch gets the sum of all, resized to it."""

    def __init__(self, widths: Sequence[int], blocks: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(BasicBlock(width) for _ in range(blocks))) for width in widths)
        self.fuse_layers = nn.ModuleList(
            nn.ModuleList(_exchange(widths, source, target) for source in range(len(widths)))
            for target in range(len(widths))
        )

    def forward(self, branches: Sequence[Tensor], frame: Frame | None = None) -> list[Tensor]:
        """Maps (B, width, h, w) of all branches, finest first."""
        inside = [through(blocks, x, frame) for blocks, x in zip(self.branches, branches, strict=True)]
        found = []
        for target, layers in enumerate(self.fuse_layers):
            size = (inside[target].shape[2], inside[target].shape[3])
            total: Tensor | None = None
            for source, layer in enumerate(layers.children()):
                moved = through(layer, inside[source], frame)
                if source > target:
                    moved = resize(moved, size, frame)
                total = moved if total is None else total + moved
            assert total is not None
            found.append(functional.relu(total))
        return found


def _exchange(widths: Sequence[int], source: int, target: int) -> nn.Module:
    if source == target:
        return nn.Identity()
    if source > target:
        return nn.Sequential(nn.Conv2d(widths[source], widths[target], 1, bias=False), nn.BatchNorm2d(widths[target]))
    steps = [_normalised(widths[source], widths[source], stride=2) for _ in range(target - source - 1)]
    return nn.Sequential(*steps, _normalised(widths[source], widths[target], stride=2, active=False))


class ObjectContext(nn.Module):
    """What each pixel learns of the object's one vector.

    Attention over one object is 1 whatever query and key are: `f_pixel` and `f_object` are kept for their parameters.
    """

    def __init__(self, channels: int, keys: int) -> None:
        super().__init__()
        self.f_pixel = nn.Sequential(*_pointwise(channels, keys), *_pointwise(keys, keys))
        self.f_object = nn.Sequential(*_pointwise(channels, keys), *_pointwise(keys, keys))
        self.f_down = nn.Sequential(*_pointwise(channels, keys))
        self.f_up = nn.Sequential(*_pointwise(keys, channels))

    def forward(self, pixels: Tensor, object_vector: Tensor) -> Tensor:
        """(B, C, h, w) context of pixels (B, C, h, w) and the object (B, C, 1, 1)."""
        found: Tensor = self.f_up(self.f_down(object_vector))
        if self.training:
            # Their running statistics are part of a checkpoint.
            self.f_pixel(pixels), self.f_object(object_vector)
        return found.expand(-1, -1, *pixels.shape[2:])


def _pointwise(inputs: int, outputs: int) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inputs, outputs, 1, bias=False), nn.Sequential(nn.BatchNorm2d(outputs), nn.ReLU())


class ObjectContextHead(nn.Module):
    """Pixels joined with their context."""

    def __init__(self, channels: int, keys: int, dropout: float = 0.05) -> None:
        super().__init__()
        self.object_context_block = ObjectContext(channels, keys)
        self.conv_bn_dropout = nn.Sequential(*_pointwise(2 * channels, channels), nn.Dropout2d(dropout))

    def forward(self, pixels: Tensor, object_vector: Tensor) -> Tensor:
        """(B, C, h, w) of pixels (B, C, h, w) and the object (B, C, 1, 1)."""
        context = self.object_context_block(pixels, object_vector)
        found: Tensor = self.conv_bn_dropout(torch.cat([context, pixels], 1))
        return found


def gather_object(pixels: Tensor, logits: Tensor, frame: Frame | None = None) -> Tensor:
    """(B, C, 1, 1): pixels (B, C, h, w) weighted by the softmax of logits (B, 1, h, w) over all of them."""
    if frame is not None:
        logits = logits.masked_fill(~frame.mask(logits), float("-inf"))
    weights = logits.flatten(2).softmax(2)
    return (weights @ pixels.flatten(2).mT).mT[..., None]


class HRNet(nn.Module):
    """The whole extractor of `width` 18 or 32; `small` has fewer blocks and modules.

    Further maps `stem` (B, 64, h, w) at 1/2 are added after the first convolution.
    """

    def __init__(self, width: int = 18, ocr_width: int = 64, *, small: bool = False, classes: int = 1) -> None:
        super().__init__()
        self.width, self.ocr_width, self.small = width, ocr_width, small
        blocks = 2 if small else 4
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.conv1, self.bn1 = _convolution(3, 64, 2), nn.BatchNorm2d(64)
        self.conv2, self.bn2 = _convolution(64, 64, 2), nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(Bottleneck(64, 64), *(Bottleneck(256, 64) for _ in range(blocks - 1)))
        self.transition1 = nn.ModuleList(
            [_normalised(256, widths[0]), nn.Sequential(_normalised(256, widths[1], stride=2))]
        )
        self.stage2 = nn.ModuleList([ExchangeModule(widths[:2], blocks)])
        self.transition2 = _new_branch(widths, 2)
        self.stage3 = nn.ModuleList(ExchangeModule(widths[:3], blocks) for _ in range(3 if small else 4))
        self.transition3 = _new_branch(widths, 3)
        self.stage4 = nn.ModuleList(ExchangeModule(widths, blocks) for _ in range(2 if small else 3))
        channels, pixels = sum(widths), 2 * ocr_width
        self.conv3x3_ocr = nn.Sequential(nn.Conv2d(channels, pixels, 3, 1, 1), nn.BatchNorm2d(pixels), nn.ReLU())
        self.ocr_distri_head = ObjectContextHead(pixels, ocr_width)
        self.cls_head = nn.Conv2d(pixels, classes, 1)
        self.aux_head = nn.Sequential(
            nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, classes, 1)
        )

    def features(self, x: Tensor, stem: Tensor | None = None, frame: Frame | None = None) -> dict[str, Tensor]:
        """Every stage's maps by name, of a normalised picture (B, 3, H, W).

        `stem`, `layer1`, `stageK_branchJ`, `aggregated`, `aux_quarter` (logits), `ocr_pixel`, `ocr_object`, `ocr_out`
        and `logits_quarter`, all but `ocr_object` at 1/4 of the picture or coarser.
        """
        found: dict[str, Tensor] = {}
        x = functional.relu(self.bn1(through(self.conv1, x, frame)))
        x = x if stem is None else x + stem
        x = found["stem"] = functional.relu(self.bn2(through(self.conv2, x, frame)))
        x = found["layer1"] = through(self.layer1, x, frame)
        branches = [through(layer, x, frame) for layer in self.transition1]
        for name, transition in (("stage2", None), ("stage3", self.transition2), ("stage4", self.transition3)):
            if transition is not None:
                branches = [*branches, through(transition[-1], branches[-1], frame)]
            for module in self.get_submodule(name).children():
                branches = module(branches, frame)
            found |= {f"{name}_branch{number}": branch for number, branch in enumerate(branches)}
        size = (branches[0].shape[2], branches[0].shape[3])
        joined = found["aggregated"] = torch.cat([branches[0], *(resize(x, size, frame) for x in branches[1:])], 1)
        aux = found["aux_quarter"] = self.aux_head(joined)
        pixels = found["ocr_pixel"] = through(self.conv3x3_ocr, joined, frame)
        gathered = found["ocr_object"] = gather_object(pixels, aux, frame)
        found["ocr_out"] = self.ocr_distri_head(pixels, gathered)
        found["logits_quarter"] = self.cls_head(found["ocr_out"])
        return found

    def forward(self, x: Tensor, stem: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits and auxiliary logits (B, 1, H / 4, W / 4)."""
        found = self.features(x, stem)
        return found["logits_quarter"], found["aux_quarter"]


def _new_branch(widths: Sequence[int], number: int) -> nn.ModuleList:
    """Branches that exist pass unchanged; the new one comes from the coarsest."""
    kept = [nn.Identity() for _ in range(number)]
    return nn.ModuleList([*kept, nn.Sequential(_normalised(widths[number - 1], widths[number], stride=2))])
