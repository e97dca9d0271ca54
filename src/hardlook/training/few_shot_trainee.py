"""A few-shot method to the training loop: batches of labelled images and of tasks, their losses, and validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.errors import OptionError
from hardlook.networks.backbones import BACKBONES, build_backbone
from hardlook.networks.backbones.resnet12 import set_training_step
from hardlook.networks.few_shot.catalogue import find_method
from hardlook.networks.few_shot.learner_rules import RULES, score_by_learner, score_by_means
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.few_shot.support_heads import HeadTraining, heads_in_span
from hardlook.randomness import generator
from hardlook.training.constructor_options import check_options, naming_options
from hardlook.training.few_shot_data import EpisodeRows, FewShotData, Rows
from hardlook.training.images.augmentation import Draws, ImageStore, draw_augmentations
from hardlook.training.loop import Stage, StepLoss, place_marks
from hardlook.training.optimisers import build_optimiser
from hardlook.training.recipes import Recipe, StagePlan
from hardlook.training.schedules import compute_rate

SELECTIONS = ("blind", "iid", "ood")
CHUNK = 64  # steps whose tasks and augmentations are drawn and sent to the device together
VALIDATED_IMAGES, VALIDATED_TASKS, TASKS_WITH_HEADS = 256, 8, 64  # that are encoded or classified at a time


def build_method(recipe: Recipe, *, classes: int, size: int, seed: int) -> FewShotMethod:
    """The method of a recipe on its backbone with random weights, equal for equal seeds; images have `size` pixels."""
    kind = find_method(recipe.method).load()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "few-shot weights").integers(2**62)))
        with naming_options(f"the backbone {recipe.backbone}", recipe.backbone_options):
            check_options(BACKBONES.get(recipe.backbone, nn.Module), recipe.backbone_options)
            backbone = build_backbone(recipe.backbone, output=kind.inputs, **recipe.backbone_options)
        channels, side = probe_backbone(backbone, kind.inputs, size)
        facts = {"channels": channels, "classes": classes, "ways": recipe.ways, "side": side}
        with naming_options(f"the method {recipe.method}", recipe.options):
            check_options(kind, recipe.options)
            return kind.build(backbone, **facts, **recipe.options)


def probe_backbone(backbone: nn.Module, output: str, size: int) -> tuple[int, int]:
    """Width and side of a backbone's output for images of `size` pixels; a side of 1 for vectors."""
    training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            shape = backbone(torch.zeros(1, 3, size, size)).shape
    except RuntimeError as error:
        what = f"the backbone takes no images of {size} pixels: {str(error).splitlines()[0]}"
        raise OptionError(what, remedy="give a larger --image-size") from error
    backbone.train(training)
    axes = {"vectors": 2, "maps": 4, "tokens": 3}[output]
    if len(shape) != axes:
        what = f"the method needs {output}, and {type(backbone).__name__} gives none"
        raise OptionError(what, remedy="choose another --backbone, such as vit-small for tokens")
    if output == "maps":
        return int(shape[1]), int(shape[-1])
    if output == "tokens":
        return int(shape[-1]), round((shape[1] - 1) ** 0.5)
    return int(shape[-1]), 1


def scores_features(method: FewShotMethod) -> bool:
    """Whether an image's features can be computed once for all tasks: the method classifies by `score` on `embed`."""
    kind = type(method)
    return kind.classify is FewShotMethod.classify and kind.embed is FewShotMethod.embed


def describe_validation(method: FewShotMethod) -> str:
    """The rule by which validation tasks are answered, in words."""
    if method.learner is not None:
        return f"the learner {method.learner}" if method.learner in RULES else "cosine to class means"
    untuned = {"score": "its own, without fine-tuning", "means": "cosine to class means, without fine-tuning"}
    return untuned.get(method.validated_by, "its own")


def choose_rule(method: FewShotMethod) -> Callable[[Episodes], Tensor] | None:
    """What answers validation tasks from features, computed once for all of them; None where images are needed.

    The rule of a test where it can be had, that of its learner for a method with one. A test that tunes the backbone
    for each task takes minutes for what else takes a second, so these are judged by the backbone as it is.
    """
    if method.learner is not None:
        return partial(score_by_learner, method)
    if method.validated_by == "means":
        return score_by_means
    return method.score if method.validated_by == "score" or scores_features(method) else None


@dataclass(frozen=True)
class _Batch:
    """One backward pass: images of `rows` (n,) with `draws`, and what they are."""

    rows: Tensor
    draws: Draws | None
    labels: Tensor
    tasks: int = 0
    classes: Tensor | None = None


