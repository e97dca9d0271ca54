"""TSA and DETA: adapters that are tuned on the support of each task, and supports weighted by how clean they are.

Li, Liu and Bilen, Cross-domain Few-shot Learning with Task-specific Adapters, CVPR 2022. Zhang et al., DETA: Denoised
Task Adaptation for Few-Shot Learning, ICCV 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.descriptors import cosines
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.precision import full_precision
from hardlook.randomness import generator

Tensors = dict[str, Tensor]
MAP = ".map"  # the linear map of features, beside names of convolutions
TOGETHER = 8  # tasks that are tuned at a time: each has adapters of its own
SCALE, START, DECAY, TINY = 10.0, 1e-4, 0.9, 1e-6
REGION_TEMPERATURE, MEMORY = 0.5, 0.7


class Tsa(Baseline):
    """Baseline's training; at test time adapters and a linear map are tuned; then the nearest class mean by cosine.

    Every 3 x 3 convolution has a 1 x 1 convolution beside it (`START` times the identity at first), and features pass a
    linear map (the identity at first). `steps` steps of Adadelta at `rate` and `map_rate` lower the cross-entropy of
    the supports by the means of their classes, `SCALE` times cosines. No released code was compared.
    """

    validated_by = "means"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        steps: int = 40,
        rate: float = 0.1,
        map_rate: float = 1.0,
    ) -> None:
        super().__init__(backbone, channels=channels, classes=classes)
        self.steps, self.rate, self.map_rate = steps, rate, map_rate

    def start(self, width: int, like: Tensor) -> Tensors:
        """The adapters by the name of their convolution (out, in), and the map (width, width)."""
        found = {
            name: START * torch.eye(module.out_channels, module.in_channels // module.groups).to(like)
            for name, module in self.emb_func.named_modules()
            if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3) and module.padding == (1, 1)
        }
        return {**found, MAP: torch.eye(width).to(like)}

    def encode(self, tuned: Tensors, images: Tensor) -> Tensor:
        """(n, width) features by adapters and map."""
        weights = {}
        for name, adapter in tuned.items():
            if name != MAP:
                weight: Any = self.emb_func.get_submodule(name).weight
                # A 1 x 1 convolution beside a padded 3 x 3 one is a change of the latter's centre.
                weights[f"{name}.weight"] = weight.detach() + functional.pad(adapter[..., None, None], (1, 1, 1, 1))
        return torch.as_tensor(functional_call(self.emb_func, weights, (images,)).flatten(1) @ tuned[MAP].mT)

    @full_precision
    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores after the tuning."""
        images, ways = episodes.support.flatten(1, 2), episodes.ways
        with torch.no_grad():
            width = self.emb_func(episodes.query[0, :1]).flatten(1).shape[1]
        start = self.start(width, images)

        def measure(
            tuned: Tensors, shown: Tensor, regions: Tensor, weights: Tensor, step: int
        ) -> tuple[Tensor, Tensor]:
            features = self.encode(tuned, torch.cat([shown, regions.flatten(0, 1)]))
            own = torch.unflatten(features[: len(shown)], 0, (ways, -1))
            return self.support_loss(own, features[len(shown) :], weights, step)

        def tune(shown: Tensor, regions: Tensor, query: Tensor) -> Tensor:
            tuned, weights = start, torch.ones(ways, len(shown) // ways, dtype=shown.dtype, device=shown.device)
            squares, moves = ({name: torch.zeros_like(value) for name, value in start.items()} for _ in range(2))
            for step in range(self.steps):
                gradients, weights = grad(measure, has_aux=True)(tuned, shown, regions, weights, step)
                for name, gradient in gradients.items():
                    squares[name] = DECAY * squares[name] + (1 - DECAY) * gradient.square()
                    move = ((moves[name] + TINY) / (squares[name] + TINY)).sqrt() * gradient
                    moves[name] = DECAY * moves[name] + (1 - DECAY) * move.square()
                    tuned = tuned | {name: tuned[name] - (self.map_rate if name == MAP else self.rate) * move}
            features = torch.unflatten(self.encode(tuned, shown), 0, (ways, -1))
            return SCALE * cosines(self.encode(tuned, query), mean_of_classes(features, weights))

        given = (images, self.cut_regions(images, episodes.keys or [""] * len(episodes)), episodes.query)
        return torch.as_tensor(vmap(tune, randomness="different", chunk_size=TOGETHER)(*given))

    def cut_regions(self, images: Tensor, keys: Sequence[str]) -> Tensor:
        """(tasks, n, regions, C, H, W) regions of images (tasks, n, C, H, W); TSA has none."""
        return images[:, :, None][:, :, :0]

    def support_loss(self, features: Tensor, regions: Tensor, weights: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The loss of features (ways, shots, d) and regions (n, d), and the weights (ways, shots) of the supports."""
        return nearest_mean_loss(features, mean_of_classes(features, weights)), weights


class Deta(Tsa):
    """TSA with `regions` of each support, of half its side; clean regions and supports count more.

    A region is clean where it is like regions of other supports of its class and unlike those of other classes
    (`weigh_regions`); a support has the mean weight of its regions, remembered over steps. Regions and supports are
    classified by weighted class means, with cosines times their weights. Where regions lie is drawn once per task, by
    `place` from its key. No released code was compared.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        regions: int = 5,
        place: Callable[[str, int], np.ndarray[Any, np.dtype[np.float64]]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(backbone, **options)
        self.regions, self.place = regions, place or draw_places

    def cut_regions(self, images: Tensor, keys: Sequence[str]) -> Tensor:
        """(tasks, n, regions, C, H, W) regions, enlarged to the size of the images."""
        tasks, count = images.shape[:2]
        places = torch.from_numpy(np.stack([self.place(key, count * self.regions) for key in keys])).to(images)
        moves = torch.zeros(tasks * count * self.regions, 2, 3).to(images)
        moves[:, 0, 0] = moves[:, 1, 1] = 0.5
        moves[:, :, 2] = places.flatten(0, 1) - 0.5
        sources = images.flatten(0, 1).repeat_interleave(self.regions, 0)
        grid = functional.affine_grid(moves, list(sources.shape), align_corners=False)
        found = functional.grid_sample(sources, grid, padding_mode="border", align_corners=False)
        return torch.unflatten(found, 0, (tasks, count, self.regions))

    def support_loss(self, features: Tensor, regions: Tensor, weights: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The losses of supports and regions, and the weights of the supports."""
        ways, shots, _ = features.shape
        parts = torch.unflatten(regions, 0, (ways, shots, self.regions))
        clean = weigh_regions(parts.detach())
        found = clean.mean(-1)
        weights = found if step == 0 else MEMORY * weights + (1 - MEMORY) * found
        means = mean_of_classes(features, weights)
        whole = nearest_mean_loss(features, means, weights)
        return whole + nearest_mean_loss(parts.flatten(1, 2), means, clean.flatten(1)), weights


def mean_of_classes(features: Tensor, weights: Tensor) -> Tensor:
    """(ways, d) weighted means of features (ways, shots, d)."""
    return (weights[..., None] * features).sum(1) / weights.sum(1)[:, None]


def nearest_mean_loss(features: Tensor, means: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of features (ways, n, d) by the means (ways, d) of their classes; `weights` multiply cosines."""
    scores = SCALE * cosines(features, means)
    logs = (scores if weights is None else weights[..., None] * scores).log_softmax(-1)
    return -logs.diagonal(dim1=0, dim2=-1).mean()


def weigh_regions(regions: Tensor) -> Tensor:
    """(ways, shots, regions) weights of the features of regions (ways, shots, regions, d), about 1 on average.

    Mean cosine to the regions of other supports of the class, and to those of other classes; the softmax of the first
    over the regions of a class, divided by that of the second.
    """
    ways, shots, count, _ = regions.shape
    flat = regions.flatten(0, 2)
    found = cosines(flat, flat).reshape(ways, shots, count, ways, shots, count).sum(-1)
    same = found.diagonal(dim1=0, dim2=3).movedim(-1, 0)  # (ways, shots, count, shots)
    own = same.diagonal(dim1=1, dim2=3).movedim(-1, 1)  # (ways, shots, count)
    others = found.sum((-2, -1)) - same.sum(-1)
    inside = (same.sum(-1) - own) / max(1, (shots - 1) * count)
    outside = others / max(1, (ways - 1) * shots * count)
    shares = [(part.flatten(1) / REGION_TEMPERATURE).log_softmax(-1) for part in (inside, outside)]
    return torch.as_tensor((shares[0] - shares[1]).exp().reshape(ways, shots, count))


def draw_places(key: str, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(count, 2) corners of regions, 0 to 1 of the room, drawn from a task's key."""
    return generator(0, "deta", key).random((count, 2))
