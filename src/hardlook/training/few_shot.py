"""Training few-shot methods: data on the device, batches of classes and of tasks, validation, and the folder.

The tasks are given as numbers of images by whoever knows the dataset; everything here is arrays and tensors.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from hardlook.errors import OptionError
from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.catalogue import find_method
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.randomness import generator
from hardlook.training.augmentation import Draws, ImageStore, draw_augmentations
from hardlook.training.checkpoint import read_card, remove_leftovers, replace_file, write_card, write_checkpoint
from hardlook.training.loop import Calls, Record, Stage, StepLoss, run_loop
from hardlook.training.optimisers import MovingAverage, build_optimiser
from hardlook.training.recipes import Budget, Recipe, StagePlan, plan_stages
from hardlook.training.schedules import compute_rate
from hardlook.training.state import (
    Progress,
    append_line,
    check_identity,
    cut_lines,
    read_lines,
    read_progress,
    restore_state,
    save_state,
)

Rows = NDArray[np.int64]
HISTORY, STATE, BUDGET = "history.jsonl", "training-state.safetensors", "budget.json"
SELECTIONS = ("blind", "iid", "ood")
CHUNK = 64  # steps whose tasks and augmentations are drawn and sent to the device together
VALIDATED_IMAGES, VALIDATED_TASKS = 256, 8  # that are encoded or classified at a time


@dataclass(frozen=True, eq=False)
class EpisodeRows:
    """T tasks as rows of an image array: `support` (T, N, K), `query` (T, N, Q), `classes` (T, N), all int64."""

    support: Rows
    query: Rows
    classes: Rows

    def __len__(self) -> int:
        return len(self.support)

    def __getitem__(self, part: slice | Rows) -> EpisodeRows:
        return EpisodeRows(self.support[part], self.query[part], self.classes[part])


class StoredEpisodes:
    """Tasks that were drawn before, by number; after the last one they start again."""

    def __init__(self, rows: EpisodeRows) -> None:
        self.rows = rows

    def __call__(self, numbers: Rows) -> EpisodeRows:
        """The tasks with these numbers."""
        return self.rows[numbers % len(self.rows)]


@dataclass(frozen=True, eq=False)
class FewShotData:
    """What a method is trained and validated on.

    `images` (n, S, S, 3) uint8 with `labels` (n,) int64 among `classes`; `draw` gives training tasks by number, whose
    classes are labels. `validation_images` and, by mode, `validation` tasks on them; none without a validation split.
    """

    images: NDArray[np.uint8]
    labels: Rows
    classes: tuple[str, ...]
    draw: Callable[[Rows], EpisodeRows]
    validation_images: NDArray[np.uint8] | None = None
    validation: Mapping[str, EpisodeRows] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def save_data(data: FewShotData, path: Path, tasks: int) -> None:
    """Write the data with its first `tasks` training tasks to one `.npz` file, for a machine that has torch alone."""
    drawn = data.draw(np.arange(tasks))
    arrays: dict[str, Any] = {"images": data.images, "labels": data.labels, "classes": np.array(data.classes)}
    if data.validation_images is not None:
        arrays["validation_images"] = data.validation_images
    for name, rows in (("train", drawn), *data.validation.items()):
        arrays |= {f"{name}/{part}": getattr(rows, part).astype(np.int32) for part in ("support", "query", "classes")}
    arrays["facts"] = np.array(json.dumps(dict(data.facts)))
    np.savez(path, **arrays)


def load_data(path: Path) -> FewShotData:
    """The data of `save_data`."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    modes = list(dict.fromkeys(name.partition("/")[0] for name in arrays if "/" in name))
    rows = {
        mode: EpisodeRows(*(arrays[f"{mode}/{part}"].astype(np.int64) for part in ("support", "query", "classes")))
        for mode in modes
    }
    return FewShotData(
        arrays["images"],
        arrays["labels"],
        tuple(map(str, arrays["classes"])),
        StoredEpisodes(rows.pop("train")),
        arrays.get("validation_images"),
        rows,
        json.loads(str(arrays["facts"])),
    )


def build_method(recipe: Recipe, *, classes: int, size: int, seed: int) -> FewShotMethod:
    """The method of a recipe on its backbone with random weights, equal for equal seeds; images have `size` pixels."""
    kind = find_method(recipe.method).load()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "few-shot weights").integers(2**62)))
        backbone = build_backbone(recipe.backbone, output=kind.inputs, **recipe.backbone_options)
        channels, side = probe_backbone(backbone, kind.inputs, size)
        return kind.build(backbone, channels=channels, classes=classes, ways=recipe.ways, side=side, **recipe.options)


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