class FewShotTrainee:
    """A few-shot method to the training loop."""

    replays = True
    """Steps may be replayed as CUDA graphs (`step_graphs`): no loss depends on a count in Python."""

    def __init__(
        self,
        method: FewShotMethod,
        recipe: Recipe,
        plans: Sequence[StagePlan],
        data: FewShotData,
        *,
        seed: int,
        size: int,
        device: torch.device | str = "cpu",
        validations: int = 20,
    ) -> None:
        self.module: nn.Module = method
        self.recipe, self.plans, self.data, self.seed = recipe, tuple(plans), data, seed
        self.device = torch.device(device)
        self.store = ImageStore(torch.from_numpy(np.ascontiguousarray(data.images)).to(self.device), size)
        held = data.validation_images
        self.held = (
            ImageStore(torch.from_numpy(np.ascontiguousarray(held)).to(self.device), size) if held is not None else None
        )
        self.stages: Sequence[Stage] = [
            Stage(plan.recipe.stage, plan.first, plan.last, plan.recipe.clip, plan.recipe.ema) for plan in self.plans
        ]
        self.marks: Sequence[int] = place_marks(self.plans[-1].last, validations)
        self._stage = 0

    def start_stage(self, stage: Stage) -> Optimizer:
        """Tell the method; its optimiser by the recipe."""
        method: Any = self.module
        if hasattr(method, "start_stage"):
            method.start_stage(stage.name)
        self.module.to(self.device)
        self._stage = self.stages.index(stage)
        return build_optimiser(self.module, self.plans[self._stage].recipe)

    def _plan(self, step: int) -> StagePlan:
        return next(plan for plan in self.plans if step < plan.last)

    def compute_rate(self, step: int) -> float:
        """By the recipe's schedule."""
        plan = self._plan(step)
        own = plan.recipe
        return compute_rate(own.schedule, own.lr, step - plan.first, steps=plan.steps, epochs=own.epochs)

    def start_step(self, step: int, rank: int) -> int | None:
        """What dropout and the like draw follows from seed, step and process; DropBlocks drop more with every step."""
        set_training_step(self.module, step)
        return int(generator(self.seed, "training step", step, rank).integers(2**62))

    def draw_batches(self, first: int, last: int, rank: int, world: int) -> Iterator[Sequence[_Batch]]:
        """Labelled images or tasks, with their augmentations, drawn for many steps at a time."""
        plan = self._plan(first)
        draw = self._draw_tasks if plan.recipe.stage == "episodes" else self._draw_images
        for start in range(first, last, CHUNK):
            yield from draw(plan, range(start, min(start + CHUNK, last)), rank, world)

    def _draw_tasks(self, plan: StagePlan, steps: range, rank: int, world: int) -> Iterator[Sequence[_Batch]]:
        own, recipe = plan.recipe, self.recipe
        share = _share(own.tasks, world, own.accumulate, "tasks")
        numbers = (np.arange(steps.start, steps.stop)[:, None] - plan.first) * own.tasks + np.arange(own.tasks)
        drawn = self.data.draw(numbers[:, rank * share : (rank + 1) * share].ravel())
        count = len(drawn)
        rows = np.concatenate([drawn.support.reshape(count, -1), drawn.query.reshape(count, -1)], axis=1)
        per_task = rows.shape[1]
        draws = self._draw_augmentations(steps, own.tasks * per_task, rank * share * per_task, share * per_task)
        on_device = torch.from_numpy(rows.ravel()).to(self.device, non_blocking=True)
        classes = torch.from_numpy(drawn.classes).to(self.device, non_blocking=True)
        labels = torch.arange(recipe.ways, device=self.device).repeat_interleave(recipe.queries)
        size = share // own.accumulate
        for place in range(len(steps)):
            batches = []
            for part in range(own.accumulate):
                task = place * share + part * size
                images = slice(task * per_task, (task + size) * per_task)
                batches.append(
                    _Batch(
                        on_device[images],
                        draws.part(images) if draws is not None else None,
                        labels.expand(size, -1),
                        size,
                        classes[task : task + size],
                    )
                )
            yield batches

    def _draw_images(self, plan: StagePlan, steps: range, rank: int, world: int) -> Iterator[Sequence[_Batch]]:
        own = plan.recipe
        share = _share(own.batch, world, own.accumulate, "images")
        rows = np.stack([self._choose_images(step - plan.first, own.batch) for step in steps])
        rows = np.ascontiguousarray(rows[:, rank * share : (rank + 1) * share]).ravel()
        views = self._count_views()
        draws = self._draw_augmentations(steps, own.batch * views, rank * share * views, share * views)
        labels = torch.from_numpy(self.data.labels[rows]).to(self.device, non_blocking=True)
        on_device = torch.from_numpy(rows.repeat(views)).to(self.device, non_blocking=True)
        size = share // own.accumulate
        for place in range(len(steps)):
            starts = [place * share + part * size for part in range(own.accumulate)]
            yield [
                _Batch(
                    on_device[start * views : (start + size) * views],
                    draws.part(slice(start * views, (start + size) * views)) if draws is not None else None,
                    labels[start : start + size],
                )
                for start in starts
            ]

    def _count_views(self) -> int:
        """How many augmentations of each image of a labelled batch the method compares."""
        return int(getattr(self.module, "views", 1))

    def _choose_images(self, step: int, batch: int) -> Rows:
        """(batch,) rows: the images in an order of each epoch's own, one epoch after the other."""
        count = len(self.data.labels)
        places = np.arange(step * batch, (step + 1) * batch)
        chosen = np.empty(batch, np.int64)
        for epoch in np.unique(places // count):
            inside = places // count == epoch
            order = generator(self.seed, "class order", int(epoch)).permutation(count)
            chosen[inside] = order[places[inside] % count]
        return chosen

    def _draw_augmentations(self, steps: range, count: int, first: int, share: int) -> Draws | None:
        """Of each step `count` draws, whatever the number of processes; those of this process."""
        if not self.recipe.augment:
            return None
        drawn = [
            draw_augmentations(generator(self.seed, "augmentation", step), count, self.store.room).part(
                slice(first, first + share)
            )
            for step in steps
        ]
        parts = (
            torch.cat([getattr(one, name) for one in drawn]) for name in ("corner", "mirrored", "factors", "order")
        )
        return Draws(*parts).to(self.device)

    def compute_loss(self, call: Any, batch: _Batch) -> StepLoss:
        """The method's loss of tasks or of labelled images."""
        if batch.draws is None:
            images = self.store.crop_centre(batch.rows)
        else:
            images = self.store.augment(batch.rows, batch.draws)
        if batch.tasks:
            ways, shots = self.recipe.ways, self.recipe.shots
            images = images.view(batch.tasks, -1, *images.shape[1:])
            support = images[:, : ways * shots].reshape(batch.tasks, ways, shots, *images.shape[2:])
            episodes = Episodes(support, images[:, ways * shots :], batch.labels, batch.classes)
            loss, scores = call("loss", episodes)
        else:
            # Image after image, each in all its views; the method takes view after view.
            views = images.view(len(batch.labels), -1, *images.shape[1:]).transpose(0, 1)
            loss, scores = call("class_loss", views.flatten(0, 1), batch.labels)
        count = batch.labels.numel()
        sums = {"loss": loss.detach().float() * count}
        # A loss on mixed or rotated images, or on views without labels, has other scores.
        if scores.shape[:-1] == batch.labels.shape and (batch.tasks or self._count_views() == 1):
            sums["accuracy"] = (scores.detach().argmax(-1) == batch.labels).sum().float()
        return StepLoss(loss, count, sums)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Accuracy on the validation tasks of each mode."""
        method: Any = module
        module.eval()
        if self.held is None:
            return {}
        rule = choose_rule(method)
        # Heads of many tasks are trained in the time of few.
        size = TASKS_WITH_HEADS if isinstance(getattr(method, "head", None), HeadTraining) else VALIDATED_TASKS
        with torch.no_grad(), heads_in_span(method):
            table = _encode(method.emb_func, self.held) if rule is not None else None
            scores = {}
            for mode, tasks in self.data.validation.items():
                right = total = 0
                for start in range(0, len(tasks), size):
                    part = tasks[start : start + size]
                    episodes = self._build_episodes(part, table, mode, start)
                    found = method.classify(episodes) if rule is None else rule(episodes)
                    labels = episodes.require_labels()
                    right += int((found.argmax(-1) == labels).sum())
                    total += labels.numel()
                scores[mode] = right / total
            return scores

    def _build_episodes(self, tasks: EpisodeRows, table: Tensor | None, mode: str, first: int) -> Episodes:
        """The tasks with their queries shuffled, so that their order tells a transductive method nothing."""
        count, ways = tasks.classes.shape
        queries = tasks.query.reshape(count, -1)
        order = np.stack(
            [
                generator(0, "order of queries", mode, first + place).permutation(queries.shape[1])
                for place in range(count)
            ]
        )
        labels = np.repeat(np.arange(ways), tasks.query.shape[2])[order]
        rows = [torch.from_numpy(one).to(self.device) for one in (tasks.support, np.take_along_axis(queries, order, 1))]
        held = self.held
        assert held is not None
        support, query = (table[one] for one in rows) if table is not None else (held.crop_centre(one) for one in rows)
        keys = tuple(f"validation-{first + place}" for place in range(count))
        return Episodes(support, query, torch.from_numpy(labels).to(self.device), keys=keys)

    def select(self, validation: Mapping[str, float]) -> Mapping[str, float]:
        """By accuracy in each mode; without validation the last weights count as the best."""
        return {mode: validation[mode] for mode in SELECTIONS if mode in validation}


def _share(whole: int, world: int, accumulate: int, what: str) -> int:
    if whole % (world * accumulate):
        fitting = -(-whole // (world * accumulate)) * world * accumulate
        raise OptionError(
            f"a step of {whole} {what} cannot be shared by {world} processes with {accumulate} passes each",
            remedy=f"set {'tasks' if what == 'tasks' else 'batch'}={fitting}",
        )
    return whole // world


def _encode(backbone: nn.Module, store: ImageStore) -> Tensor:
    """Features of all images of a store, by centre crops."""
    rows = torch.arange(len(store.images), device=store.images.device)
    return torch.cat([backbone(store.crop_centre(part)).float() for part in torch.split(rows, VALIDATED_IMAGES)])
