"""What the weights of a training depend on, kept in its folder: another training there is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hardlook.errors import ChangedRun, DataError, ModelError, OptionError
from hardlook.extras import require

FILE = "settings.json"
COUNTS = ("training_samples", "validation_samples")
"""Settings that are known when all samples have been read."""
THREADS = "threads"


def check_device(device: str) -> None:
    """An error where there is no such device.

    >>> check_device("cpu")
    """
    torch = require("torch", extra="torch")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise OptionError(f"--device {device}: there is no such choice", remedy="choose cpu, cuda or cuda:NUMBER")
    if not _on_gpu(device):
        return
    if not torch.cuda.is_available():
        raise ModelError(f"torch finds no GPU for --device {device}", remedy="--device cpu, or a torch built for it")
    if ":" in device and int(device.partition(":")[2]) >= (count := torch.cuda.device_count()):
        raise ModelError(f"--device {device}: torch finds {count} GPU(s)", remedy=f"cuda:0 to cuda:{count - 1}")


def threads_on(device: str, asked: int | None) -> int | None:
    """Processor threads: 1 unless asked, so that all machines add in one order; on a GPU None, the libraries' choice.

    >>> threads_on("cpu", None), threads_on("cpu", 4), threads_on("cuda:0", None)
    (1, 4, None)
    """
    return asked if asked is not None or _on_gpu(device) else 1


def summing_threads(device: str, threads: int | None) -> int | None:
    """The threads that the weights depend on: those of a processor, none on a GPU.

    >>> summing_threads("cpu", 4), summing_threads("cuda", 4)
    (4, None)
    """
    return None if _on_gpu(device) else threads


def refuse_changes(out: Path, given: Mapping[str, Any], *, unknown: Collection[str] = ()) -> None:
    """An error that names each setting in which the training in the folder differs; `unknown` ones are not compared.

    A training that finished no epoch left nothing to go on from, so its settings bind nobody.
    """
    from hardlook.clicks.training.history import read_history
    from hardlook.clicks.training.loop import HISTORY, LAST

    path = out / FILE
    begun = (out / LAST).is_file() or read_history(out / HISTORY)
    if not path.is_file() or not begun:
        return
    before, now = json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(dict(given)))
    names = sorted((before.keys() | now.keys()) - set(unknown))
    # Epochs on a GPU have no count of threads that others could differ from.
    if before.get(THREADS) is None or now.get(THREADS) is None:
        names = [name for name in names if name != THREADS]
    changed = [
        f"{name} was {before.get(name)}, is {now.get(name)}" for name in names if before.get(name) != now.get(name)
    ]
    if changed:
        raise ChangedRun(
            f"the folder holds another training: {'; '.join(changed)}",
            file=out,
            remedy="train in another folder, or give the same settings to go on",
        )


def backbone_fingerprint(backbone: Path | None) -> str | None:
    """The content of the weights to start from, since their place may change."""
    from hardlook.fingerprint import of_file

    if backbone is None:
        return None
    if not backbone.is_file():
        raise DataError("there are no such backbone weights", file=backbone, remedy="check --backbone")
    return of_file(backbone)


def _on_gpu(device: str) -> bool:
    return device.startswith("cuda")
