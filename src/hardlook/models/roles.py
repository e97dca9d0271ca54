"""The roles of models, one Protocol per role: which methods a model must have to be evaluated.

Conventions that hold everywhere:

- an image is a uint8 array (H, W, 3), RGB, values 0-255; images of one call may differ in size;
- a mask is a bool array (H, W) of its image's size;
- points are (x, y) in pixels, x to the right, y down, (0, 0) the centre of the top-left pixel;
- a call takes a batch and answers in its order; it changes none of its inputs;
- the same inputs give the same outputs, whatever was called before.

Any object with these methods serves: nothing need be inherited. `hardlook check ROLE MODEL` checks one.

A semantic, instance or panoptic segmenter may choose its words per image: it has an attribute `free_words = True`, and
the same method answers a `PhrasedAnswer` per image. `--pred-words free` scores such answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError

Image = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Vectors = NDArray[np.float32]
Maps = NDArray[np.float32]
LabelMap = NDArray[np.int32]


@dataclass(frozen=True)
class Features:
    """The answer of an encoder: vectors (N, D) float32, and if it has maps one (C, h, w) float32 per image."""

    vectors: Vectors
    maps: Sequence[NDArray[np.float32]] | None = None


@dataclass(frozen=True)
class Instances:
    """Detections of one image, best first.

    `masks` (N, H, W) bool; `boxes` (N, 4) float32 as x0, y0, x1, y1 with the far edge exclusive; `scores` (N,)
    float32 in [0, 1]; `labels` (N,) int32, indices into the model's `labels`.
    """

    masks: NDArray[np.bool_]
    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int32]


@dataclass(frozen=True)
class Segments:
    """A panoptic answer: `map` (H, W) int32 of segment ids, 0 for none; `labels` {segment id: label index}."""

    map: LabelMap
    labels: Mapping[int, int]


@dataclass(frozen=True)
class PhrasedAnswer:
    """The answer of a segmenter in words of its own choosing, for one image.

    `answer` is what the role says, a label map, `Instances` or `Segments`, whose labels are indices into `phrases`:
    texts such as "a red car", for this image alone, in any number. `things` says for each phrase of a panoptic answer
    whether it is countable. A model that answers so has `free_words = True`; its `labels` may be empty.
    """

    answer: Any
    phrases: Sequence[str]
    things: Sequence[bool] = ()


@dataclass(frozen=True)
class Support:
    """One example of the wanted class: an image and the mask of the class in it (may be empty)."""

    image: Image
    mask: Mask


@dataclass(frozen=True)
class PairContext:
    """What a one-shot segmenter may know of a pair beside its images, if it asks for it.

    `fold` is the fold whose model answers, from 0, None where the run has no folds. `class_id` (from 1, as in the
    lists of pairs) and `class_name` are those of the class that the supports show, None where they show none;
    FSS-1000 has no class ids. `training_classes` are the classes that the fold does not test, None where they are not
    known.
    """

    fold: int | None = None
    class_id: int | None = None
    class_name: str | None = None
    training_classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Episode:
    """One few-shot task of `ways` classes.

    `support` and `query` are lists of images (`accepts = "images"`), or what an encoder made of them: float32
    vectors (n, D) (`accepts = "features"`) or float32 maps (n, C, h, w), all of one shape (`accepts = "maps"`).
    `support_labels` (n,) int64 in 0..ways-1, every class at least once, in any order. `key` names the episode:
    learners that draw random numbers draw them from it.
    """

    support: Sequence[Image] | Vectors | Maps
    support_labels: NDArray[np.int64]
    query: Sequence[Image] | Vectors | Maps
    ways: int
    key: str = ""


@dataclass(frozen=True)
class Clicks:
    """A prompt: `points` (n, 2) float32 (x, y) as clicked, `positive` (n,) bool, `state` of the last answer or None.

    `box` (4,) float32 is x0, y0, x1, y1 of the object: points as the others, on its outermost pixels. Only models with
    `takes_boxes = True` are given one; n may be 0 then.
    """

    points: NDArray[np.float32]
    positive: NDArray[np.bool_]
    state: Any = None
    box: NDArray[np.float32] | None = None

    def pixels(self, shape: tuple[int, int]) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
        """Rows and columns (n,) of the clicked pixels, kept inside a frame (H, W)."""
        nearest = np.rint(np.asarray(self.points, np.float64).reshape(-1, 2)).astype(int)
        return np.clip(nearest[:, 1], 0, shape[0] - 1), np.clip(nearest[:, 0], 0, shape[1] - 1)


@dataclass(frozen=True)
class Prompted:
    """The answer to a prompt: a mask, and whatever the model wants back with the next click."""

    mask: Mask
    state: Any = field(default=None, repr=False)


@runtime_checkable
class Encoder(Protocol):
    """Images to vectors and feature maps."""

    dimension: int

    def encode(self, images: Sequence[Image]) -> Features:
        """One finite vector of length `dimension` per image."""


@runtime_checkable
class TextEncoder(Protocol):
    """Texts to vectors."""

    dimension: int

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32, finite."""


