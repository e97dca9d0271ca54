"""Features of all images of a run, each encoded once, whatever the modes, ways, shots and learners."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.images import OpenedImages, open_images
from hardlook.benchmarks.metacoco.units import TaskSettings
from hardlook.data.images import read_image
from hardlook.errors import ModelError, OptionError
from hardlook.models.feature_tables import FeatureTable, feature_table
from hardlook.models.inner_model import arguments_in
from hardlook.models.roles import Image

Progress = Callable[[int, int], Any]


def get_features_ready(settings: TaskSettings, accepts: str, show_progress: Progress | None = None) -> None:
    """Encode what is not encoded yet, where the learner works on features; workers then find it on disk."""
    refuse_idle_encoder(settings, accepts)
    if accepts in ("features", "maps"):
        _table(settings, accepts, show_progress)


def refuse_idle_encoder(settings: TaskSettings, accepts: str) -> None:
    """Raise an `OptionError` where an encoder was asked for and the learner would not use it."""
    if accepts == "images" and settings.encoder_asked:
        raise OptionError(
            f"--encoder, --encoder-args: the learner works on images and would not use {settings.encoder!r}",
            remedy="leave them out; a learner that encodes images itself takes --model-arg encoder=NAME",
        )


def features_of(settings: TaskSettings, accepts: str) -> NDArray[np.float32]:
    """(images, D) vectors or (images, C, h, w) maps, row by row as the table of images; mapped into memory."""
    table = _opened(settings, accepts)
    if accepts == "features":
        return table.vectors
    if table.maps is None:
        raise ModelError("the learner works on maps, and the encoder gives none", remedy="choose another --encoder")
    return table.maps


@lru_cache(maxsize=4)
def _opened(settings: TaskSettings, accepts: str) -> FeatureTable:
    return _table(settings, accepts, None)


def _table(settings: TaskSettings, accepts: str, show_progress: Progress | None) -> FeatureTable:
    opened = open_images(settings.source)
    return feature_table(
        settings.encoder,
        arguments_in(settings.encoder_args),
        opened.files or [Path(name) for name in opened.names],
        opened.hashes,
        maps=accepts == "maps",
        read=_reader(opened),
        show_progress=show_progress,
    )


def _reader(opened: OpenedImages) -> Callable[[Path], Image]:
    if opened.world is None:
        return read_image
    rows = {name: row for row, name in enumerate(opened.names)}
    return lambda path: opened.read(rows[path.name])