def has_own_rule(method: FewShotMethod) -> bool:
    """Whether the method itself classifies queries."""
    kind = type(method)
    return kind.classify is not FewShotMethod.classify or kind.score is not FewShotMethod.score


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
        total = self.plans[-1].last
        self.marks: Sequence[int] = sorted(
            {round(total * part / validations) for part in range(1, validations + 1)} - {0}
        )
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

    def choose_seed(self, step: int, rank: int) -> int | None:
        """What dropout and the like draw follows from seed, step and process."""
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
        with torch.no_grad():
            own = has_own_rule(method)
            table = None
            if scores_features(method):
                table = _encode(method.emb_func, self.held)
            scores = {}
            for mode, tasks in self.data.validation.items():
                right = total = 0
                for start in range(0, len(tasks), VALIDATED_TASKS):
                    part = tasks[start : start + VALIDATED_TASKS]
                    episodes = self._build_episodes(part, table, mode, start)
                    if not own:
                        found = score_by_centroids(episodes)
                    else:
                        found = method.classify(episodes) if table is None else method.score(episodes)
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


def score_by_centroids(features: Episodes) -> Tensor:
    """(tasks, queries, ways) cosines to the class means: the validation of methods whose rule is a learner's."""
    query, means = features.query.flatten(2), features.support.mean(2).flatten(2)
    return functional.normalize(query, dim=-1) @ functional.normalize(means, dim=-1).mT


