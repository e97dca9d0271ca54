"""`wrap`: any network or function with images in and features, logits, masks or detections out, as a model of a role.

>>> def brightness(images):
...     return np.concatenate([images.mean(axis=1, keepdims=True), np.full_like(images[:, :1], 0.5)], axis=1)
>>> model = wrap(brightness, "semantic-segmenter", classes=["bright", "dark"])
>>> model.name, model.labels, model.segment([np.array([[[255] * 3, [0] * 3]], np.uint8)])[0].tolist()
('brightness', ('bright', 'dark'), [[0, 1]])
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.transformers_sam import SamNetwork
from hardlook.models.registry import missing_members
from hardlook.models.roles import (
    ROLES,
    Clicks,
    Episode,
    Features,
    Image,
    Instances,
    LabelMap,
    Mask,
    Prompted,
    Segments,
    Session,
    Support,
    Vectors,
    check_supports,
)
from hardlook.models.torch_inference import Precision
from hardlook.models.wrapping.class_names import find_class_names, find_things
from hardlook.models.wrapping.detections import read_detections, read_segments
from hardlook.models.wrapping.network_calls import Arrays, NetworkCalls, evaluation_mode
from hardlook.models.wrapping.outputs import (
    Activation,
    MaskReading,
    find_dense,
    is_array,
    output_error,
    read_features,
    read_label_maps,
    read_masks,
    read_vectors,
    to_array,
)
from hardlook.models.wrapping.preprocessing import (
    Prepared,
    Preprocess,
    group_places,
    resize_mask,
    run_in_batches,
    scale_points,
)

GPU_BATCH = 8
"""Images in one call on a GPU, where `batch_size` is not given; on the CPU each is called alone."""

_PROBE_SIDE = 224
_IMAGE_METHODS, _TEXT_METHODS = ("get_image_features", "encode_image"), ("get_text_features", "encode_text")
_LONGEST_TEXT = 4096  # tokenizers without a limit say 10^30


@dataclass(frozen=True)
class WrapOptions:
    """The keywords of `wrap`, which describes them."""

    preprocess: Any = None
    classes: Sequence[str] | Mapping[int, str] | None = None
    things: Sequence[str] | Sequence[bool] | None = None
    tokenizer: Any = None
    accepts: str | None = None
    device: str | None = None
    batch_size: int | None = None
    name: str | None = None
    precision: Precision = "float32"
    arrays: Arrays | None = None
    threshold: float = 0.5
    activation: Activation | None = None


def wrap(
    network: Any,
    role: str,
    *,
    preprocess: Any = None,
    classes: Sequence[str] | Mapping[int, str] | None = None,
    things: Sequence[str] | Sequence[bool] | None = None,
    tokenizer: Any = None,
    accepts: Literal["images", "features", "maps"] | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    name: str | None = None,
    precision: Precision = "float32",
    arrays: Arrays | None = None,
    threshold: float = 0.5,
    activation: Activation | None = None,
) -> Any:
    """A model of the role that calls the network.

    `network` is a torch module, a TorchScript module, a program of torch.export, a function, or the path of a file:
    .onnx, .pt2 (torch.export) or TorchScript with any other ending. Open only files that you trust. What it may answer
    in each role: docs/your-own-model.md. A network stays in your hands: it is in evaluation mode and without gradients
    during a call, and afterwards as it was.

    - `role`: encoder, image-text-encoder, saliency, semantic-segmenter, instance-segmenter, panoptic-segmenter,
      one-shot-segmenter, few-shot-learner or promptable-segmenter.
    - `preprocess`: None for RGB in [0, 1], float32 (N, 3, H, W) at the image's size; a dict with `size` (a number or
      (height, width)), `mean`, `std` and `interpolation`; a transform of torchvision's kind, which is given Pillow's
      image; an image processor of transformers; or any function of a uint8 array (H, W, 3) that gives (C, h, w).
    - `classes`: names of the network's classes in order; by default those of `network.config.id2label` or of
      `network.weights.meta["categories"]`. `things`: for panoptic segments, the names of the countable classes.
    - `tokenizer`: for texts, a tokenizer of transformers, or a function from a list of texts to tokens.
    - `accepts`: what a few-shot learner is given: "images" (default), "features" or "maps".
    - `device`: where a torch network is moved to; by default it stays where it is. `precision`: on a GPU also "tf32" or
      "bfloat16". `batch_size`: images in one call, all of one size; by default 1 on the CPU, where answers then do not
      depend on the batch at all, and 8 on a GPU.
    - `arrays`: what a function is given, "torch" or "numpy"; by default torch if it refers to torch or to a module.
    - `threshold`: where a probability makes a mask (.5). `activation`: "sigmoid" if masks of one channel are logits.
    - `name`: by default the name of the class, the function or the file.

    >>> wrap(lambda images: images.max(axis=(1, 2, 3)), "saliency").saliency([np.zeros((2, 2, 3), np.uint8)])
    Traceback (most recent call last):
    ...
    hardlook.errors.ModelError: the network gives numpy ndarray (1,) of float32, which is not understood
      remedy: a mask is (N, 1, h, w) or (N, h, w), or logits (N, 2, h, w) of background and object; wrap a function \
