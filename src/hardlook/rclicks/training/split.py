"""The samples of a training, split by image into those that train and those that validate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, HardlookError
from hardlook.harness.scorecard import LeftOut
from hardlook.randomness import generator
from hardlook.rclicks.user_clicks.loading import (
    MAX_EXAMPLES,
    StoredSource,
    check_options_without_clicks,
    load_clicked_data,
    note_unread,
)
from hardlook.rclicks.user_clicks.planted_users import make_planted_sources
from hardlook.rclicks.user_clicks.stems import ClickedSource
from hardlook.reading import reading
from hardlook.report.formatting import format_count

if TYPE_CHECKING:
    from hardlook.models.roles import Image, Mask
    from hardlook.rclicks.training.settings import TrainingSettings

VALIDATION_SHARE = 0.2  # of the images, where no list is given


@dataclass(frozen=True)
class TrainingStem:
    """A source as the training of a click model takes it: clicks are whole pixels."""

    source: ClickedSource

    @property
    def key(self) -> str:
        """The source's name."""
        return self.source.key

    def read(self) -> tuple[Image, Mask, Mask, NDArray[np.integer]]:
        """Image, target, error, clicks (n, 2) int64; errors name the source."""
        try:
            stem = self.source.read().stem
        except HardlookError as error:
            # Readers of images and masks name the object, which several rounds share.
            raise type(error)(error.what, file=error.file, unit=self.key, remedy=error.remedy) from error
        return stem.image, stem.target, stem.error, np.floor(stem.clicks).astype(np.int64)


@dataclass(frozen=True)
class TrainingSplit:
    """Training and validation samples, what is left out, a fingerprint of the data, and unusable stems with reasons."""

    training: tuple[TrainingStem, ...]
    validation: tuple[TrainingStem, ...]
    left_out: tuple[LeftOut, ...]
    fingerprint: str
    planted: bool
    unread: tuple[tuple[str, str], ...] = ()

    def facts(self) -> dict[str, Any]:
        """What the weights depend on."""
        return {
            "samples": "planted" if self.planted else "people",
            "training_samples": len(self.training),
            "validation_samples": len(self.validation),
            "data": self.fingerprint,
        }


def split_samples(
    user_clicks: Path | None,
    data: Mapping[str, Path],
    previous_masks: Path | None,
    validation: Path | None,
    *,
    scenes: int,
    seed: int,
    split: str | None = None,
) -> TrainingSplit:
    """The two parts, by a list of image stems or drawn by image; simulated people click in two worlds of their own."""
    from hardlook.fingerprints import hash_value

    if user_clicks is None:
        check_options_without_clicks(
            {"--data": data, "--previous-masks": previous_masks, "--split": split, "--validation": validation}
        )
        # Worlds that no other command uses, so that a network is not evaluated later on scenes that it was trained on.
        worlds = [int(generator(seed, "clicks train", part).integers(2**31)) for part in ("training", "validation")]
        counts = (scenes, -(-scenes // 5))
        parts = [tuple(map(TrainingStem, make_planted_sources(*one))) for one in zip(worlds, counts, strict=True)]
        return TrainingSplit(parts[0], parts[1], (), hash_value(["planted", worlds, scenes]), planted=True)
    clicked = load_clicked_data(user_clicks, data, previous_masks, None, split=split, scenes=scenes, seed=seed)
    sources = [source for source in clicked.sources if isinstance(source, StoredSource)]
    left_out = list(clicked.left_out)
    if validation is None:
        held_out = _draw_held_out(sources, seed)
    else:
        held_out, unknown = _read_held_out(validation, sources)
        if unknown:
            why = "no image of that name was clicked on, so that they hold nothing out"
            left_out.append(LeftOut("stems of the list of --validation", len(unknown), why, unknown[:MAX_EXAMPLES]))
    training = tuple(TrainingStem(source) for source in sources if source.instance.image_key not in held_out)
    validated = tuple(TrainingStem(source) for source in sources if source.instance.image_key in held_out)
    if not training or not validated:
        raise _too_few(training, validated).at(file=validation or user_clicks)
    fingerprint = hash_value([clicked.fingerprint, sorted(held_out), *([split] if split else [])])
    return TrainingSplit(training, validated, tuple(left_out), fingerprint, planted=False)


def drop_unusable(
    split: TrainingSplit, settings: TrainingSettings, *, workers: int = 0, quiet: bool = False
) -> TrainingSplit:
    """The split without stems that have no click map or cannot be read; a `DataError` if that empties a part."""
    from hardlook.harness.runs.progress import open_progress
    from hardlook.rclicks.training.samples import find_unusable

    # Simulated people's samples are made, not read.
    if split.planted:
        return split
    samples = (*split.training, *split.validation)
    with open_progress(quiet) as start:
        advance = start(len(samples), 0)
        errors = find_unusable(samples, settings, workers=workers, progress=lambda usable: advance(1, not usable))
    if not errors:
        return split
    unusable = {samples[place].key: error for place, error in errors.items()}
    training, validation = (
        tuple(stem for stem in part if stem.key not in unusable) for part in (split.training, split.validation)
    )
    unread = tuple((key, error.what) for key, error in unusable.items())
    if not training or not validation:
        key, why = unread[0]
        raise _too_few(training, validation, f"; {len(unread)} cannot be used, the first: {why}").at(unit=key)
    left_out = (*split.left_out, note_unread(unread, "used"))
    return replace(split, training=training, validation=validation, left_out=left_out, unread=unread)


def _too_few(training: Sequence[object], validation: Sequence[object], more: str = "") -> HardlookError:
    what = f"{format_count(len(training), 'stem')} to train on and {len(validation)} to validate{more}"
    return DataError(what, remedy="neither may be empty: give more clicks, or another --validation")


def _read_held_out(path: Path, sources: Sequence[StoredSource]) -> tuple[set[str], tuple[str, ...]]:
    """The keys of the images in the list, and its stems that are of no image."""
    if not path.is_file():
        raise DataError("there is no list of validation stems", file=path, remedy="check --validation")
    with reading(path, "not a list of image stems", remedy="write one stem per line"):
        text = path.read_text(encoding="utf-8-sig")
    stems = {line.strip() for line in text.splitlines() if line.strip()}
    held_out = {source.instance.image_key for source in sources if source.instance.image_stem in stems}
    if not held_out:
        first = sources[0].instance.image_stem
        raise DataError("no image of the data is in the list", file=path, remedy=f"stems are written like {first!r}")
    return held_out, tuple(sorted(stems - {source.instance.image_stem for source in sources}))


def _draw_held_out(sources: Sequence[StoredSource], seed: int) -> set[str]:
    """By image and seed alone, so that an image stays in its split when other images are added."""
    images = {source.instance.image_key for source in sources}
    held_out = {
        image for image in images if generator(seed, "clicks train", "validation", image).random() < VALIDATION_SHARE
    }
    # With few images the draw may take none, or all.
    return held_out if 0 < len(held_out) < len(images) else {min(images)}
