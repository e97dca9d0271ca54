"""Optimisers from a recipe, and the moving average of weights.

>>> from hardlook.training.recipes import StageRecipe
>>> optimiser = build_optimiser(nn.Linear(2, 2), StageRecipe(optimiser="sgd", lr=0.1, part_lr={"bias": 0.01}))
>>> [(len(group["params"]), round(group["factor"], 6)) for group in optimiser.param_groups]
[(1, 1.0), (1, 0.1)]
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.training.recipes import StageRecipe


def build_optimiser(module: nn.Module, recipe: StageRecipe) -> Optimizer:
    """The optimiser of a stage; the rate of a group is the scheduled one times its `factor`.

    A parameter has the rate of the longest key of `part_lr` that its name begins with.
    """
    groups: dict[str, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            keys = [key for key in recipe.part_lr if name.startswith(key)]
            groups.setdefault(max(keys, key=len, default=""), []).append(parameter)
    parts: list[dict[str, Any]] = [
        {"params": groups[key], "factor": recipe.part_lr.get(key, recipe.lr) / recipe.lr} for key in sorted(groups)
    ]
    return _build(parts, recipe)


def build_from_groups(groups: Sequence[tuple[list[nn.Parameter], float]], recipe: StageRecipe) -> Optimizer:
    """The optimiser of groups of parameters, each with its factor of the learning rate."""
    return _build([{"params": parameters, "factor": factor} for parameters, factor in groups if parameters], recipe)


def _build(parts: list[dict[str, Any]], recipe: StageRecipe) -> Optimizer:
    if recipe.optimiser == "sgd":
        settings: dict[str, Any] = {"momentum": recipe.momentum, "nesterov": recipe.nesterov}
        return torch.optim.SGD(parts, lr=recipe.lr, weight_decay=recipe.weight_decay, **settings)
    kind = torch.optim.Adam if recipe.optimiser == "adam" else torch.optim.AdamW
    betas = (recipe.betas[0], recipe.betas[1])
    return kind(parts, lr=recipe.lr, weight_decay=recipe.weight_decay, betas=betas)


class MovingAverage:
    """An exponential moving average of a module's parameters; its buffers are those of the last step.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(layer.weight)
    >>> average = MovingAverage(layer, decay=0.9)
    >>> _ = nn.init.ones_(layer.weight)
    >>> average.update(layer)
    >>> round(average.module.weight.item(), 6)
    0.1
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        # Its parameters stay differentiable: methods with an inner loop answer by gradients, in a validation too.
        self.module = copy.deepcopy(module)

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Move the average towards the module's parameters."""
        own: list[Tensor] = list(self.module.parameters())
        others = [one.detach() for one in module.parameters()]
        torch._foreach_lerp_(own, others, 1 - self.decay)
        for buffer, other in zip(self.module.buffers(), module.buffers(), strict=True):
            buffer.copy_(other)
