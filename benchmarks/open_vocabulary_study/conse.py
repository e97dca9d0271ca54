"""A segmenter of free words without training: ImageNet's class names, averaged by what ResNet50 thinks of a cell.

Norouzi et al., "Zero-shot learning by convex combination of semantic embeddings" (ConSE), ICLR 2014, for each cell of
the last map in place of the image. It knows no background: every pixel has a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.models.encoders.resnet50 import ResNet50
from hardlook.models.families.words import read_words
from hardlook.models.feature_cache import CachedEncoder, default_cache_folder
from hardlook.models.named_model import build_named
from hardlook.models.weights.resnet50_keras import read_resnet50
from hardlook.open_vocabulary.word_projection import build_text_encoder, encode_words
from hardlook.similarity.wordnet.nouns import load_nouns

HERE = Path(__file__).parent


class Conse:
    """Words by ImageNet's names; of each cell the `best` classes count by their probability."""

    def __init__(self, labels: Sequence[str], text: str = "glove", best: int = 10, size: int = 320) -> None:
        words = read_words(labels)
        self.labels: Sequence[str] = words.labels
        encoder = build_text_encoder(text, {}).model
        table = encode_words(encoder, words.words)
        if table.without:
            raise ValueError(f"no vector for {', '.join(table.without)}")
        self._words = table.vectors
        self._names = np.asarray(encoder.encode_text(read_imagenet_names()), np.float32)
        state = read_resnet50()
        self._weight, self._bias = state["fc.weight"].numpy(), state["fc.bias"].numpy()
        self._best = best
        inner = build_named("resnet50-imagenet", "encoder", {"size": size, "layer": "stride32", "device": "cpu"})
        assert isinstance(inner.model, ResNet50)
        self._encoder = CachedEncoder(inner.model, inner.whole_fingerprint(), default_cache_folder())
        self.weights_files = inner.model.weights_files

    def segment(self, images: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.int32]]:
        """One (H, W) int32 map of indices into `labels` per image."""
        import cv2

        answers = []
        for image, features in zip(images, self._encoder.encode(images).maps or [], strict=True):
            cells = np.moveaxis(features, 0, -1)
            logits = cells @ self._weight.T + self._bias
            chances = np.exp(logits - logits.max(-1, keepdims=True))
            lowest = np.partition(chances, -self._best, axis=-1)[..., -self._best, None]
            vectors = np.where(chances >= lowest, chances, 0) @ self._names
            vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
            scores = np.ascontiguousarray((vectors @ self._words.T).astype(np.float32))
            height, width = image.shape[:2]
            resized = [cv2.resize(scores[..., k], (width, height)) for k in range(scores.shape[-1])]
            answers.append(np.argmax(resized, axis=0).astype(np.int32))
        return answers


def read_imagenet_names() -> list[str]:
    """The first name in WordNet of each of ImageNet's 1,000 classes, in the order of the network's outputs."""
    nouns = load_nouns()
    lines = (HERE / "imagenet_offsets.txt").read_text(encoding="utf-8").split()
    return [nouns.lemmas(nouns.index(line))[0].replace("_", " ") for line in lines]
