"""CLIP: images and texts in one space, from a local folder in transformers' layout.

Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021.

>>> import numpy as np
>>> clip_pixels(np.zeros((40, 60, 3), np.uint8), 32).shape
(3, 32, 32)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.roles import Image, Vectors
from hardlook.models.torch_inference import exact_inference
from hardlook.models.transformers_folder import TextNetwork, encode_in_batches, open_text_network, pad_tokens, tokenize

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
TEMPLATE = "a photo of a {label}"


class Clip:
    """Images and texts as vectors of length 1; texts are taken as they are, prompts are the caller's matter."""

    def __init__(self, path: Path, device: str = "cpu", batch: int = 32) -> None:
        self._loaded = open_text_network(path, family="clip", architecture="CLIPModel", device=device)
        self._batch = batch
        self._size = int(self._loaded.network.config.vision_config.image_size)
        self._mean, self._std, preparation = _colours(Path(path).expanduser())
        self.device, self.dimension = device, int(self._loaded.network.config.projection_dim)
        self.weights_files = (*self._loaded.files, *preparation)

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        return encode_in_batches(images, self._batch, self.dimension, self._encode_images)

    def _encode_images(self, images: Sequence[Image]) -> Any:
        import torch

        pixels = np.stack([clip_pixels(image, self._size, self._mean, self._std) for image in images])
        network = self._loaded.network
        with exact_inference():
            seen = network.vision_model(pixel_values=torch.from_numpy(pixels).to(self.device))
            return torch.nn.functional.normalize(network.visual_projection(seen.pooler_output), dim=1).cpu().numpy()

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        return _encode_text(self._loaded, texts, self.dimension, self.device, self._batch)


class ClipText:
    """CLIP's text tower for labels: projected, of length 1.

    Each text goes into `template` at `{label}`, since CLIP was trained on captions and reads a bare word unsurely;
    `template={label}` encodes the bare label. Cosines are higher with a template, which all labels share.
    """

    def __init__(self, path: Path, template: str = TEMPLATE, device: str = "cpu", batch: int = 64) -> None:
        if "{label}" not in template:
            remedy = f"write {{label}} where the label goes, as in {TEMPLATE!r}"
            raise ModelError(f"the template {template!r} has no place for the label", remedy=remedy)
        self._loaded = open_text_network(path, family="clip", architecture="CLIPModel", device=device)
        self._template, self._batch = template, batch
        self.device, self.dimension = device, int(self._loaded.network.config.projection_dim)
        self.weights_files = self._loaded.files

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        prompts = [self._template.replace("{label}", text) for text in texts]
        return _encode_text(self._loaded, prompts, self.dimension, self.device, self._batch)


def clip_pixels(
    image: Image, size: int, mean: Sequence[float] = MEAN, std: Sequence[float] = STD
) -> NDArray[np.float32]:
    """(3, size, size) float32: shorter side to `size` by Pillow's bicubic, the centre cut out, colours normalised.

    Pillow, because it averages over what a smaller image leaves out as CLIP's training did; OpenCV's bicubic does not.
    """
    height, width = image.shape[:2]
    scaled = (size, int(size * height / width)) if width <= height else (int(size * width / height), size)
    resized = np.asarray(PIL.Image.fromarray(np.ascontiguousarray(image)).resize(scaled, PIL.Image.Resampling.BICUBIC))
    top, left = (resized.shape[0] - size) // 2, (resized.shape[1] - size) // 2
    middle = resized[top : top + size, left : left + size].astype(np.float32) / 255
    return np.ascontiguousarray(((middle - np.array(mean, np.float32)) / np.array(std, np.float32)).transpose(2, 0, 1))


def _encode_text(loaded: TextNetwork, texts: Sequence[str], dimension: int, device: str, batch: int) -> Vectors:
    import torch

    network, tokenizer = loaded.network, loaded.tokenizer
    longest = network.config.text_config.max_position_embeddings

    def encode(some: Sequence[str]) -> Any:
        tokens, mask = pad_tokens(tokenize(tokenizer, some, longest), device, fill=int(tokenizer.pad_token_id or 0))
        with exact_inference():
            read = network.text_model(input_ids=tokens, attention_mask=mask)
            return torch.nn.functional.normalize(network.text_projection(read.pooler_output), dim=1).cpu().numpy()

    return encode_in_batches(texts, batch, dimension, encode)


def _colours(folder: Path) -> tuple[Sequence[float], Sequence[float], tuple[Path, ...]]:
    """Mean and deviation of the colours as the folder's own preparation has them, else CLIP's."""
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return MEAN, STD, ()
    config = json.loads(path.read_text(encoding="utf-8"))
    return config.get("image_mean", MEAN), config.get("image_std", STD), (path,)