that picks it
    """
    options = WrapOptions(
        preprocess=preprocess,
        classes=classes,
        things=things,
        tokenizer=tokenizer,
        accepts=accepts,
        device=device,
        batch_size=batch_size,
        name=name,
        precision=precision,
        arrays=arrays,
        threshold=threshold,
        activation=activation,
    )
    if role not in WRAPPERS:
        known = ", ".join(WRAPPERS)
        what = f"networks are not wrapped as a {role}" if role in ROLES else f"there is no role {role!r}"
        raise OptionError(what, remedy=f"the roles to wrap a network in are {known}")
    wrapper = WRAPPERS[role]
    _check_options(wrapper, role, options)
    _check_half_model(network, role)
    return wrapper(network, options)


def _check_half_model(network: Any, role: str) -> None:
    """Refuse a model of one's own that lacks something of the role; networks are callable, pairs have other names."""
    lacking = missing_members(network, role)
    methods = [name for name in vars(ROLES[role]) if not name.startswith("_") and name not in lacking]
    if methods and lacking and not callable(network) and role != "image-text-encoder":
        what = f"{type(network).__qualname__} has {', '.join(methods)}, but lacks {', '.join(lacking)}"
        raise ModelError(what, remedy=f"docs/model-roles.md says what a {role} has")


class WrappedModel:
    """What all wrapped networks have.

    `network` as it was given, `name`, `device`, `libraries` (installed distributions whose version can change the
    answers), and `weights_files` of a network that is read from a file.
    """

    takes: ClassVar[tuple[str, ...]] = ()
    """Options that this role has and others have not."""

    whole_image: ClassVar[bool] = True
    """Whether answers are brought back to the image's size, so that preprocessing must not cut the image."""

    def __init__(self, network: Any, options: WrapOptions) -> None:
        self._calls = NetworkCalls(network, device=options.device, precision=options.precision, arrays=options.arrays)
        self._preprocess = Preprocess(options.preprocess, whole=self.whole_image)
        self._batch_size = options.batch_size or (1 if self.device == "cpu" else GPU_BATCH)
        self._reading = MaskReading(options.threshold, options.activation)
        self.name = options.name or _name_network(network)

    @property
    def network(self) -> Any:
        """The network as it was given, or the path of its file."""
        return self._calls.network

    @property
    def device(self) -> str:
        """Where the network runs."""
        return self._calls.device

    @property
    def libraries(self) -> tuple[str, ...]:
        """Names of the installed distributions whose version can change the answers."""
        return tuple(sorted({*self._calls.libraries, *self._preprocess.libraries}))

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The file that the network is read from; none for a network in memory."""
        return self._calls.weights_files

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} on {self.device}>"

    def _answer(
        self, images: Sequence[Image], read: Callable[[Any, list[Prepared]], Sequence[Any]], method: str = ""
    ) -> list[Any]:
        """What `read` makes of the network's outputs, one answer per image, in order."""
        prepared = [self._preprocess.prepare(image) for image in images]
        answers: dict[int, Any] = {}
        for places, inputs, raw in run_in_batches(self._calls, prepared, self._batch_size, method):
            answers.update(zip(places, read(raw, inputs), strict=False))  # a filled batch has more answers
        return [answers[place] for place in range(len(images))]

    def _make_probe(self) -> Image:
        """A black image that the network accepts."""
        fixed = self._calls.input_shape[2:]
        height, width = (length or _PROBE_SIDE for length in fixed) if len(fixed) == 2 else (_PROBE_SIDE, _PROBE_SIDE)
        return np.zeros((height, width, 3), np.uint8)


