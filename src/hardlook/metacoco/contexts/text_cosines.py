"""How near images are to the words for their concept and for their context: M_ce and M_te.

Mean cosines of image and text in the space of any image-text encoder. The paper calls them distances; its values are
similarities. They depend on the encoder and on the prompts, so compare them within one encoder only.

>>> from hardlook.models.registry import build
>>> from hardlook.world.planted import PlantedWorld
>>> world = PlantedWorld(count=24, salient=True)
>>> encoder = build("planted-image-text-encoder", role="image-text-encoder")
>>> vectors = encoder.encode_images([scene.image for scene in world])
>>> concepts, contexts = [world.concept(i) for i in range(24)], [world.context(i) for i in range(24)]
>>> measure_cosines(encoder, vectors, concepts, "concept", CONCEPT_PROMPT, seed=0).micro.value > 0.8
True
>>> abs(measure_cosines(encoder, vectors, contexts, "context", CONTEXT_PROMPT, seed=0).micro.value) < 0.2
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ConceptContextImage, hash_images
from hardlook.data.images import read_image
from hardlook.errors import OptionError
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.stats import Estimate, bootstrap_mean
from hardlook.metacoco.contexts.linear_probes import RESAMPLES, average_over_labels
from hardlook.models.answer_checks import check_answers
from hardlook.models.feature_tables import encode_table
from hardlook.models.preprocessing import Preprocessing
from hardlook.models.roles import Encoder, Features, Image, ImageTextEncoder, Vectors
from hardlook.randomness import generator

# The texts for a concept and for a context, as in the paper.
CONCEPT_PROMPT = "a photo of a {concept}"
CONTEXT_PROMPT = "a photo of {context}"


@dataclass(frozen=True)
class TextCosines:
    """Cosines (n,) of images with the text of their own label, in [-1, 1], and their means with 95 % intervals.

    `micro` is the mean over images, `macro` over labels; `nearest` the share whose own text is the nearest of all.
    """

    name: str
    values: NDArray[np.float64]
    micro: Estimate
    macro: Estimate
    nearest: float


def measure_cosines(
    encoder: ImageTextEncoder,
    images: Vectors,
    labels: Sequence[str],
    kind: Literal["concept", "context"],
    prompt: str,
    *,
    seed: int,
) -> TextCosines:
    """M_ce (labels are concepts) or M_te (contexts) of image vectors (n, D) of unit length.

    The prompt holds `{concept}` or `{context}` where the label goes; `_` in a label becomes a space.
    """
    slot, measure = f"{{{kind}}}", {"concept": "M_ce", "context": "M_te"}[kind]
    if slot not in prompt:
        raise OptionError(f"the prompt {prompt!r} has no place for the label", remedy=f"write {slot} where it goes")
    names, codes = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)
    prompts = [prompt.replace(slot, str(name).replace("_", " ")) for name in names]
    texts = check_answers("image-text-encoder", encoder, encoder.encode_text(prompts), prompts)
    cosines = np.asarray(images, np.float64) @ np.asarray(texts, np.float64).T
    own = np.clip(cosines[np.arange(len(codes)), codes], -1, 1)
    rng = generator(seed, "cosine", measure)
    micro = bootstrap_mean(own, rng=rng, resamples=RESAMPLES, range=(-1.0, 1.0), resampled="image")
    macro = average_over_labels(own, labels, generator(seed, "cosine by label", measure), lowest=-1.0)
    return TextCosines(measure, own, micro, macro, float((cosines.argmax(axis=1) == codes).mean()))


class _VectorEncoder:
    """The image half of an encoder of images, or of images and texts: vectors without maps."""

    def __init__(self, encoder: Encoder | ImageTextEncoder) -> None:
        self.encoder, self.dimension = encoder, encoder.dimension
        self.device = getattr(encoder, "device", "cpu")

    def encode(self, images: Sequence[Image]) -> Features:
        if isinstance(self.encoder, ImageTextEncoder):
            return Features(self.encoder.encode_images(images))
        # Encoders that have it give vectors faster without maps.
        encode = getattr(self.encoder, "encode_vectors", self.encoder.encode)
        return Features(encode(images).vectors)


def encode_dataset_images(
    encoder: Encoder | ImageTextEncoder,
    identity: str,
    rows: Sequence[ConceptContextImage],
    folder: Path | None = None,
    *,
    progress: StartProgress | None = None,
    preprocessing: Preprocessing = "encoder",
) -> Vectors:
    """Vectors (n, D) float32 of a dataset's images, by an encoder or the image half of an image-text encoder.

    `identity` is the encoder's fingerprint (`models.identity`). Vectors are kept in `folder` (default: where runs of
    MetaCoCo keep theirs), so that another command finds what one has encoded.

    >>> import tempfile
    >>> from hardlook.data.concept_context import list_images
    >>> from hardlook.models.registry import build
    >>> from hardlook.world.layouts import write_world
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = list_images(write_world(folder / "world", "concept-context", count=4))
    >>> encode_dataset_images(build("planted-encoder", role="encoder"), "planted", rows, folder / "tables").shape
    (4, 64)
    """
    paths = [row.path for row in rows]
    table = encode_table(
        _VectorEncoder(encoder),
        identity,
        paths,
        hash_images(rows),
        maps=False,
        read=read_image,
        folder=folder,
        show_progress=_as_context(progress) if progress else None,
        preprocessing=preprocessing,
    )
    return np.asarray(table.vectors)


def _as_context(progress: StartProgress) -> Callable[[int, int], AbstractContextManager[Any]]:
    """The progress as a context manager with `advance`."""
    return lambda total, done: nullcontext(SimpleNamespace(advance=progress(total, done)))
