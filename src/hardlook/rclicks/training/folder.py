"""One training in its folder: settings that fit what is there, usable samples, the network."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hardlook.harness.runs.evaluation import pin_threads
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import open_progress
from hardlook.rclicks.training.loop import TrainingResult, train
from hardlook.rclicks.training.preparation import (
    SAMPLE_COUNTS,
    SETTINGS_FILE,
    TrainingSplit,
    backbone_fingerprint,
    check_same_settings,
    drop_unusable,
    find_architecture,
)
from hardlook.rclicks.training.settings import TrainingSettings
from hardlook.rclicks.training.state import LAST, read_progress
from hardlook.report.json_values import dump_json


@dataclass(frozen=True)
class TrainedFolder:
    """A finished training: its result, the samples that could be used, and its settings as JSON values."""

    result: TrainingResult
    split: TrainingSplit
    settings: dict[str, Any]


def train_in_folder(
    split: TrainingSplit,
    settings: TrainingSettings,
    out: Path,
    *,
    width: str = "base",
    backbone: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    workers: int = 0,
    keep: bool = False,
    quiet: bool = False,
) -> TrainedFolder:
    """Train, or resume the training in `out`; other settings than those in the folder are an error.

    `threads` are by default 1, so that all machines add in one order, and beside a GPU what the libraries choose.
    """
    on_gpu = device.startswith("cuda")
    used_threads = threads if threads is not None or on_gpu else 1
    given = {
        **asdict(settings),
        "width": width,
        "backbone": backbone_fingerprint(backbone),
        "threads": None if on_gpu else used_threads,  # those that the weights depend on
        **split.facts(),
    }
    # Checked before and after, since reading all samples takes a while.
    check_same_settings(out, given, unknown=SAMPLE_COUNTS)
    if used_threads is not None:
        pin_threads(used_threads)
    split = drop_unusable(split, settings, workers=workers, quiet=quiet)
    given |= split.facts()
    check_same_settings(out, given)
    write_atomically(out / SETTINGS_FILE, dump_json(given))
    with open_progress(quiet) as start:
        advance = start(settings.epochs, read_progress(out / LAST).epoch)
        result = train(
            split.training,
            split.validation,
            out,
            settings,
            architecture=find_architecture(width),
            backbone=backbone,
            device=device,
            workers=workers,
            keep=keep,
            progress=lambda record: advance(1, 0),
        )
    return TrainedFolder(result, split, given)
