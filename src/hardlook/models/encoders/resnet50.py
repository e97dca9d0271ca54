"""ResNet50 features: the ImageNet network of Keras, with its weights from a package registry.

He et al., "Deep residual learning for image recognition", CVPR 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.extras import require
from hardlook.models.encoders.efficientnet_lite0 import join_maps, parse_layers, resize_image
from hardlook.models.roles import Features, Image
from hardlook.models.torch_inference import exact_inference
from hardlook.models.weights.install import locate_weights
from hardlook.models.weights.resnet50_keras import NAME, read_resnet50

if TYPE_CHECKING:
    from torch import Tensor

LAYERS = {"stride4": 1, "stride8": 2, "stride16": 3, "stride32": 4}
"""Which stage's output is the map: 256, 512, 1024 and 2048 channels."""

DIMENSION = 2048
GPU_BATCH = 64


class ResNet50:
    """Vectors are the average of the last map, (N, 2048); maps are of the chosen layer.

    Images are squashed to `size` x `size` pixels, so a map (C, size / stride, size / stride) covers the whole image.
    `layer` is one of `LAYERS`, or several as `stride16+stride32`: each layer's vector in each cell gets length 1, the
    coarser grids are interpolated to the finest, and the channels are joined. On a processor one image at a time passes
    the network, on a GPU 64.
    """

    def __init__(self, device: str = "cpu", size: int = 224, layer: str = "stride32") -> None:
        require("torch", extra="torch")
        from hardlook.networks.one_shot.backbones import build_backbone

        self._stages = parse_layers(layer, LAYERS)
        if size < 32:
            raise OptionError(f"size {size} leaves nothing of the image", remedy="size is at least 32 pixels")
        state = {name: value for name, value in read_resnet50().items() if not name.startswith("fc.")}
        self._network = build_backbone("resnet50-keras")
        # The counters of batches, which these weights do not have, change nothing here.
        self._network.load_state_dict(state, strict=False)
        self._network.eval().requires_grad_(False).to(device)
        self._size, self._batch = size, GPU_BATCH if device.startswith("cuda") else 1
        self.device, self.dimension = device, DIMENSION
        self.weights_files: tuple[Path, ...] = tuple(locate_weights(NAME).values())

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, 2048) and one map (C, h, w) per image, float32."""
        maps: list[NDArray[np.float32]] = []
        vectors = [np.empty((0, DIMENSION), np.float32)]
        for start in range(0, len(images), self._batch):
            inputs = self._prepare(images[start : start + self._batch])
            with exact_inference():
                found = self._network(inputs)
                vectors.append(found[-1].mean((2, 3)).cpu().numpy())
                chosen = [found[stage] for stage in self._stages]
                maps.extend((chosen[0] if len(chosen) == 1 else join_maps(chosen)).cpu().numpy())
        return Features(np.concatenate(vectors), maps)

    def _prepare(self, images: Sequence[Image]) -> Tensor:
        """(N, 3, size, size) float32, normalised with ImageNet's mean and deviation."""
        import torch

        from hardlook.networks.one_shot.network import IMAGENET_MEAN, IMAGENET_STD

        resized = np.stack([resize_image(image, self._size) for image in images])
        pixels = torch.from_numpy(resized).to(self.device).permute(0, 3, 1, 2).float()
        mean, std = (pixels.new_tensor(value).view(3, 1, 1) for value in (IMAGENET_MEAN, IMAGENET_STD))
        return pixels.div_(255).sub_(mean).div_(std).contiguous()
