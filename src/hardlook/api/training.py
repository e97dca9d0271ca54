"""`hl.train`: train a few-shot method, a one-shot network or a projection into a folder that is a model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hardlook.errors import OptionError
from hardlook.models.listing import find_trained_role
from hardlook.report.training import Training

# Trainers build on this package, so it knows them by these strings alone.
TRAINERS = {
    "few-shot-learner": "hardlook.metacoco.training.run:train",
    "one-shot-segmenter": "hardlook.toss.training.run:train",
    "promptable-segmenter": "hardlook.rclicks.network_training.run:train",
    "semantic-segmenter": "hardlook.open_vocabulary.training.run:train",
}
BENCHMARKS = {
    "few-shot-learner": "metacoco",
    "one-shot-segmenter": "toss",
    "promptable-segmenter": "rclicks",
    "semantic-segmenter": "open-miou",
}
ARTICLES = {
    "few-shot-learner": "a few-shot method",
    "one-shot-segmenter": "a one-shot network",
    "promptable-segmenter": "an interactive network",
    "semantic-segmenter": "a semantic projection",
}


def train(
    method: str, *, data: str | Path | Mapping[str, str | Path], out: str | Path, **options: Any
) -> Training | list[Training]:
    """Train a method or a network, or resume its training in the folder `out`.

    Args:
        method: A name; `hardlook models` lists what can be trained, marked `trained`.
        data: The dataset, as of `hl.run` of the benchmark that judges the method.
        out: The folder of the checkpoint, which is a model.
        options: Those of `hardlook.metacoco.training.run.train` for few-shot methods, of
            `hardlook.toss.training.run.train` for one-shot networks, of `hardlook.rclicks.network_training.run.train`
            for interactive networks, of `hardlook.open_vocabulary.training.run.train` for semantic projections; among
            all `budget`, `recipe`, `backbone`, `seed`, `device`, `precision`.

    Returns:
        The training; of a one-shot network without `fold`, one per fold.
    """
    role = find_trained_role(method)
    module, _, name = TRAINERS[role].partition(":")
    function = getattr(importlib.import_module(module), name)
    unknown = [key for key in options if key not in function.__annotations__]
    if unknown:
        known = ", ".join(key for key in function.__annotations__ if key not in ("return", "method", "network"))
        raise OptionError(
            f"{method} is {ARTICLES[role]}, whose training takes no {unknown[0]!r}", remedy=f"one of {known}"
        )
    if isinstance(data, str | Path):
        data = {"root" if role == "few-shot-learner" else "voc": data}
    done: Training | list[Training] = function(method, data=data, out=out, **options)
    return done
