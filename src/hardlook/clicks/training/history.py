"""The history of a training: one line an epoch in `history.jsonl`.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "history.jsonl"
...     append_epoch(path, EpochRecord(1, 0.01, 2.5, {"sim": 0.4}, 3.0))
...     read_history(path)[0].validation["sim"]
0.4
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class EpochRecord:
    """An epoch from 1: its last learning rate, mean training loss in nats, validation means, seconds it took."""

    epoch: int
    lr: float
    train_loss: float
    validation: Mapping[str, float]
    seconds: float


def append_epoch(path: Path, record: EpochRecord) -> None:
    """Add a line to the history."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(record)) + "\n")


def read_history(path: Path) -> tuple[EpochRecord, ...]:
    """All epochs; a last line that a killed run left unfinished does not count."""
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8").split("\n")
    return tuple(EpochRecord(**json.loads(line)) for line in lines[:-1] if line)


def cut_history(path: Path, epochs: int) -> tuple[EpochRecord, ...]:
    """Keep the first `epochs` epochs: those that the saved state knows of."""
    kept = tuple(record for record in read_history(path) if record.epoch <= epochs)
    # Beside it first: a kill between emptying and writing would lose all epochs.
    beside = path.with_name(path.name + ".new")
    beside.write_text("".join(json.dumps(asdict(record)) + "\n" for record in kept), encoding="utf-8")
    beside.replace(path)
    return kept
