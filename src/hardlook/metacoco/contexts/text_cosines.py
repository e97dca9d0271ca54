"""How near images are to the words for their concept and for their context: M_ce and M_te.

Mean cosines of image and text in the space of any image-text encoder. The paper calls them distances; its values are
similarities. They depend on the encoder and on the prompts, so compare them within one encoder only.

>>> from hardlook.models.registry import build
>>> from hardlook.world.planted import PlantedWorld
>>> world = PlantedWorld(count=24, salient=True)
>>> encoder = build("planted-image-text-encoder", role="image-text-encoder")
>>> vectors = encoder.encode_images([scene.image for scene in world])
>>> labels = [world.concept(i) for i in range(24)], [world.context(i) for i in range(24)]
>>> found = measure_cosines(encoder, vectors, *labels)
>>> found.concept_mean() > 0.8, abs(found.context_mean()) < 0.2
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ConceptContextImage
from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.stats import Estimate, bootstrap_mean
from hardlook.metacoco.contexts.linear_probes import RESAMPLES, average_over_labels
from hardlook.models.feature_cache import CachedEncoder
from hardlook.models.roles import Encoder, Features, Image, ImageTextEncoder, Vectors
from hardlook.randomness import generator

# The texts for a concept and for a context, as in the paper.
CONCEPT_PROMPT = "a photo of a {concept}"
CONTEXT_PROMPT = "a photo of {context}"


@dataclass(frozen=True)
class TextCosines:
    """Cosines (n,) of each image with the text of its own concept and context, in [-1, 1].

    `nearest_concept` and `nearest_context` (n,) bool say whether that text is the nearest of all concepts, contexts.
    """

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    with_concept: NDArray[np.float64]
    with_context: NDArray[np.float64]
    nearest_concept: NDArray[np.bool_]
    nearest_context: NDArray[np.bool_]

    def concept_mean(self) -> float:
        """M_ce over images (micro)."""
        return float(self.with_concept.mean())

    def context_mean(self) -> float:
        """M_te over images (micro)."""
        return float(self.with_context.mean())

    def by_concept(self) -> tuple[tuple[str, int, float, float], ...]:
        """Concept, images, mean cosine with the concept's text, mean cosine with the contexts' texts; sorted."""
        names = np.array(self.concepts)
        return tuple(
            (name, int(own.sum()), float(self.with_concept[own].mean()), float(self.with_context[own].mean()))
            for name, own in ((name, names == name) for name in sorted(set(self.concepts)))
        )


@dataclass(frozen=True)
class MeanCosine:
    """One of the two measures: over images (micro), and over its labels (macro), with 95 % intervals by image."""

    name: str
    micro: Estimate
    macro: Estimate
    nearest: float


def measure_cosines(
    encoder: ImageTextEncoder,
    images: Vectors,
    concepts: Sequence[str],
    contexts: Sequence[str],
    *,
    concept_prompt: str = CONCEPT_PROMPT,
    context_prompt: str = CONTEXT_PROMPT,
) -> TextCosines:
    """Cosines of image vectors (n, D) of unit length with the texts of their labels.

    `_` in a label becomes a space. A prompt holds `{concept}` or `{context}` where the label goes.
    """
    own_concept, nearest_concept = _compare(encoder, images, concepts, concept_prompt, "{concept}")
    own_context, nearest_context = _compare(encoder, images, contexts, context_prompt, "{context}")
    return TextCosines(tuple(concepts), tuple(contexts), own_concept, own_context, nearest_concept, nearest_context)


def average_cosines(cosines: TextCosines, *, seed: int) -> tuple[MeanCosine, MeanCosine]:
    """M_ce (macro over concepts) and M_te (macro over contexts)."""
    return (
        _average("M_ce", cosines.with_concept, cosines.concepts, cosines.nearest_concept, seed),
        _average("M_te", cosines.with_context, cosines.contexts, cosines.nearest_context, seed),
    )


def _compare(
    encoder: ImageTextEncoder, images: Vectors, labels: Sequence[str], prompt: str, slot: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Of each image: the cosine with the text of its label, and whether no other label's text is nearer."""
    if slot not in prompt:
        raise OptionError(f"the prompt {prompt!r} has no place for the label", remedy=f"write {slot} where it goes")
    names, codes = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)
    texts = encoder.encode_text([prompt.replace(slot, str(name).replace("_", " ")) for name in names])
    cosines = np.asarray(images, np.float64) @ np.asarray(texts, np.float64).T
    return np.clip(cosines[np.arange(len(codes)), codes], -1, 1), cosines.argmax(axis=1) == codes


def _average(
    name: str, values: NDArray[np.float64], labels: Sequence[str], nearest: NDArray[np.bool_], seed: int
) -> MeanCosine:
    micro = bootstrap_mean(values, rng=generator(seed, "cosine", name), resamples=RESAMPLES, resampled="image")
    macro = average_over_labels(values, labels, generator(seed, "cosine by label", name))
    return MeanCosine(name, micro, macro, float(nearest.mean()))


class _VectorEncoder:
    """Vectors without maps, which would fill the cache and are not used here."""

    def __init__(self, encoder: Encoder | ImageTextEncoder) -> None:
        self.encoder, self.dimension = encoder, encoder.dimension

    def encode(self, images: Sequence[Image]) -> Features:
        if isinstance(self.encoder, ImageTextEncoder):
            return Features(self.encoder.encode_images(images))
        return Features(self.encoder.encode(images).vectors)


def encode_dataset_images(
    encoder: Encoder | ImageTextEncoder,
    identity: str,
    rows: Sequence[ConceptContextImage],
    folder: Path,
    *,
    progress: StartProgress | None = None,
) -> Vectors:
    """Vectors (n, D) float32 of a dataset's images, by an encoder or the image half of an image-text encoder.

    `identity` is the encoder's fingerprint (`models.identity`). Vectors are cached in `folder`. Images are encoded one
    per call, so that no vector depends on the other images.

    >>> import tempfile
    >>> from hardlook.data.concept_context import list_images
    >>> from hardlook.models.registry import build
    >>> from hardlook.world.layouts import write_world
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = list_images(write_world(folder / "world", "concept-context", count=4))
    >>> encode_dataset_images(build("planted-encoder", role="encoder"), "planted", rows, folder / "cache").shape
    (4, 64)
    """
    # The size keeps these apart from cache entries of the same encoder with maps.
    cached = CachedEncoder(_VectorEncoder(encoder), identity, folder, size="vectors alone")
    advance = progress(len(rows), 0) if progress else (lambda units, failed: None)
    vectors = np.zeros((len(rows), encoder.dimension), np.float32)
    for i, row in enumerate(rows):
        try:
            vectors[i] = cached.encode([row.read()]).vectors
        except HardlookError as error:
            raise error.at(file=row.path) from error
        except Exception as error:  # an encoder of another package may raise anything; the image says where to look
            raise ModelError(f"the image cannot be encoded: {type(error).__name__}: {error}", file=row.path) from error
        advance(1, 0)
    return vectors