class WrappedEncoder(WrappedModel):
    """An encoder; it is called once with a black image to learn the length of its vectors."""

    whole_image = False

    def __init__(self, network: Any, options: WrapOptions) -> None:
        super().__init__(network, options)
        self.dimension = self.encode([self._make_probe()]).vectors.shape[1]

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, dimension) float32, and where the network gives maps or tokens, one map (C, h, w) per image."""
        if not len(images):
            return Features(np.zeros((0, self.dimension), np.float32))
        patch = _find_patch(self.network)

        def read(raw: Any, inputs: list[Prepared]) -> list[Any]:
            features = read_features(raw, inputs, patch)
            maps = [None] * len(inputs) if features.maps is None else list(features.maps)
            return list(zip(features.vectors, maps, strict=True))

        answers = self._answer(images, read, _find_method(self.network, _IMAGE_METHODS))
        maps = [cells for _, cells in answers if cells is not None]
        return Features(np.stack([vector for vector, _ in answers]), maps if len(maps) == len(answers) else None)


class WrappedImageTextEncoder(WrappedModel):
    """An encoder of images and texts: a pair of networks, or one with methods for both, as CLIP has them."""

    takes = ("tokenizer",)
    whole_image = False

    def __init__(self, network: Any, options: WrapOptions) -> None:
        paired = isinstance(network, tuple | list) and len(network) == 2
        if not paired and not (_find_method(network, _IMAGE_METHODS) and _find_method(network, _TEXT_METHODS)):
            raise OptionError(
                "the network has no methods for images and texts (get_image_features, get_text_features)",
                remedy="give a pair: a network or function for images, and one for texts",
            )
        image_network, text_network = network if paired else (network, network)
        super().__init__(image_network, replace(options, name=options.name or _name_network(network)))
        self._image_method = "" if paired else _find_method(network, _IMAGE_METHODS)
        self._text_method = "" if paired else _find_method(network, _TEXT_METHODS)
        self._text_calls = self._calls
        if paired:
            self._text_calls = NetworkCalls(
                text_network, device=options.device, precision=options.precision, arrays=options.arrays
            )
        self._tokenizer = options.tokenizer or getattr(options.preprocess, "tokenizer", None)
        self.dimension = self.encode_images([self._make_probe()]).shape[1]

    @property
    def libraries(self) -> tuple[str, ...]:
        """Names of the installed distributions whose version can change the answers."""
        return tuple(sorted({*super().libraries, *self._text_calls.libraries}))

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The files that the networks are read from."""
        return tuple(dict.fromkeys([*self._calls.weights_files, *self._text_calls.weights_files]))

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        if not len(images):
            return np.zeros((0, self.dimension), np.float32)
        read = self._answer(images, lambda raw, inputs: list(read_vectors(raw, len(inputs))), self._image_method)
        return np.stack(read)

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        parts = [np.zeros((0, self.dimension), np.float32)]
        for start in range(0, len(texts), self._batch_size):
            some = list(texts[start : start + self._batch_size])
            raw = self._text_calls(method=self._text_method, named=self._tokenize(some))
            parts.append(read_vectors(raw, len(some)))
        return np.concatenate(parts)

    def _tokenize(self, texts: list[str]) -> Mapping[str, Any]:
        if self._tokenizer is None:
            if self._text_method:
                raise OptionError("the network's texts need a tokenizer", remedy="pass tokenizer=...")
            return {"": texts}
        if any(base.__name__ == "PreTrainedTokenizerBase" for base in type(self._tokenizer).__mro__):
            # All texts to one length: SigLIP was trained so, and a text's vector does not depend on its neighbours.
            longest = min(self._tokenizer.model_max_length, _find_text_length(self._text_calls.network))
            made = self._tokenizer(
                texts, padding="max_length", truncation=True, max_length=longest, return_tensors="np"
            )
        else:
            made = self._tokenizer(texts)
        named = made if isinstance(made, Mapping) else {"": made}
        return {name: to_array(value) if is_array(value) else np.asarray(value) for name, value in named.items()}


