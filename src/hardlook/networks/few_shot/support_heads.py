"""Classifiers that are trained on the support of each task at test time, all tasks of a batch at once.

A head is a set of tensors with a leading axis of tasks. Optimisers work element by element, so the tasks of a batch are
trained as each would be alone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes
from hardlook.randomness import generator

PUBLISHED_SGD: dict[str, Any] = {"momentum": 0.9, "dampening": 0.9, "weight_decay": 1e-3}
Kind = Literal["linear", "weight-norm", "cosine"]
Order = Callable[[str, int, int], "np.ndarray[Any, np.dtype[np.int64]]"]
"""The order of the supports in an epoch: from a task's key, the epoch and their number."""


def draw_order(key: str, epoch: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A permutation drawn from the task's key and the epoch."""
    return generator(0, "support-head", key, epoch).permutation(count)


@dataclass(frozen=True)
class HeadTraining:
    """How a head is trained on a support: `epochs` passes in batches of `batch`.

    `optimiser` is sgd (with `options` momentum, dampening, weight_decay) or adam, at the learning rate `rate`.
    """

    kind: Kind = "linear"
    scale: float = 1.0
    epochs: int = 100
    batch: int = 4
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.01
    options: dict[str, Any] = field(default_factory=lambda: dict(PUBLISHED_SGD))
    order: Order = draw_order
    start: Callable[[str, tuple[int, ...]], Tensor] | None = None
    """The first values of the tensor of that name and shape (ways, ...); None for the usual random ones."""
    in_span: bool = False
    """Train in coordinates of the span of supports and first weights: the same head but for rounding, sooner."""

    def fit(self, features: Tensor, labels: Tensor, ways: int, keys: Sequence[str]) -> dict[str, Tensor]:
        """The tensors of a head per task, trained on `features` (tasks, n, d) with `labels` (n,)."""
        with torch.enable_grad():
            inputs = features.detach()
            head, basis = self._start(inputs, ways, keys), None
            if self.in_span:
                inputs, head, basis = _reduce(inputs, head)
            head = {name: value.clone().requires_grad_() for name, value in head.items()}
            optimiser: torch.optim.Optimizer = torch.optim.Adam(list(head.values()), lr=self.rate)
            if self.optimiser == "sgd":
                optimiser = torch.optim.SGD(list(head.values()), lr=self.rate, **self.options)
            for rows in self._batches(keys, len(labels)):
                places = rows.to(inputs.device)
                scores = self.score(head, inputs.gather(1, places[..., None].expand(-1, -1, inputs.shape[-1])))
                losses = functional.cross_entropy(scores.flatten(0, 1), labels[places].flatten(), reduction="none")
                loss = losses.sum() / places.shape[1]
                optimiser.zero_grad()
                torch.autograd.backward(loss)
                optimiser.step()
        trained = {name: value.detach() for name, value in head.items()}
        if basis is not None:
            trained = {name: value @ basis if name in _ROWS else value for name, value in trained.items()}
        return trained

    def score(self, head: dict[str, Tensor], features: Tensor) -> Tensor:
        """(tasks, n, ways) scores of `features` (tasks, n, d)."""
        if self.kind == "linear":
            return features @ head["weight"].mT + head["bias"][:, None]
        if self.kind == "weight-norm":
            units = features / (features.norm(dim=-1, keepdim=True) + 1e-5)
            weight = head["weight_g"] * head["weight_v"] / head["weight_v"].norm(dim=-1, keepdim=True)
            return torch.as_tensor(self.scale * units @ weight.mT)
        units = functional.normalize(features, dim=-1)
        return torch.as_tensor(self.scale * units @ functional.normalize(head["weight"], dim=-1).mT)

    def classify(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores of a batch of episodes, each by a head of its own."""
        keys = features.keys or [""] * len(features)
        support = features.support.flatten(1, 2)
        head = self.fit(support, features.support_labels(), features.ways, keys)
        return self.score(head, features.query)

    def _start(self, features: Tensor, ways: int, keys: Sequence[str]) -> dict[str, Tensor]:
        shapes: dict[str, tuple[int, ...]] = {"weight": (ways, features.shape[-1])}
        if self.kind == "linear":
            shapes["bias"] = (ways,)
        if self.kind == "weight-norm":
            shapes = {"weight_g": (ways, 1), "weight_v": (ways, features.shape[-1])}
        head = {}
        for name, shape in shapes.items():
            values = [self.start(name, shape) if self.start else _draw(name, shape, features, key) for key in keys]
            head[name] = torch.stack(values).to(features)
        if self.start is None and self.kind == "weight-norm":
            head["weight_g"] = head["weight_v"].norm(dim=-1, keepdim=True)
        return head

    def _batches(self, keys: Sequence[str], count: int) -> Iterator[Tensor]:
        """(tasks, batch) rows of the supports, batch after batch."""
        for epoch in range(self.epochs):
            orders = torch.from_numpy(np.stack([self.order(key, epoch, count) for key in keys]))
            yield from torch.split(orders, self.batch, 1)


_ROWS = ("weight", "weight_v")  # tensors (tasks, ways, d) whose rows are mixtures of supports and of their start


def _reduce(features: Tensor, head: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor], Tensor | None]:
    """Features (tasks, n, d) and the start of a head, in coordinates of the span that the head never leaves.

    Gradients are mixtures of supports; decay and momentum mix what is there. An orthonormal basis (tasks, r, d) of
    supports and first weights keeps every product and length, and r is n + ways where d may be 1600. None where it
    would not be smaller.
    """
    name = next(one for one in _ROWS if one in head)
    basis = None
    if features.shape[1] + head[name].shape[1] < features.shape[2]:
        rows = torch.cat([features, head[name]], 1).double()
        # With equal or empty rows some of these directions are any: they are orthonormal all the same.
        basis = torch.linalg.qr(rows.mT).Q.mT.to(features)
        features, head = features @ basis.mT, {**head, name: head[name] @ basis.mT}
    return features, head, basis


@contextlib.contextmanager
def heads_in_span(network: nn.Module) -> Iterator[None]:
    """Heads of a network, and of those within it, are trained in the span meanwhile."""
    owners: list[Any] = [one for one in network.modules() if isinstance(getattr(one, "head", None), HeadTraining)]
    heads = [owner.head for owner in owners]
    for owner in owners:
        owner.head = replace(owner.head, in_span=True)
    try:
        yield
    finally:
        for owner, head in zip(owners, heads, strict=True):
            owner.head = head


def _draw(name: str, shape: tuple[int, ...], features: Tensor, key: str) -> Tensor:
    """Uniform in +-1 / sqrt(d), torch's start of a linear layer, drawn from the task's key."""
    bound = 1 / math.sqrt(features.shape[-1])
    return torch.from_numpy(generator(0, "support-head", "start", name, key).uniform(-bound, bound, shape))


class WeightNormLinear(nn.Module):
    """Cosine-like scores: unit features times rows of learned length and direction; no bias."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.weight_v = nn.Parameter(nn.init.kaiming_uniform_(torch.empty(classes, channels), a=math.sqrt(5)))
        self.weight_g = nn.Parameter(self.weight_v.detach().norm(dim=1, keepdim=True))

    def forward(self, features: Tensor) -> Tensor:
        """(n, classes) scores of features (n, d), without a scale."""
        units = features / (features.norm(dim=-1, keepdim=True) + 1e-5)
        weight = self.weight_g * self.weight_v / self.weight_v.norm(dim=1, keepdim=True)
        return torch.as_tensor(units @ weight.mT)
