"""Training a few-shot method into a folder, to a budget of images or seconds.

The tasks are given as numbers of images by whoever knows the dataset; everything here is arrays and tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hardlook.training.few_shot_data import EpisodeRows, FewShotData, StoredEpisodes, load_data, save_data
from hardlook.training.few_shot_trainee import (
    SELECTIONS,
    FewShotTrainee,
    build_method,
    describe_validation,
    probe_backbone,
    scores_features,
)
from hardlook.training.folder import (
    BUDGET,
    HISTORY,
    STATE,
    FolderStore,
    Trained,
    estimate_images,
    fingerprint_weights,
    finish,
    fix_budget,
    is_finished,
    read_trained,
    train_in_folder,
)
from hardlook.training.recipes import Budget, Recipe, plan_stages

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
    "describe_validation",
    "finish",
    "load_data",
    "probe_backbone",
    "read_trained",
    "save_data",
    "scores_features",
    "train_few_shot",
]


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
        "started from": fingerprint_weights(start),
    }
    if is_finished(folder, identity):
        return
    method = build_method(recipe, classes=len(data.classes), size=size, seed=seed)
    recipe = replace(recipe, views=getattr(method, "views", 1))
    if start is not None:
        method.emb_func.load_state_dict(dict(start))

    def estimate(seconds: float) -> int:
        planned = plan_stages(recipe, len(data.labels))
        tried = FewShotTrainee(
            copy.deepcopy(method), recipe, planned, data, seed=seed, size=size, device=fabric.device, validations=1
        )
        return estimate_images(tried, planned, seconds, fabric, validations)

    images = fix_budget(folder, budget, fabric, estimate)
    plans = plan_stages(recipe, len(data.labels), images)
    trainee = FewShotTrainee(
        method, recipe, plans, data, seed=seed, size=size, device=fabric.device, validations=validations
    )
    selections = [mode for mode in SELECTIONS if mode in data.validation]
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
        "validation_rule": describe_validation(method),
    }
    total = plans[-1].last

    def report(step: int) -> None:
        if show_progress is not None:
            show_progress(total, step, trainee._plan(max(step - 1, 0)).images)

    train_in_folder(
        trainee,
        folder,
        fabric,
        described,
        selections=selections,
        precision=precision,
        save_seconds=save_seconds,
        show_progress=report,
    )
