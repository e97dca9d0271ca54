"""Training semantic projections: maps of a frozen encoder, made once, and the words of their cells.

Which cells a step trains on follows from seed and step alone. Everything here is arrays and tensors; whoever knows the
dataset gives maps, shares of classes and word vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from hardlook.errors import DataError
from hardlook.fingerprints import hash_array
from hardlook.networks.open_vocabulary.projection import SemanticProjection
from hardlook.randomness import generator
from hardlook.training.folder import ShowProgress, fit_to_budget, is_finished, make_identity, train_in_folder
from hardlook.training.loop import SingleStageTrainee, Stage, StepLoss, place_marks
from hardlook.training.optimisers import build_optimiser
from hardlook.training.projection.recipes import ProjectionRecipe
from hardlook.training.recipes import Budget, StagePlan, plan_stage

Rows = NDArray[np.int64]
METHOD, KIND = "semantic-projection", "projection"
SELECTION = "held-back"
VALIDATED_IMAGES = 16


@dataclass(frozen=True, eq=False)
class ProjectionData:
    """Maps of n images and what is in each of their cells.

    `maps` (n, h, w, C) float16 or float32. `shares` (n, h, w, 1 + K) float32: the share of a cell's pixels that are
    background (first) and of each of the K trained classes; what is missing to 1 is ignored. `words` (K, D) float32 of
    length 1 are the vectors of the classes `names`. `rows` are the images that train, `held` those held back;
    `images` are the ids of all.
    """

    maps: Tensor
    shares: Tensor
    words: NDArray[np.float32]
    names: tuple[str, ...]
    rows: Rows
    held: Rows
    facts: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Batch:
    """Images of a step and, of each, the places of the cells that are looked at; None for all."""

    rows: Rows
    cells: Rows | None


class ProjectionTrainee(SingleStageTrainee):
    """A semantic projection to the training loop."""

    def __init__(
        self,
        network: SemanticProjection,
        recipe: ProjectionRecipe,
        data: ProjectionData,
        *,
        seed: int,
        device: torch.device | str = "cpu",
        validations: int = 10,
        budget_images: int = 0,
    ) -> None:
        self.module: nn.Module = network
        self.recipe, self.data, self.seed, self.device = recipe, data, seed, torch.device(device)
        self.maps, self.shares = data.maps.flatten(1, 2).to(self.device), data.shares.flatten(1, 2).to(self.device)
        size = (data.shares.shape[-1], data.words.shape[1])
        # The background's vector is learnt, so its row is a placeholder.
        self.words = torch.zeros(size, device=self.device)
        self.words[1:] = torch.from_numpy(data.words).to(self.device)
        self.background = torch.arange(size[0], device=self.device) == 0
        self.weights = weigh_classes(self.shares[torch.from_numpy(data.rows).to(self.device)], recipe.balance)
        self.plans: tuple[StagePlan, ...] = plan_stage(recipe.stage, len(data.rows), budget_images)
        plan = self.plans[0]
        self.stages: Sequence[Stage] = [
            Stage(recipe.stage.stage, plan.first, plan.last, recipe.stage.clip, recipe.stage.ema)
        ]
        self.marks: Sequence[int] = place_marks(plan.last, validations)

    def start_stage(self, stage: Stage) -> Optimizer:
        """The recipe's optimiser of all parameters."""
        self.module.to(self.device)
        return build_optimiser(self.module, self.recipe.stage)

    def draw_batches(self, first: int, last: int, rank: int, world: int) -> Iterator[Sequence[_Batch]]:
        """The images of each step with their cells, the share of this process."""
        own = self.recipe.stage
        if own.batch % (world * own.accumulate):
            what = f"a step of {own.batch} cannot be shared by {world} processes in {own.accumulate} parts"
            raise DataError(what, remedy="change batch or accumulate with --set")
        share = own.batch // world
        size = share // own.accumulate
        cells = self.maps.shape[1]
        for step in range(first, last):
            rows = self._draw_rows(np.arange(step * own.batch, (step + 1) * own.batch))
            chosen = None
            if 0 < self.recipe.cells < cells:
                rng = generator(self.seed, "cells", step)
                chosen = rng.permuted(np.tile(np.arange(cells), (len(rows), 1)), axis=1)[:, : self.recipe.cells]
            starts = range(rank * share, (rank + 1) * share, size)
            yield [
                _Batch(rows[start : start + size], None if chosen is None else chosen[start : start + size])
                for start in starts
            ]

    def _draw_rows(self, numbers: Rows) -> Rows:
        """The images with these numbers: all of them in random order, again and again."""
        count = len(self.data.rows)
        orders = {epoch: _permute(self.seed, epoch, count) for epoch in np.unique(numbers // count).tolist()}
        return np.array([self.data.rows[orders[number // count][number % count]] for number in numbers.tolist()])

    def compute_loss(self, call: Any, batch: _Batch) -> StepLoss:
        """Cross-entropy between the words of a cell and the shares of its pixels; and how many are right."""
        rows = torch.from_numpy(batch.rows).to(self.device)
        if batch.cells is None:
            maps, shares = self.maps[rows], self.shares[rows]
        else:
            where = torch.from_numpy(batch.cells).to(self.device)
            maps, shares = self.maps[rows[:, None], where], self.shares[rows[:, None], where]
        logits = call("score", maps.float(), self.words, self.background).float()
        weighted = shares * self.weights
        loss = -(weighted * functional.log_softmax(logits, dim=-1)).sum() / weighted.sum().clamp(min=1e-6)
        right = shares.gather(-1, logits.detach().argmax(-1, keepdim=True)).sum() / shares.sum().clamp(min=1e-6)
        count = len(batch.rows)
        return StepLoss(loss, count, {"loss": loss.detach() * count, "pixel_accuracy": right * count})

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Mean IoU over background and trained classes on images held back, each cell with one word; none without."""
        if not len(self.data.held):
            return {}
        module.eval()
        network: Any = module
        kinds = self.shares.shape[-1]
        hits, true, found = (torch.zeros(kinds, dtype=torch.float64) for _ in range(3))
        with torch.no_grad():
            for start in range(0, len(self.data.held), VALIDATED_IMAGES):
                rows = torch.from_numpy(self.data.held[start : start + VALIDATED_IMAGES]).to(self.device)
                shares = self.shares[rows].flatten(0, 1).double()
                answers = network.score(self.maps[rows].float(), self.words, self.background).argmax(-1).flatten()
                picked = functional.one_hot(answers, kinds).double()
                hits += (shares * picked).sum(0).cpu()
                true += shares.sum(0).cpu()
                found += (picked * shares.sum(1, keepdim=True)).sum(0).cpu()
        shown = true > 0
        return {SELECTION: float((hits / (true + found - hits).clamp(min=1e-9))[shown].mean())} if shown.any() else {}

    def select(self, validation: Mapping[str, float]) -> Mapping[str, float]:
        """By the mean IoU on images that are held back."""
        return validation


@lru_cache(maxsize=8)
def _permute(seed: int, epoch: int, count: int) -> Rows:
    return generator(seed, "order of images", epoch).permutation(count)


def weigh_classes(shares: Tensor, balance: float) -> Tensor:
    """(1 + K,) weights of classes whose cells are (..., 1 + K): pixels to the power of -balance, of mean 1 per pixel.

    >>> weigh_classes(torch.tensor([[8.0, 2.0]]), 1.0).tolist()
    [0.625, 2.5]
    """
    pixels = shares.flatten(0, -2).sum(0, dtype=torch.float64)
    raw = torch.where(pixels > 0, pixels.clamp(min=1e-9) ** -balance, torch.zeros_like(pixels))
    return (raw * pixels.sum() / (raw * pixels).sum().clamp(min=1e-12)).float()


def build_projection(recipe: ProjectionRecipe, channels: int, dimension: int, *, seed: int) -> SemanticProjection:
    """The network of a recipe with random weights, equal for equal seeds."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "projection weights").integers(2**62)))
        return SemanticProjection(channels, dimension, hidden=recipe.hidden, dropout=recipe.dropout)


def train_projection(
    data: ProjectionData,
    recipe: ProjectionRecipe,
    folder: Path,
    fabric: Any,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    precision: str = "float32",
    validations: int = 10,
    code: str = "",
    save_seconds: float | None = 30.0,
    show_progress: ShowProgress | None = None,
) -> None:
    """Train a projection, or resume its training in `folder`; a finished one stays as it is.

    `show_progress(total, done, images)` is called with steps.
    """
    budget = budget or Budget()
    folder.mkdir(parents=True, exist_ok=True)
    identity = make_identity(
        recipe.to_json(), fabric, seed=seed, budget=budget, precision=precision, validations=validations,
        data=data.facts, further={"classes": list(data.names), "words": hash_array(data.words)},
    )  # fmt: skip
    if is_finished(folder, identity):
        return
    channels, dimension = data.maps.shape[-1], data.words.shape[1]
    network = build_projection(recipe, channels, dimension, seed=seed)
    network.set_statistics(*measure_features(data.maps, data.rows))

    def make(module: SemanticProjection, images: int) -> ProjectionTrainee:
        return ProjectionTrainee(
            module, recipe, data, seed=seed, device=fabric.device, validations=validations, budget_images=images
        )

    trainee = fit_to_budget(network, make, folder, budget, fabric, validations, identity=identity, precision=precision)
    card = {
        "kind": KIND,
        "method": METHOD,
        "backbone": recipe.encoder,
        "channels": channels,
        "dimension": dimension,
        "identity": identity,
        "code": code,
        "validation_rule": "its own",
        "score": "mean IoU",
    }
    train_in_folder(
        trainee,
        folder,
        fabric,
        card,
        selections=[SELECTION] if len(data.held) else [],
        precision=precision,
        save_seconds=save_seconds,
        show_progress=show_progress,
    )


def measure_features(maps: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """Mean and deviation (C,) of the features in all cells of the images `rows`; one image at a time, in order."""
    channels = maps.shape[-1]
    total, squares = (torch.zeros(channels, dtype=torch.float64) for _ in range(2))
    for row in rows.tolist():
        cells = maps[row].reshape(-1, channels).double().cpu()
        total += cells.sum(0)
        squares += (cells * cells).sum(0)
    count = max(1, len(rows) * maps.shape[1] * maps.shape[2])
    mean = total / count
    return mean.float(), (squares / count - mean * mean).clamp(min=0).sqrt().float()
