"""Inner loops of meta-learning: gradient steps on the support of each task, all tasks of a batch at once.

Gradients of the steps themselves are kept (second order) unless `first_order` is set: then each step's gradient is a
constant for the outer loss.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from hardlook.networks.backbones.convolutional import Conv64F
from hardlook.networks.few_shot import task_axis
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.precision import full_precision

Parameters = dict[str, Tensor]


@contextlib.contextmanager
def batch_statistics(network: nn.Module) -> Iterator[None]:
    """Batch normalisation by the statistics of the batch at hand, in training and at test; none are stored.

    It is written out, because the second derivatives of torch's own under `vmap` are off by 1e-4 (torch 2.13, also in
    float64; finite differences agree with these here).
    """
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.forward = partial(_normalise, norm)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for norm in norms:
            del norm.forward


def _normalise(norm: nn.modules.batchnorm._BatchNorm, x: Tensor) -> Tensor:
    # One multiplication and one addition per number: passes over the maps are what this takes its time for.
    scale, shift = _find_scale_and_shift(norm, x)
    shape = [1, -1] + [1] * (x.ndim - 2)
    return torch.addcmul(shift.reshape(shape), x, scale.reshape(shape)).to(x.dtype)


@full_precision
def _find_scale_and_shift(norm: nn.modules.batchnorm._BatchNorm, x: Tensor) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(x, [axis for axis in range(x.ndim) if axis != 1], correction=0)
    scale = norm.weight * (variance + norm.eps).rsqrt()
    return scale, norm.bias - mean * scale


def adapt_and_score(
    network: nn.Module,
    episodes: Episodes,
    *,
    steps: int,
    rates: Callable[[str], float],
    first_order: bool = False,
) -> Tensor:
    """(tasks, queries, ways) scores of `network` after `steps` gradient steps on each task's support.

    `rates` gives the learning rate of a parameter by its name; parameters with rate 0 stay. The supports of a task are
    one batch, and so are its queries. Where a network of ours has a backbone `emb_func` and a `LinearClassifier` and
    nothing else, scores are the classifier's of the backbone's features; for a Conv64F there are kernels for a GPU.
    """
    backbone, classifier = (network._modules.get(name) for name in ("emb_func", "classifier"))
    if isinstance(backbone, Conv64F) and isinstance(classifier, LinearClassifier) and _classifies_plainly(network):
        images = episodes.support.flatten(1, 2), episodes.query
        operations = task_axis.choose_operations(network, backbone, *images)
        if operations is not None:
            names = {id(parameter): name for name, parameter in network.named_parameters()}
            return task_axis.adapt_and_score(
                operations,
                backbone,
                classifier.linear,
                episodes,
                steps=steps,
                rates=lambda parameter: rates(names[id(parameter)]),
                first_order=first_order,
            )
    start = {name: value for name, value in network.named_parameters() if value.requires_grad}
    moved = {name: rates(name) for name in start if rates(name)}
    labels = episodes.support_labels()

    def support_loss(fast: Mapping[str, Tensor], images: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(network, {**start, **fast}, (images,)), labels)

    def score_task(support: Tensor, query: Tensor) -> Tensor:
        fast = {name: start[name] for name in moved}
        for _ in range(steps):
            gradients = grad(support_loss)(fast, support)
            if first_order:
                gradients = {name: gradient.detach() for name, gradient in gradients.items()}
            fast = {name: value - moved[name] * gradients[name] for name, value in fast.items()}
        return functional_call(network, {**start, **fast}, (query,))  # type: ignore[no-any-return]

    with batch_statistics(network):
        scores = vmap(score_task, randomness="different")(episodes.support.flatten(1, 2), episodes.query)
    return torch.as_tensor(scores)


def _classifies_plainly(network: Any) -> bool:
    """Whether scores are a linear layer's of features, and nothing else: a class from elsewhere may do more."""
    own = type(network).__module__.partition(".")[0] == __name__.partition(".")[0]
    if not own or len(network._modules) != 2 or type(network.classifier) is not LinearClassifier:
        return False
    layers = network.classifier.layers
    return len(layers) == 1 and type(layers[0]) is nn.Linear and layers[0].bias is not None


def embed_tasks(backbone: nn.Module, images: Tensor) -> Tensor:
    """(tasks, n, d) features of images (tasks, n, 3, h, w), each task's normalised by its own batch."""
    if isinstance(backbone, Conv64F):
        operations = task_axis.choose_operations(backbone, backbone, images)
        if operations is not None:
            return task_axis.embed(operations, backbone, images)
    with batch_statistics(backbone):
        return torch.stack([backbone(task) for task in images])


@full_precision
def adapt_linear(
    features: Tensor,
    labels: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    steps: int,
    rate: float,
    first_order: bool = False,
) -> tuple[Tensor, Tensor]:
    """Weight (tasks, ways, d) and bias (tasks, ways) of a linear layer after gradient steps on each task's support.

    `features` (tasks, n, d), `labels` (n,), `weight` (ways, d), `bias` (ways,). The gradient of the cross-entropy is
    written out, so that all tasks take a step in two products.
    """
    targets = functional.one_hot(labels, len(bias)).to(features.dtype)
    weight, bias = weight.expand(len(features), -1, -1), bias.expand(len(features), -1)
    for _ in range(steps):
        errors = (features @ weight.mT + bias[:, None]).softmax(-1) - targets
        moves = errors.mT @ features / len(labels), errors.mean(1)
        if first_order:
            moves = moves[0].detach(), moves[1].detach()
        weight, bias = weight - rate * moves[0], bias - rate * moves[1]
    return weight, bias


class LinearClassifier(nn.Module):
    """A linear layer under the name that published meta-learners give it (`layers.0`)."""

    def __init__(self, channels: int, ways: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(channels, ways))

    @property
    def linear(self) -> nn.Linear:
        """The layer itself."""
        layer = self.layers[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(self, features: Tensor) -> Tensor:
        """(n, ways) scores of features (n, d)."""
        return self.layers(features)  # type: ignore[no-any-return]