class FolderStore:
    """A training's folder: state, history, and checkpoints of the best weights by each selection."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], card: Mapping[str, Any], main: str) -> None:
        self.folder, self.identity, self.card, self.main = folder, dict(identity), dict(card), main

    def read_progress(self) -> Progress:
        """How far the training is; lines of the history after that are removed."""
        reached = read_progress(self.folder / STATE, self.identity)
        cut_lines(self.folder / HISTORY, reached.step)
        return reached

    def restore(self, module: nn.Module, optimiser: Optimizer | None, average: MovingAverage | None) -> None:
        """Load the last saved state."""
        restore_state(self.folder / STATE, module, optimiser, average)

    def save(self, module: nn.Module, optimiser: Optimizer, average: MovingAverage | None, reached: Progress) -> None:
        """Save the state."""
        save_state(self.folder / STATE, module, optimiser, average, reached, self.identity)

    def append(self, record: Record) -> None:
        """Add a line to the history."""
        line = {"step": record.step, "stage": record.stage, "lr": record.lr, **record.means}
        line |= {f"validation_{name}": value for name, value in record.validation.items()}
        append_line(self.folder / HISTORY, {**line, "seconds": round(record.seconds, 3)})

    def keep_best(self, selection: str, module: nn.Module, record: Record) -> None:
        """Write the checkpoint of a selection: the main one in the folder itself, others in folders within."""
        folder = self.folder if selection == self.main else self.folder / f"by-{selection}"
        chosen = {"by": selection, "step": record.step, "validation": dict(record.validation)}
        write_checkpoint(folder, module.state_dict(), {**self.card, "selected": chosen, "finished": False})


@dataclass(frozen=True)
class Trained:
    """A training: its folder, its card and its history."""

    folder: Path
    card: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]


def train_few_shot(
    data: FewShotData,
    recipe: Recipe,
    folder: Path,
    fabric: Any,
    *,
    seed: int = 0,
    size: int = 84,
    budget: Budget | None = None,
    precision: str = "float32",
    validations: int = 20,
    code: str = "",
    save_seconds: float | None = 30.0,
    start: Mapping[str, Tensor] | None = None,
    show_progress: Callable[[int, int, int], None] | None = None,
) -> None:
    """Train a method, or resume its training in `folder`; a finished one stays as it is.

    `start` are weights of the backbone to begin with. `show_progress(total, done, images)` is called with steps.
    """
    budget = budget or Budget()
    folder.mkdir(parents=True, exist_ok=True)
    identity = {
        "recipe": recipe.to_json(),
        "seed": seed,
        "image size": size,
        "budget": [budget.images, budget.seconds],
        "precision": precision,
        "processes": int(fabric.world_size),
        "validations": validations,
        "classes": list(data.classes),
        "data": dict(data.facts),
        "threads": torch.get_num_threads() if fabric.device.type == "cpu" else None,
        "started from": _fingerprint(start),
    }
    if (folder / "checkpoint.json").is_file() and not (folder / STATE).is_file():
        card = read_card(folder)
        if card.get("finished"):
            check_identity(card["identity"], identity)
            return
    method = build_method(recipe, classes=len(data.classes), size=size, seed=seed)
    recipe = replace(recipe, views=getattr(method, "views", 1))
    if start is not None:
        method.emb_func.load_state_dict(dict(start))
    images = _fix_budget(folder, recipe, data, method, budget, fabric, size=size, seed=seed, validations=validations)
    plans = plan_stages(recipe, len(data.labels), images)
    trainee = FewShotTrainee(
        method, recipe, plans, data, seed=seed, size=size, device=fabric.device, validations=validations
    )
    selections = [mode for mode in SELECTIONS if mode in data.validation]
    main = selections[0] if selections else "last"
    described = {
        "kind": "few-shot",
        "method": recipe.method,
        "backbone": recipe.backbone,
        "parameters": sum(one.numel() for one in method.parameters()),
        "image_size": size,
        "stored_size": int(data.images.shape[1]),
        "identity": identity,
        "code": code,
        "steps": plans[-1].last,
        "stages": [
            {"stage": plan.recipe.stage, "steps": plan.steps, "images": plan.steps * plan.images} for plan in plans
        ],
        "validation_rule": "its own" if has_own_rule(method) else "cosine to class means",
    }
    store = (
        _LastStore(folder, identity, described, main)
        if not selections
        else FolderStore(folder, identity, described, main)
    )
    if fabric.global_rank == 0:
        remove_leftovers(folder)
    total = plans[-1].last

    def report(step: int) -> None:
        if show_progress is not None:
            show_progress(total, step, trainee._plan(max(step - 1, 0)).images)

    reached = run_loop(trainee, store, fabric, precision=precision, save_seconds=save_seconds, show_progress=report)
    if fabric.global_rank == 0:
        finish(folder, main, reached)
    if fabric.world_size > 1:
        fabric.barrier()


def read_trained(folder: Path) -> Trained:
    """The training in a folder."""
    return Trained(folder, read_card(folder), read_lines(folder / HISTORY))


class _LastStore(FolderStore):
    """Without validation the last weights are kept."""

    def save(self, module: nn.Module, optimiser: Optimizer, average: MovingAverage | None, reached: Progress) -> None:
        """Save the state; at the end, the weights before it."""
        if reached.step == self.card["steps"]:
            chosen = {"by": self.main, "step": reached.step, "validation": {}}
            write_checkpoint(self.folder, module.state_dict(), {**self.card, "selected": chosen, "finished": False})
        super().save(module, optimiser, average, reached)


def finish(folder: Path, main: str, reached: Progress) -> None:
    """Say in every checkpoint of the folder that the training is finished, then remove its state."""
    best = {name: {"accuracy": value, "step": step} for name, (value, step) in reached.best.items()}
    for place in (*(folder / f"by-{name}" for name in reached.best if name != main), folder):
        card = read_card(place)
        write_card(place, {**card, "finished": True, "selections": best, "seconds": round(reached.seconds, 3)})
    (folder / STATE).unlink(missing_ok=True)
    (folder / BUDGET).unlink(missing_ok=True)


def _fingerprint(start: Mapping[str, Tensor] | None) -> str | None:
    from hardlook.fingerprints import hash_value

    if start is None:
        return None
    return hash_value([[key, value.shape, float(value.double().sum())] for key, value in sorted(start.items())])


def _fix_budget(
    folder: Path,
    recipe: Recipe,
    data: FewShotData,
    method: FewShotMethod,
    budget: Budget,
    fabric: Any,
    *,
    size: int,
    seed: int,
    validations: int,
) -> int:
    """The budget in images, 0 for none. One in seconds is turned into images once, and kept for those who resume."""
    if not budget.seconds:
        return budget.images
    path = folder / BUDGET
    images = 0
    if fabric.global_rank == 0:
        if path.is_file():
            images = int(json.loads(path.read_text())["images"])
        else:
            images = _estimate_images(recipe, data, method, budget.seconds, fabric, size, seed, validations)
            replace_file(path, json.dumps({"images": images}).encode())
    return int(fabric.broadcast(images)) if fabric.world_size > 1 else images


def _estimate_images(
    recipe: Recipe,
    data: FewShotData,
    method: FewShotMethod,
    seconds: float,
    fabric: Any,
    size: int,
    seed: int,
    validations: int,
    *,
    tried: int = 5,
) -> int:
    """How many images can be trained on in so many seconds: some steps of each stage and one validation are timed."""
    plans = plan_stages(recipe, len(data.labels))
    trainee = FewShotTrainee(
        copy.deepcopy(method), recipe, plans, data, seed=seed, size=size, device=fabric.device, validations=1
    )
    wait: Callable[[], None] = torch.cuda.synchronize if fabric.device.type == "cuda" else lambda: None
    costs = []
    call = Calls(trainee.module)
    for stage, plan in zip(trainee.stages, plans, strict=True):
        trainee.start_stage(stage)
        trainee.module.train()
        times = []
        for parts in trainee.draw_batches(plan.first, min(plan.first + tried, plan.last), 0, int(fabric.world_size)):
            wait()
            before = time.perf_counter()
            for batch in parts:
                with fabric.autocast():
                    found = trainee.compute_loss(call, batch)
                torch.autograd.backward(found.loss)
            wait()
            times.append(time.perf_counter() - before)
        costs.append(min(times))  # the first step also compiles and allocates
    before = time.perf_counter()
    trainee.validate(trainee.module)
    left = max(seconds - validations * (time.perf_counter() - before), 0.2 * seconds)
    whole = sum(plan.steps * cost for plan, cost in zip(plans, costs, strict=True))
    images = sum(plan.steps * plan.images for plan in plans)
    return max(1, int(images * left / whole))
