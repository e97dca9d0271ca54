"""What a trainable few-shot method is to the training loop, to checkpoints and to a benchmark.

A method is a torch module with a backbone (`emb_func`) and its own layers, named as in the published checkpoints. It
trains on episodes (`loss`), on labelled batches (`class_loss`), or first on one and then on the other (`stages`), and
scores queries of episodes (`classify`). Its layers see features only, so that a method can be tested without a
backbone.

>>> from hardlook.networks.few_shot.protonet import ProtoNet
>>> support, query = torch.tensor([[[[0.0]], [[4.0]]]]), torch.tensor([[[1.0]]])
>>> ProtoNet().classify(Episodes(support, query)).tolist()
[[[-1.0, -9.0]]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.precision import full_precision
from hardlook.randomness import generator

Stage = Literal["classes", "episodes", "distillation"]
"""A stage trains on labelled images (`classes`), on few-shot tasks (`episodes`), or on labelled images again, from what
was learned before (`distillation`)."""

Noise = Callable[..., Tensor]
"""Draws standard normal numbers of a shape (tasks, ...), a dtype and a device."""


@dataclass(frozen=True)
class Episodes:
    """A batch of few-shot tasks, of images or of their features.

    `support` (tasks, ways, shots, ...) and `query` (tasks, queries, ...); `labels` (tasks, queries) int64 in
    0..ways-1, None where they are unknown; `classes` (tasks, ways) int64, the training classes of each task. `keys`
    name the tasks: a method that draws random numbers at test time draws them from these.
    """

    support: Tensor
    query: Tensor
    labels: Tensor | None = None
    classes: Tensor | None = None
    keys: Sequence[str] = ()

    @property
    def ways(self) -> int:
        """Classes per task."""
        return self.support.shape[1]

    @property
    def shots(self) -> int:
        """Supports per class."""
        return self.support.shape[2]

    def __len__(self) -> int:
        return len(self.support)

    def support_labels(self) -> Tensor:
        """(ways * shots,) labels of the supports of a task, class after class."""
        return torch.arange(self.ways, device=self.support.device).repeat_interleave(self.shots)

    def require_labels(self) -> Tensor:
        """`labels`; an error where there are none."""
        if self.labels is None:
            raise ValueError("a loss needs the labels of the queries")
        return self.labels

    def require_classes(self) -> Tensor:
        """`classes`; an error where there are none."""
        if self.classes is None:
            raise ValueError("this loss needs the training classes of each task")
        return self.classes


class FewShotMethod(nn.Module):
    """The defaults: one stage on episodes, cross-entropy of the scores.

    A subclass implements `score` (features to scores) or `classify` (images to scores) and, where its training differs,
    `loss` or `class_loss`. `inputs` is what its backbone has to return.

    On a GPU a step may be recorded and replayed without its Python. So a loss that changes from step to step keeps what
    it changes by in buffers, which it writes in place, and draws random numbers on the device of its images.
    """

    inputs: ClassVar[Literal["vectors", "maps", "tokens"]] = "vectors"
    stages: ClassVar[tuple[Stage, ...]] = ("episodes",)
    transductive: ClassVar[bool] = False
    """Whether the score of a query depends on the other queries of its task."""

    fixed_ways: bool = False
    """Whether its layers are made for as many classes in a task as in training, no more and no fewer."""

    views: ClassVar[int] = 1
    """How many augmentations of each image `class_loss` takes: n images in their first view, then in their second."""

    inner: ClassVar[type[FewShotMethod] | None] = None
    """The method that this one is around, which takes the options whose names begin with `inner_prefix`."""

    inner_prefix: ClassVar[str] = ""

    learner: ClassVar[str | None] = None
    """The registered few-shot learner that classifies on this method's features, where it has no rule of its own."""

    validated_by: ClassVar[Literal["classify", "score", "means"]] = "classify"
    """How weights are judged while they are trained: as in a test, or without the tuning of a test, which is slow.

    `score` takes the features of the backbone as it is, `means` the cosine to class means."""

    def __init__(self, backbone: nn.Module | None = None) -> None:
        super().__init__()
        self.emb_func = backbone if backbone is not None else nn.Identity()

    @classmethod
    def build(cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, **options: Any) -> Self:
        """The method as the training loop makes it.

        `channels` and `side` are those of the backbone's output (a side of 1 for vectors), `classes` counts the
        training classes, `ways` the classes of a task; the constructor gets those of them that it names. `options` are
        a method's own.
        """
        facts = {"channels": channels, "classes": classes, "ways": ways, "side": side}
        named = _list_parameters(cls)
        return cls(backbone, **{name: value for name, value in facts.items() if name in named}, **options)

    def start_stage(self, stage: Stage) -> None:
        """Called by the training loop before the first step of a stage, and when it resumes in one."""

    def embed(self, episodes: Episodes) -> Episodes:
        """The episodes with features in place of images, in one forward pass."""
        tasks, ways, shots = episodes.support.shape[:3]
        images = torch.cat([episodes.support.flatten(1, 2), episodes.query], 1)
        features = self.emb_func(images.flatten(0, 1)).unflatten(0, (tasks, -1))
        support = features[:, : ways * shots].unflatten(1, (ways, shots))
        return replace(episodes, support=support, query=features[:, ways * shots :])

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores from features, higher is likelier."""
        raise NotImplementedError(f"{type(self).__name__} has no score on features")

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores of images."""
        return self.score(self.embed(episodes))

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The training loss of a batch of episodes, a scalar, and the scores (tasks, queries, ways)."""
        scores = self.classify(episodes)
        return cross_entropy(scores, episodes.require_labels()), scores

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The training loss of labelled images, a scalar, and the scores (n, training classes)."""
        raise NotImplementedError(f"{type(self).__name__} does not train on classes")


