"""Training a few-shot method into a folder: state, history and the best weights, to a budget of images or seconds.

The tasks are given as numbers of images by whoever knows the dataset; everything here is arrays and tensors.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.networks.few_shot.method import FewShotMethod
from hardlook.training.checkpoint import read_card, remove_leftovers, replace_file, write_card, write_checkpoint
from hardlook.training.few_shot_data import EpisodeRows, FewShotData, StoredEpisodes, load_data, save_data
from hardlook.training.few_shot_trainee import (
    SELECTIONS,
    FewShotTrainee,
    build_method,
    has_own_rule,
    probe_backbone,
    score_by_centroids,
    scores_features,
)
from hardlook.training.loop import Calls, Record, run_loop
from hardlook.training.optimisers import MovingAverage
from hardlook.training.recipes import Budget, Recipe, plan_stages
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

__all__ = [
    "BUDGET",
    "HISTORY",
    "SELECTIONS",
    "STATE",
    "EpisodeRows",
    "FewShotData",
    "FewShotTrainee",
    "FolderStore",
    "StoredEpisodes",
    "Trained",
    "build_method",
    "finish",
    "has_own_rule",
    "load_data",
    "probe_backbone",
    "read_trained",
    "save_data",
    "score_by_centroids",
    "scores_features",
    "train_few_shot",
]

HISTORY, STATE, BUDGET = "history.jsonl", "training-state.safetensors", "budget.json"


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
