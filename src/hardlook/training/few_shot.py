"""Training a few-shot method into a folder, to a budget of images or seconds.

The tasks are given as numbers of images by whoever knows the dataset; everything here is arrays and tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from hardlook.networks.few_shot.method import FewShotMethod
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
    ShowProgress,
    Trained,
    fingerprint_weights,
    finish,
    fit_to_budget,
    is_finished,
    make_identity,
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
    show_progress: ShowProgress | None = None,
) -> None:
    """Train a method, or resume its training in `folder`; a finished one stays as it is.

    `start` are weights of the backbone to begin with. `show_progress(total, done, images)` is called with steps.
    """
    budget = budget or Budget()
    folder.mkdir(parents=True, exist_ok=True)
    further = {"image size": size, "classes": list(data.classes), "started from": fingerprint_weights(start)}
    identity = make_identity(
        recipe.to_json(), fabric, seed=seed, budget=budget, precision=precision, validations=validations,
        data=data.facts, further=further,
    )  # fmt: skip
    if is_finished(folder, identity):
        return
    method = build_method(recipe, classes=len(data.classes), size=size, seed=seed)
    recipe = replace(recipe, views=getattr(method, "views", 1))
    if start is not None:
        method.emb_func.load_state_dict(dict(start))

    def make(module: FewShotMethod, images: int) -> FewShotTrainee:
        plans = plan_stages(recipe, len(data.labels), images)
        return FewShotTrainee(
            module, recipe, plans, data, seed=seed, size=size, device=fabric.device, validations=validations
        )

    trainee = fit_to_budget(method, make, folder, budget, fabric, validations, identity=identity, precision=precision)
    card = {
        "kind": "few-shot",
        "method": recipe.method,
        "backbone": recipe.backbone,
        "image_size": size,
        "stored_size": int(data.images.shape[1]),
        "identity": identity,
        "code": code,
        "validation_rule": describe_validation(method),
    }
    train_in_folder(
        trainee,
        folder,
        fabric,
        card,
        selections=[mode for mode in SELECTIONS if mode in data.validation],
        precision=precision,
        save_seconds=save_seconds,
        show_progress=show_progress,
    )
