"""One training in its folder: a device that is there, settings that fit what the folder holds, the network."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ChangedRun, DataError, ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_file
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import open_progress
from hardlook.rclicks.training.loop import TrainingResult, train
from hardlook.rclicks.training.settings import TrainingSettings
from hardlook.rclicks.training.split import TrainingSplit, drop_unusable
from hardlook.rclicks.training.state import HISTORY, LAST, REMEDY, read_history, read_progress
from hardlook.reading import read_json
from hardlook.report.json_values import dump_json
from hardlook.threads import pin_threads

if TYPE_CHECKING:
    from hardlook.networks.segnext import Architecture

SETTINGS_FILE = "settings.json"
# Settings that are known only when all samples have been read.
SAMPLE_COUNTS = ("training_samples", "validation_samples")


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
        "backbone": _hash_backbone(backbone),
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
            architecture=_find_architecture(width),
            backbone=backbone,
            device=device,
            workers=workers,
            keep=keep,
            progress=lambda record: advance(1, 0),
        )
    return TrainedFolder(result, split, given)


def check_device(device: str) -> None:
    """An error where there is no such device.

    >>> check_device("cpu")
    """
    torch = require("torch", extra="torch")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise OptionError(f"--device {device}: there is no such choice", remedy="choose cpu, cuda or cuda:NUMBER")
    if device == "cpu":
        return
    if not torch.cuda.is_available():
        raise ModelError(f"torch finds no GPU for --device {device}", remedy="--device cpu, or a torch built for it")
    if ":" in device and int(device.partition(":")[2]) >= (count := torch.cuda.device_count()):
        raise ModelError(f"--device {device}: torch finds {count} GPU(s)", remedy=f"cuda:0 to cuda:{count - 1}")


def check_same_settings(out: Path, given: Mapping[str, Any], *, unknown: Collection[str] = ()) -> None:
    """An error that names each setting in which the training in the folder differs; `unknown` ones are not compared.

    A training that finished no epoch left nothing to resume from, so its settings do not count.
    """
    path = out / SETTINGS_FILE
    if not path.is_file() or not ((out / LAST).is_file() or read_history(out / HISTORY)):
        return
    what = "not the settings of a training"
    before, now = read_json(path, what=what, remedy=REMEDY), json.loads(json.dumps(dict(given)))
    if not isinstance(before, dict):
        raise DataError(what, file=path, remedy=REMEDY)
    names = (before.keys() | now.keys()) - set(unknown)
    # On a GPU the number of threads is not recorded, so it is not compared.
    if before.get("threads") is None or now.get("threads") is None:
        names -= {"threads"}
    differing = sorted(name for name in names if before.get(name) != now.get(name))
    if differing:
        changed = [f"{name} was {before.get(name)}, is {now.get(name)}" for name in differing]
        what = f"the folder holds another training: {'; '.join(changed)}"
        raise ChangedRun(what, file=out, remedy="train in another folder, or give the same settings to resume")


def _hash_backbone(backbone: Path | None) -> str | None:
    """The hash of the weights to start from: of their content, since their path may change."""
    if backbone is None:
        return None
    if not backbone.is_file():
        raise DataError("there are no such backbone weights", file=backbone, remedy="check --backbone")
    return hash_file(backbone)


def _find_architecture(width: str) -> Architecture:
    """`base` is the published network, `small` one with about a seventieth of its weights for trials."""
    from hardlook.networks.segnext import SEGNEXT_B, Architecture

    if width == "base":
        return SEGNEXT_B
    return Architecture(dims=(16, 32, 64, 96), depths=(1, 1, 2, 1), mlp_ratios=(4, 4, 4, 4), head=64, drop_path=0.0)