@runtime_checkable
class ImageTextEncoder(Protocol):
    """Images and texts to vectors of one space, of length 1, so that a dot product is a cosine."""

    dimension: int

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, dimension) float32 of unit length."""

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32 of unit length."""


@runtime_checkable
class SaliencyModel(Protocol):
    """Where the eye goes first."""

    def saliency(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """One (H, W) float32 map in [0, 1] per image, of the image's size."""


@runtime_checkable
class SemanticSegmenter(Protocol):
    """A label for every pixel, out of a fixed vocabulary."""

    labels: Sequence[str]

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`, -1 where the model predicts no label."""


@runtime_checkable
class InstanceSegmenter(Protocol):
    """Objects with masks, boxes, labels and scores."""

    labels: Sequence[str]

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image, scores descending; none found is N = 0."""


@runtime_checkable
class PanopticSegmenter(Protocol):
    """Every pixel in at most one segment; `things` says which labels are countable."""

    labels: Sequence[str]
    things: Sequence[bool]

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image; a stuff label has at most one segment."""


@runtime_checkable
class OneShotSegmenter(Protocol):
    """The class shown by the support, found in the query."""

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask per query; `supports[i]` holds the K supports of query i (K = 1 for one-shot).

        A model whose method has a third parameter `contexts` is also given a `PairContext` per query.
        """


def check_supports(queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> None:
    """A `ModelError` unless there is one list of supports per query."""
    if len(queries) != len(supports):
        raise ModelError(f"{len(queries)} queries have {len(supports)} lists of supports")


@runtime_checkable
class FewShotLearner(Protocol):
    """Classifies queries from a few labelled supports; `accepts` is "images", "features" (vectors) or "maps"."""

    accepts: str

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 scores per episode, higher is likelier; finite."""


@runtime_checkable
class Session(Protocol):
    """An opened image: the costly part is done, prompts are cheap."""

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One answer per prompt; the prompts are independent of each other."""


@runtime_checkable
class PromptableSegmenter(Protocol):
    """Interactive segmentation: open an image once, then answer batches of clicks.

    A model that takes a box as first prompt says so by an attribute `takes_boxes = True`. One that was published with
    other settings for some datasets is a `DatasetSegmenter`.
    """

    def open(self, image: Image) -> Session:
        """Encode the image and return the session that answers prompts on it."""


@runtime_checkable
class DatasetSegmenter(PromptableSegmenter, Protocol):
    """A promptable segmenter that its authors evaluated with other settings on some datasets, such as DAVIS."""

    def for_dataset(self, dataset: str) -> PromptableSegmenter:
        """The model to use on the images of a dataset; this one where nothing differs, which stays as it is.

        Datasets have the names of `--data`: `grabcut`, `berkeley`, `davis`, `coco-mval`, `tetris`, or any other.
        """


def fit_to_dataset(model: Any, dataset: str) -> Any:
    """The model to use on the images of a dataset: what a `DatasetSegmenter` chooses, any other model itself."""
    choose = getattr(model, "for_dataset", None)
    if choose is None:
        return model
    fitted = choose(dataset)
    if not callable(getattr(fitted, "open", None)):
        raise ModelError(
            f"expected `for_dataset` to give a model with `open`, got {type(fitted).__qualname__} for {dataset}",
            remedy="return self where nothing differs",
        )
    return fitted


@runtime_checkable
class ClickModel(Protocol):
    """Where people would click to correct an error."""

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, at least 0, the chance of a click at each pixel up to a factor.

        `error` is the region to correct (missing object when `positive`, else surplus); the caller
        multiplies by it and normalises.
        """


ROLES: Mapping[str, type] = {
    "encoder": Encoder,
    "text-encoder": TextEncoder,
    "image-text-encoder": ImageTextEncoder,
    "saliency": SaliencyModel,
    "semantic-segmenter": SemanticSegmenter,
    "instance-segmenter": InstanceSegmenter,
    "panoptic-segmenter": PanopticSegmenter,
    "one-shot-segmenter": OneShotSegmenter,
    "few-shot-learner": FewShotLearner,
    "promptable-segmenter": PromptableSegmenter,
    "click-model": ClickModel,
}