class ClassClassifier(FewShotMethod):
    """A backbone that learns the training classes with a layer on its features; a subclass makes it."""

    stages: ClassVar[tuple[Stage, ...]] = ("classes",)
    class_layer: ClassVar[str] = "classifier"
    """The attribute that is the layer, as published files name it."""

    def score_classes(self, features: Tensor) -> Tensor:
        """(n, training classes) scores of features (n, ...)."""
        layer: nn.Module | None = getattr(self, self.class_layer, None)
        if layer is None:
            raise ValueError(f"{type(self).__name__} was built without training classes; pass classes=N")
        return layer(features)  # type: ignore[no-any-return]

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the training classes."""
        scores = self.score_classes(self.emb_func(images))
        return functional.cross_entropy(scores, labels), scores


def _list_parameters(kind: type[FewShotMethod]) -> set[str]:
    """Names that the constructor of a class takes; one that passes options on takes those of its base class too."""
    names: set[str] = set()
    for base in kind.__mro__:
        if "__init__" in vars(base):
            found = signature(base.__init__).parameters  # type: ignore[misc]
            names |= found.keys()
            if not any(one.kind is one.VAR_KEYWORD for one in found.values()):
                break
    return names


def open_noise(given: Noise | None, episodes: Episodes, purpose: str) -> Noise:
    """What a method draws noise with: `given` where there is one, else each task's own from its key.

    A task with a key has the same noise whenever it is answered, and beside whichever other tasks. Tasks without keys,
    as in training, have that of torch's generator.
    """
    if given is not None or not episodes.keys:
        return given or torch.randn
    sources = [generator(0, purpose, key) for key in episodes.keys]

    def draw(shape: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        values = np.stack([source.standard_normal(tuple(shape[1:])) for source in sources])
        return torch.from_numpy(values).to(device=device, dtype=dtype)

    return draw


@full_precision
def cross_entropy(scores: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy of scores (tasks, queries, ways) at labels (tasks, queries).

    With `smoothing` e the true class has 1 - e and each of the others e / (ways - 1), as few-shot papers smooth.
    """
    logs = functional.log_softmax(scores, -1)
    true = logs.gather(-1, labels[..., None])[..., 0]
    if not smoothing:
        return -true.mean()
    others = (logs.sum(-1) - true) / (scores.shape[-1] - 1)
    return -((1 - smoothing) * true + smoothing * others).mean()


@full_precision
def squared_distances(query: Tensor, centres: Tensor) -> Tensor:
    """(..., q, c) squared Euclidean distances of (..., q, d) and (..., c, d)."""
    return (query[..., :, None, :] - centres[..., None, :, :]).square().sum(-1)
