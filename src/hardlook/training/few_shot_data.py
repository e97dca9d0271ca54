"""What a few-shot method is trained and validated on: images, and tasks as rows of them; one file of both."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EpisodeRows:
    """T tasks as rows of an image array: `support` (T, N, K), `query` (T, N, Q), `classes` (T, N), all int64."""

    support: Rows
    query: Rows
    classes: Rows

    def __len__(self) -> int:
        return len(self.support)

    def __getitem__(self, part: slice | Rows) -> EpisodeRows:
        return EpisodeRows(self.support[part], self.query[part], self.classes[part])


class StoredEpisodes:
    """Tasks that were drawn before, by number; after the last one they start again."""

    def __init__(self, rows: EpisodeRows) -> None:
        self.rows = rows

    def __call__(self, numbers: Rows) -> EpisodeRows:
        """The tasks with these numbers."""
        return self.rows[numbers % len(self.rows)]


@dataclass(frozen=True, eq=False)
class FewShotData:
    """What a method is trained and validated on.

    `images` (n, S, S, 3) uint8 with `labels` (n,) int64 among `classes`; `draw` gives training tasks by number, whose
    classes are labels. `validation_images` and, by mode, `validation` tasks on them; none without a validation split.
    """

    images: NDArray[np.uint8]
    labels: Rows
    classes: tuple[str, ...]
    draw: Callable[[Rows], EpisodeRows]
    validation_images: NDArray[np.uint8] | None = None
    validation: Mapping[str, EpisodeRows] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def save_data(data: FewShotData, path: Path, tasks: int) -> None:
    """Write the data with its first `tasks` training tasks to one `.npz` file, for a machine that has torch alone."""
    drawn = data.draw(np.arange(tasks))
    arrays: dict[str, Any] = {"images": data.images, "labels": data.labels, "classes": np.array(data.classes)}
    if data.validation_images is not None:
        arrays["validation_images"] = data.validation_images
    for name, rows in (("train", drawn), *data.validation.items()):
        arrays |= {f"{name}/{part}": getattr(rows, part).astype(np.int32) for part in ("support", "query", "classes")}
    arrays["facts"] = np.array(json.dumps(dict(data.facts)))
    np.savez(path, **arrays)


def load_data(path: Path) -> FewShotData:
    """The data of `save_data`."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    modes = list(dict.fromkeys(name.partition("/")[0] for name in arrays if "/" in name))
    rows = {
        mode: EpisodeRows(*(arrays[f"{mode}/{part}"].astype(np.int64) for part in ("support", "query", "classes")))
        for mode in modes
    }
    return FewShotData(
        arrays["images"],
        arrays["labels"],
        tuple(map(str, arrays["classes"])),
        StoredEpisodes(rows.pop("train")),
        arrays.get("validation_images"),
        rows,
        json.loads(str(arrays["facts"])),
    )