class WrappedSaliency(WrappedModel):
    """A saliency model: one channel of probabilities, or logits of background and object."""

    takes = ("activation",)

    def saliency(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """One (H, W) float32 map in [0, 1] per image."""
        return self._answer(images, lambda raw, inputs: read_masks(raw, inputs, self._reading, "the network's map"))


class WrappedSemanticSegmenter(WrappedModel):
    """A semantic segmenter; `labels` are the classes' names, `__background__` is `background`."""

    takes = ("classes", "activation", "threshold")

    def __init__(self, network: Any, options: WrapOptions) -> None:
        super().__init__(network, options)
        self._names = find_class_names(network, options.classes)
        self.labels = self._names.labels

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`, -1 where the network predicts no label."""
        return self._answer(images, lambda raw, inputs: read_label_maps(raw, inputs, self._names, self._reading))


class WrappedInstanceSegmenter(WrappedModel):
    """An instance segmenter; `__background__` is not a label, and with `things` other classes are left out."""

    takes = ("classes", "things", "activation", "threshold")

    def __init__(self, network: Any, options: WrapOptions) -> None:
        super().__init__(network, options)
        self._names = find_class_names(network, options.classes).without_background()
        self.labels = self._names.labels
        self._kept = None if options.things is None else find_things(self._names, options.things)

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image, scores descending."""
        return self._answer(
            images, lambda raw, inputs: read_detections(raw, inputs, self._names, self._reading, self._kept)
        )


class WrappedPanopticSegmenter(WrappedModel):
    """A panoptic segmenter; `things` says which labels are countable."""

    takes = ("classes", "things", "threshold")

    def __init__(self, network: Any, options: WrapOptions) -> None:
        super().__init__(network, options)
        self._names = find_class_names(network, options.classes).without_background()
        self.labels = self._names.labels
        self.things = find_things(self._names, options.things)

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image; a stuff label has at most one segment."""
        return self._answer(
            images, lambda raw, inputs: read_segments(raw, inputs, self._names, self.things, self._reading)
        )


class WrappedOneShotSegmenter(WrappedModel):
    """A one-shot segmenter: a network of query (N, C, h, w), support (N, C, h, w) and its mask (N, h, w) of 0 and 1."""

    takes = ("activation", "threshold")
    supports_at_once = 1

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) bool per query, each of which has one support."""
        check_supports(queries, supports)
        if wrong := [len(shown) for shown in supports if len(shown) != 1]:
            raise ModelError(f"a query has {wrong[0]} supports, and the network takes one")
        prepared = [self._preprocess.prepare(query) for query in queries]
        shown = [self._preprocess.prepare(one.image) for (one,) in supports]
        masks = [resize_mask(one.mask, made)[None] for (one,), made in zip(supports, shown, strict=True)]
        inputs = [
            (_only_input(query), _only_input(support), mask)
            for query, support, mask in zip(prepared, shown, masks, strict=True)
        ]
        answers: dict[int, Mask] = {}
        for places in group_places([[value.shape for value in one] for one in inputs], self._batch_size):
            raw = self._calls(*(np.concatenate([inputs[place][at] for place in places]) for at in range(3)))
            soft = read_masks(raw, [prepared[place] for place in places], self._reading, "the network's mask")
            answers.update((place, mask > self._reading.threshold) for place, mask in zip(places, soft, strict=True))
        return [answers[place] for place in range(len(queries))]


class WrappedFewShotLearner(WrappedModel):
    """A few-shot learner: a network of supports, their labels (n,) int64 and queries that gives scores (queries, ways).

    A network with `process_support_set(supports, labels)` is shown the supports by it and then called with the queries.
    """

    takes = ("accepts",)
    whole_image = False

    def __init__(self, network: Any, options: WrapOptions) -> None:
        super().__init__(network, options)
        self.accepts = options.accepts or getattr(network, "accepts", "images")
        if self.accepts not in ("images", "features", "maps"):
            raise OptionError(f"accepts is {self.accepts!r}", remedy="one of images, features, maps")
        if self.accepts != "images" and options.preprocess is not None:
            raise OptionError(f"a learner of {self.accepts} is given no images to preprocess")

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 scores per episode."""
        return [self._classify(episode) for episode in episodes]

    def _classify(self, episode: Episode) -> NDArray[np.float32]:
        support, query = self._to_batch(episode.support), self._to_batch(episode.query)
        labels = np.array(episode.support_labels, np.int64)
        if hasattr(self.network, "process_support_set"):
            # A copy that shares the weights: what it learns of the supports stays out of the network.
            calls = copy.copy(self._calls)
            calls.network = copy.copy(self.network)
            calls(support, labels, method="process_support_set")
            raw = calls(query)
        else:
            raw = self._calls(support, labels, query)
        scores = to_array(raw) if is_array(raw) else None
        if scores is None or scores.shape != (len(query), episode.ways):
            expected = f"scores (queries, ways) = {(len(query), episode.ways)}"
            raise ModelError(output_error(raw, "mask").what, remedy=f"a few-shot learner gives {expected}")
        return scores.astype(np.float32)

    def _to_batch(self, given: Any) -> NDArray[Any]:
        if self.accepts != "images":
            return np.array(given, np.float32)
        inputs = [_only_input(self._preprocess.prepare(image)) for image in given]
        if shapes := sorted({value.shape[1:] for value in inputs} - {inputs[0].shape[1:]}):
            raise ModelError(
                f"the images of an episode are inputs of {inputs[0].shape[1:]} and {shapes[0]}",
                remedy="pass preprocess={'size': 84} or another that makes all images one size",
            )
        return np.concatenate(inputs)


class WrappedPromptableSegmenter(WrappedModel):
    """An interactive segmenter: SAM of transformers, or a network of image, points, labels and the previous mask.

    The latter is called for each prompt with the image (1, C, h, w), points (1, n, 2) as (x, y) in its pixels, labels
    (1, n) int64, 1 on the object and 0 beside it, and what it gave for the clicks before, (1, C, h, w), or None.
    """

    takes = ("activation", "threshold")

    def __init__(self, network: Any, options: WrapOptions) -> None:
        super().__init__(network, options)
        self._is_sam = all(hasattr(network, part) for part in ("vision_encoder", "prompt_encoder", "mask_decoder"))
        if self._is_sam:
            if options.preprocess is not None:
                raise OptionError("SAM prepares its images itself", remedy="leave preprocess out")
            _open_sam(network, options.precision)

    @property
    def takes_boxes(self) -> bool:
        """Whether a prompt may have a box: SAM alone."""
        return self._is_sam

    def open(self, image: Image) -> Session:
        """The session on an image; SAM encodes it now, other networks see it with every prompt."""
        if self._is_sam:
            with evaluation_mode([self.network]):
                sam = _open_sam(self.network, self._calls.precision)
                return _SamSession(self.network, sam.open(image, PromptPolicy()))
        return _WrappedSession(self._calls, self._preprocess.prepare(image), self._reading)


@dataclass(frozen=True)
class _SamSession:
    """A session of SAM whose network is in evaluation mode while it answers."""

    network: Any
    session: Session

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        with evaluation_mode([self.network]):
            return self.session.predict(prompts)


@dataclass(frozen=True)
class _WrappedSession:
    """An image and the network that is called with it at every prompt."""

    calls: NetworkCalls
    prepared: Prepared
    reading: MaskReading

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Clicks) -> Prompted:
        points = scale_points(prompt.points, self.prepared)[None]
        labels = np.asarray(prompt.positive, np.int64).reshape(1, -1)
        raw = self.calls(_only_input(self.prepared), points, labels, prompt.state)
        [soft] = read_masks(raw, [self.prepared], self.reading, "the network's mask")
        return Prompted(soft > self.reading.threshold, np.array(to_array(find_dense(raw))))


@functools.lru_cache(maxsize=2)
def _open_sam(network: Any, precision: Precision) -> SamNetwork:
    """The network as the models `sam` and `sam-hq` call it; kept here, so that the model's own state never changes."""
    return SamNetwork(network, precision)


WRAPPERS: Mapping[str, type[WrappedModel]] = {
    "encoder": WrappedEncoder,
    "image-text-encoder": WrappedImageTextEncoder,
    "saliency": WrappedSaliency,
    "semantic-segmenter": WrappedSemanticSegmenter,
    "instance-segmenter": WrappedInstanceSegmenter,
    "panoptic-segmenter": WrappedPanopticSegmenter,
    "one-shot-segmenter": WrappedOneShotSegmenter,
    "few-shot-learner": WrappedFewShotLearner,
    "promptable-segmenter": WrappedPromptableSegmenter,
}


def _check_options(wrapper: type[WrappedModel], role: str, options: WrapOptions) -> None:
    special = {name for kind in WRAPPERS.values() for name in kind.takes}
    for field in fields(options):
        if field.name in special - set(wrapper.takes) and getattr(options, field.name) != field.default:
            others = sorted(known for known, kind in WRAPPERS.items() if field.name in kind.takes)
            raise OptionError(f"a {role} has no {field.name}", remedy=f"leave it out; it is for {', '.join(others)}")
    if options.batch_size is not None and options.batch_size < 1:
        raise OptionError(f"batch_size is {options.batch_size}", remedy="a whole number of at least 1")
    if not 0 <= options.threshold < 1:
        raise OptionError(f"threshold {options.threshold} is not a probability", remedy="from 0 to below 1")
    if options.activation not in (None, "sigmoid"):
        raise OptionError(f"activation is {options.activation!r}", remedy='None or "sigmoid"')


def _name_network(network: Any) -> str:
    if isinstance(network, str | Path):
        return Path(network).stem
    if isinstance(network, tuple | list):
        return " and ".join(map(_name_network, network))
    if isinstance(network, functools.partial):
        return _name_network(network.func)
    return str(getattr(network, "__name__", type(network).__name__))


def _find_method(network: Any, names: Sequence[str]) -> str:
    return next((name for name in names if callable(getattr(network, name, None))), "")


def _find_patch(network: Any) -> tuple[int, int] | None:
    """Height and width of the patches of a vision transformer, as far as it says."""
    config = getattr(network, "config", None)
    for holder in (config, getattr(config, "vision_config", None), getattr(network, "patch_embed", None)):
        patch = getattr(holder, "patch_size", None)
        if isinstance(patch, int):
            return patch, patch
        if isinstance(patch, list | tuple) and len(patch) == 2:
            return int(patch[0]), int(patch[1])
    return None


def _find_text_length(network: Any) -> int:
    config = getattr(network, "config", None)
    texts = getattr(config, "text_config", config)
    return int(getattr(texts, "max_position_embeddings", None) or _LONGEST_TEXT)


def _only_input(prepared: Prepared) -> NDArray[Any]:
    """The images of an input, for networks that are given more than images."""
    return prepared.inputs[""] if "" in prepared.inputs else prepared.inputs["pixel_values"]
