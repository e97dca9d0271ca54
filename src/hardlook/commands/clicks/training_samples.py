"""What a clickability network is trained on and judged by: images of one part are in no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.commands.clicks.clicked_sources import ClickedSource, StoredSource, TrainingStem, planted_sources
from hardlook.commands.clicks.evaluate import gather, refuse_without_clicks
from hardlook.commands.clicks.unread_stems import unread_note
from hardlook.contract.scorecard import LeftOut
from hardlook.errors import DataError, HardlookError
from hardlook.randomness import generator
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.clicks.training.settings import TrainingSettings
    from hardlook.models.click_models.clickability.architecture import Architecture

VALIDATED = 0.2  # share of the images, where no list is given


@dataclass(frozen=True)
class TrainingSplit:
    """Training and validation samples, what was left out, and a fingerprint of where they come from.

    `unread` are stems that cannot be used, with the reason; they are in neither part.
    """

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
    data: list[str] | None,
    previous_masks: Path | None,
    validation: Path | None,
    *,
    scenes: int,
    seed: int,
    split: str | None = None,
) -> TrainingSplit:
    """The two parts, by a list of image stems or drawn by image; planted people click in two worlds of their own."""
    from hardlook.fingerprint import of_value

    if user_clicks is None:
        refuse_without_clicks(
            {"--data": data, "--previous-masks": previous_masks, "--split": split, "--validation": validation}
        )
        # Worlds that no other command uses, so that a network is not judged later on scenes that it was trained on.
        worlds = [int(generator(seed, "clicks train", part).integers(2**31)) for part in ("training", "validation")]
        training, judging = planted_sources(worlds[0], scenes), planted_sources(worlds[1], -(-scenes // 5))
        printed = of_value(["planted", worlds, scenes])
        return TrainingSplit(_stems(training), _stems(judging), (), printed, planted=True)
    asked = gather(user_clicks, data, previous_masks, None, split=split, scenes=scenes, seed=seed)
    sources = [source for source in asked.sources if isinstance(source, StoredSource)]
    held = _listed(validation, sources) if validation else _drawn(sources, seed)
    kept = [source for source in sources if source.image not in held]
    judged = [source for source in sources if source.image in held]
    if not kept or not judged:
        raise _too_few(kept, judged).at(file=validation or user_clicks)
    printed = of_value([asked.fingerprint, sorted(held), *([split] if split else [])])
    return TrainingSplit(_stems(kept), _stems(judged), asked.left_out, printed, planted=False)


def without_unusable(
    split: TrainingSplit, settings: TrainingSettings, *, workers: int = 0, quiet: bool = False
) -> TrainingSplit:
    """The split without stems that cannot be read or made a click map of; a `DataError` where a part has no other."""
    from hardlook.clicks.training.usable import unusable
    from hardlook.commands.build.inputs import showing_progress

    # Simulated people's samples are made, not read.
    if split.planted:
        return split
    samples = (*split.training, *split.validation)
    with showing_progress(quiet) as start:
        advance = start(len(samples), 0)
        errors = unusable(samples, settings, workers=workers, progress=lambda usable: advance(1, not usable))
    if not errors:
        return split
    wrong = {samples[place].key: error for place, error in errors.items()}
    training, validation = (
        tuple(stem for stem in part if stem.key not in wrong) for part in (split.training, split.validation)
    )
    unread = tuple((key, error.what) for key, error in wrong.items())
    if not training or not validation:
        key, why = unread[0]
        raise _too_few(training, validation, f"; {len(unread)} cannot be used, the first: {why}").at(unit=key)
    left_out = (*split.left_out, unread_note(unread, "used"))
    return replace(split, training=training, validation=validation, left_out=left_out, unread=unread)


def architecture_of(width: str) -> Architecture:
    """`base` is the published network, `small` one with about a seventieth of its weights for trials."""
    from hardlook.models.click_models.clickability.architecture import SEGNEXT_B, Architecture

    if width == "base":
        return SEGNEXT_B
    return Architecture(dims=(16, 32, 64, 96), depths=(1, 1, 2, 1), mlp_ratios=(4, 4, 4, 4), head=64, drop_path=0.0)


def _stems(sources: Sequence[ClickedSource]) -> tuple[TrainingStem, ...]:
    return tuple(TrainingStem(source) for source in sources)


def _too_few(training: Sequence[object], validation: Sequence[object], more: str = "") -> HardlookError:
    what = f"{counted(len(training), 'stem')} to train on and {len(validation)} to validate{more}"
    return DataError(what, remedy="both need some: give more clicks, or another --validation")


def _listed(path: Path, sources: Sequence[StoredSource]) -> set[str]:
    if not path.is_file():
        raise DataError("there is no list of validation stems", file=path, remedy="check --validation")
    stems = {line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()}
    held = {source.image for source in sources if source.instance.image_stem in stems}
    if not held:
        first = sources[0].instance.image_stem
        raise DataError("no image of the data is in the list", file=path, remedy=f"stems are written like {first!r}")
    return held


def _drawn(sources: Sequence[StoredSource], seed: int) -> set[str]:
    """By image and seed alone, so that an image stays on its side when others come."""
    images = {source.image for source in sources}
    held = {image for image in images if generator(seed, "clicks train", "validation", image).random() < VALIDATED}
    # With few images the draw may take none, or all.
    return held if 0 < len(held) < len(images) else {min(images)}
