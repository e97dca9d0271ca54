"""ResNet-50, ResNet-101 and VGG16 as one-shot networks use them, with the parameter names of their checkpoints.

He et al., Deep Residual Learning for Image Recognition, CVPR 2016; Simonyan and Zisserman, Very Deep Convolutional
Networks for Large-Scale Image Recognition, ICLR 2015.

Every backbone takes images (B, 3, H, W) in RGB, normalised with ImageNet's mean and deviation, returns the output of
each of its stages, and gives its stages away as `list_stages`, for networks whose checkpoints hold them one by one.

>>> backbone = build_backbone("resnet50", "plain", dilations=(1, 1, 2, 4)).eval()
>>> [tuple(stage.shape) for stage in backbone(torch.zeros(1, 3, 33, 33))][2:]
[(1, 512, 5, 5), (1, 1024, 5, 5), (1, 2048, 5, 5)]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.errors import OptionError
from hardlook.networks.one_shot.network import IMAGENET_MEAN, IMAGENET_STD, Features

Variant = Literal["deep-stem", "plain", "caffe", "keras"]
"""How a ResNet differs from others of its depth.

deep-stem: three 3 x 3 convolutions in place of the 7 x 7 one, named layer0 with the pooling (PSPNet's).
plain: torchvision's.
caffe: the stride of a stage is on its first 1 x 1 convolution; the pooling rounds sizes up.
keras: the stride as in caffe; convolutions have biases; images in BGR without division, the epsilon of batch
normalisation is 0.001.
"""

DEPTHS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}
WIDTHS = (64, 128, 256, 512)
KERAS_MEANS = (103.939, 116.779, 123.68)  # blue, green, red


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut, with torchvision's names.

    `early` puts the stride on the first convolution, otherwise it is on the 3 x 3 one.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        stride: int = 1,
        dilation: int = 1,
        *,
        early: bool = False,
        bias: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        first, second = (stride, 1) if early else (1, stride)
        self.conv1 = nn.Conv2d(inputs, width, 1, first, bias=bias)
        self.bn1 = nn.BatchNorm2d(width, eps)
        self.conv2 = nn.Conv2d(width, width, 3, second, dilation, dilation, bias=bias)
        self.bn2 = nn.BatchNorm2d(width, eps)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=bias)
        self.bn3 = nn.BatchNorm2d(4 * width, eps)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != 4 * width:
            shortcut = nn.Conv2d(inputs, 4 * width, 1, stride, bias=bias)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width, eps))

    def add_branches(self, x: Tensor) -> Tensor:
        """The sum of branch and shortcut, before the last ReLU."""
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(functional.relu(self.bn2(self.conv2(y)))))
        return y + (x if self.downsample is None else self.downsample(x))  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, 4 width, h / stride, w / stride)."""
        return functional.relu(self.add_branches(x))


class KerasInput(nn.Module):
    """From RGB normalised with ImageNet's mean and deviation to BGR from 0 to 255 less the means of Caffe."""

    factors: Tensor
    offsets: Tensor

    def __init__(self) -> None:
        super().__init__()
        mean, std = torch.tensor(IMAGENET_MEAN, dtype=torch.float64), torch.tensor(IMAGENET_STD, dtype=torch.float64)
        offsets = 255 * mean - torch.tensor(KERAS_MEANS[::-1], dtype=torch.float64)
        # Not in the state dict: constants of the input, not weights.
        self.register_buffer("factors", (255 * std).float().view(3, 1, 1), persistent=False)
        self.register_buffer("offsets", offsets.float().view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, H, W) of the same."""
        return (images * self.factors + self.offsets).flip(1)


class ResNet(nn.Module):
    """A ResNet of bottlenecks in one of the variants.

    `strides` and `dilations` are those of the four stages; a stage with a dilation above 1 has stride 1. `stages` below
    4 leaves the last ones out. `classes` adds the layer `fc`, which only `classify` uses.
    """

    def __init__(
        self,
        blocks: Sequence[int],
        variant: Variant = "plain",
        *,
        strides: Sequence[int] = (1, 2, 2, 2),
        dilations: Sequence[int] = (1, 1, 1, 1),
        stages: int = 4,
        classes: int = 0,
    ) -> None:
        super().__init__()
        self.variant, self.stages, self.blocks = variant, stages, tuple(blocks[:stages])
        self.channels = tuple(4 * width for width in WIDTHS[:stages])
        keras, inputs = variant == "keras", 128 if variant == "deep-stem" else 64
        eps = 1e-3 if keras else 1e-5
        self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=variant == "caffe")
        if variant == "deep-stem":
            self.layer0 = self._build_deep_stem()
        else:
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=keras)
            self.bn1 = nn.BatchNorm2d(64, eps)
        if keras:
            self.recode = KerasInput()
        for number in range(1, stages + 1):
            width, dilation = WIDTHS[number - 1], dilations[number - 1]
            stride = 1 if dilation > 1 else strides[number - 1]
            stage: list[nn.Module] = []
            for block in range(blocks[number - 1]):
                own = stride if block == 0 else 1
                early = variant in ("caffe", "keras")
                stage.append(Bottleneck(inputs, width, own, dilation, early=early, bias=keras, eps=eps))
                inputs = 4 * width
            self.add_module(f"layer{number}", nn.Sequential(*stage))
        if classes:
            self.fc = nn.Linear(inputs, classes)
        initialise(self)

    def _build_deep_stem(self) -> nn.Sequential:
        layers: list[nn.Module] = []
        for inputs, outputs, stride in ((3, 64, 2), (64, 64, 1), (64, 128, 1)):
            layers.append(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers, self.pool)

    def list_stages(self) -> list[nn.Module]:
        """The stem with its pooling, then the stages; their parameters are those of this module."""
        stages = [self.get_submodule(f"layer{number}") for number in range(1, self.stages + 1)]
        if self.variant == "deep-stem":
            return [self.layer0, *stages]
        recode = [self.recode] if self.variant == "keras" else []
        return [nn.Sequential(*recode, self.conv1, self.bn1, nn.ReLU(), self.pool), *stages]

    def forward(self, images: Tensor) -> Features:
        """The outputs of the stem and of each stage, (n, C, h, w)."""
        return run_stages(self.list_stages(), images)

    def list_sums(self, images: Tensor) -> list[list[Tensor]]:
        """Stage by stage, what each bottleneck adds up before its last ReLU."""
        stem, *stages = self.list_stages()
        x: Tensor = stem(images)
        found: list[list[Tensor]] = []
        for stage in stages:
            found.append([])
            for block in stage.children():
                assert isinstance(block, Bottleneck)
                found[-1].append(block.add_branches(x))
                x = functional.relu(found[-1][-1])
        return found

    def classify(self, images: Tensor) -> Tensor:
        """Logits (n, classes) of the layer `fc`."""
        return self.fc(self(images)[-1].mean((2, 3)))  # type: ignore[no-any-return]


VGG16_WIDTHS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class StagedVGG16(nn.Module):
    """VGG16 at an eighth of the image's size, with the names of PMMs, stage by stage.

    Pooling is over 3 x 3, the last two without a stride, and no convolution is dilated. A 3 x 3 convolution, `cls`,
    follows, which ImageNet's weights do not have.
    """

    channels = (512,)

    def __init__(self) -> None:
        super().__init__()
        inputs = 3
        for number, widths in enumerate(VGG16_WIDTHS, start=1):
            layers: list[nn.Module] = []
            for width in widths:
                layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
                inputs = width
            layers.append(nn.MaxPool2d(3, 1 if number > 3 else 2, 1))
            self.add_module(f"features_{number}", nn.Sequential(*layers))
        self.cls = nn.Sequential(nn.Conv2d(inputs, inputs, 3, padding=1))
        initialise(self)

    def forward(self, images: Tensor) -> Features:
        """The output (n, 512, h, w) of the last convolution, without ReLU."""
        return run_stages(self.children(), images)[-1:]


class VGG16(nn.Module):
    """VGG16 with torchvision's names; a stage ends with its pooling, but for the last.

    `normalise` adds batch normalisation; `classes` the layers `classifier`, which only `classify` uses. `dilated` keeps
    an eighth of the image's size, as in DeepLab: pooling over 3 x 3, the fourth without a stride, and a last stage of
    dilation 2. `rounds_up` makes pooled sizes of odd ones the larger, as PFENet and RePRI do.
    """

    def __init__(
        self, *, normalise: bool = False, dilated: bool = False, classes: int = 0, rounds_up: bool = False
    ) -> None:
        super().__init__()
        self.channels = tuple(widths[-1] for widths in VGG16_WIDTHS)
        layers: list[nn.Module] = []
        self.ends, inputs = [], 3
        for number, widths in enumerate(VGG16_WIDTHS, start=1):
            dilation = 2 if dilated and number == 5 else 1
            for width in widths:
                layers.append(nn.Conv2d(inputs, width, 3, padding=dilation, dilation=dilation))
                layers += [nn.BatchNorm2d(width), nn.ReLU()] if normalise else [nn.ReLU()]
                inputs = width
            smaller = nn.MaxPool2d(2, 2, ceil_mode=rounds_up)
            layers.append(nn.MaxPool2d(3, 1 if number > 3 else 2, 1) if dilated else smaller)
            self.ends.append(len(layers))
        self.features = nn.Sequential(*layers)
        if classes:
            dense = [nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU()]
            self.classifier = nn.Sequential(*dense, nn.Dropout(), nn.Linear(4096, classes))
        initialise(self)

    def list_stages(self) -> list[nn.Module]:
        """Five stages, at 1/2, 1/4, 1/8 and twice 1/16 of the image's size or `dilated` thrice 1/8.

        The last pooling is left out.
        """
        layers, starts = list(self.features), [0, *self.ends[:-1]]
        ends = [*self.ends[:-1], self.ends[-1] - 1]
        return [nn.Sequential(*layers[start:end]) for start, end in zip(starts, ends, strict=True)]

    def forward(self, images: Tensor) -> Features:
        """The outputs of the stages, (n, C, h, w)."""
        return run_stages(self.list_stages(), images)

    def list_convolutions(self, images: Tensor) -> list[list[Tensor]]:
        """Stage by stage, the outputs of the convolutions before normalisation and ReLU, then those of the pooling."""
        found: list[list[Tensor]] = [[]]
        x = images
        for layer in self.features:
            x = layer(x)
            if isinstance(layer, nn.Conv2d):
                found[-1].append(x)
            elif isinstance(layer, nn.MaxPool2d):
                found.append([])
        return [*found[:-1], [x]]

    def classify(self, images: Tensor) -> Tensor:
        """Logits (n, classes) of the layers `classifier`."""
        pooled = functional.adaptive_avg_pool2d(self.features(images), 7)
        return self.classifier(pooled.flatten(1))  # type: ignore[no-any-return]


def build_backbone(name: str, variant: Variant = "plain", **options: Any) -> ResNet | VGG16:
    """The backbone of that name with random weights: resnet50, resnet101, vgg16 or vgg16-bn.

    `variant` is that of a ResNet, which a suffix overrides (resnet50-keras). `options` are those of the classes, of
    which VGG16 ignores strides, dilations and stages. In place of the deep stem VGG16 rounds pooled sizes up, as the
    repositories with that stem do.
    """
    base, _, suffix = name.partition("-")
    if base == "vgg16" and suffix in ("", "bn"):
        chosen = {key: options[key] for key in ("dilated", "classes") if key in options}
        return VGG16(normalise=suffix == "bn", rounds_up=variant == "deep-stem", **chosen)
    kind = suffix or variant
    if base not in DEPTHS or kind not in get_args(Variant):
        known = [*DEPTHS, *(f"resnet50-{one}" for one in get_args(Variant)), "vgg16", "vgg16-bn"]
        raise OptionError(f"no backbone {name!r}", remedy=f"one of {', '.join(known)}")
    return ResNet(DEPTHS[base], kind, **options)  # type: ignore[arg-type]


def run_stages(stages: Iterable[nn.Module], x: Tensor) -> Features:
    """The outputs of the stages, each fed with the one before it."""
    found = []
    for stage in stages:
        x = stage(x)
        found.append(x)
    return tuple(found)


def freeze(*modules: nn.Module) -> None:
    """Take the modules' parameters out of training."""
    for module in modules:
        module.requires_grad_(False)


def initialise(module: nn.Module) -> None:
    """Kaiming's start for convolutions, by the number of outputs; biases at 0."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
