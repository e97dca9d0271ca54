"""The folder of a study: `study.json`, images as bytes in parts that can be sent one by one, and tasks as numbers.

Images (n, S, S, 3) are stored as what their neighbours do not tell, compressed: about .43 of the bytes. Every file has
its hash in `study.json`. This module needs numpy alone.

>>> import tempfile
>>> images = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
>>> with tempfile.TemporaryDirectory() as folder:
...     names = write_pixels(Path(folder), "tiny", images, part_bytes=60)
...     len(names), bool((read_pixels(Path(folder), names) == images).all())
(2, True)
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

SCHEMA, CARD = "hardlook.zoo-study/2", "study.json"
MODES = ("blind", "iid", "ood", "swapped")
TASK_PARTS = ("support", "query", "classes")
PART_BYTES = 48 << 20
_REMEDY = "copy the folder again, or run `prepare` again"

Pixels = NDArray[np.uint8]
Rows = NDArray[np.int64]
Values = NDArray[np.int16]


def format_correlation(value: float) -> str:
    """A correlation in the names of files.

    >>> format_correlation(0.9), format_correlation(0)
    ('0.9', '0')
    """
    return f"{value:g}"


def write_pixels(folder: Path, name: str, images: Pixels, part_bytes: int = PART_BYTES) -> list[str]:
    """Write images in files whose uncompressed size is at most about `part_bytes`; their names."""
    each = max(1, part_bytes // max(1, images[0].nbytes))
    names = []
    for number, start in enumerate(range(0, len(images), each), start=1):
        path = folder / f"pixels-{name}-{number}.npz"
        write_arrays(path, {"residuals": _subtract_predictions(images[start : start + each])})
        names.append(path.name)
    return names


def read_pixels(folder: Path, names: Sequence[str]) -> Pixels:
    """The images of `write_pixels`."""
    return np.concatenate([_add_predictions(read_arrays(folder / name)["residuals"]) for name in names])


def _subtract_predictions(images: Pixels) -> Pixels:
    """(3, n, S, S), modulo 256: green, red less green, blue less green, each less what its neighbours predict."""
    channels = np.stack([images[..., 1], images[..., 0] - images[..., 1], images[..., 2] - images[..., 1]])
    around = np.zeros((*channels.shape[:2], channels.shape[2] + 1, channels.shape[3] + 1), np.int16)
    around[:, :, 1:, 1:] = channels
    predicted = _predict(around[:, :, 1:, :-1], around[:, :, :-1, 1:], around[:, :, :-1, :-1])
    return (channels - predicted).astype(np.uint8)


def _add_predictions(residuals: Pixels) -> Pixels:
    """The images (n, S, S, 3) of `_subtract_predictions`, pixel by pixel of all images at once."""
    _, count, height, width = residuals.shape
    # Pixels first, so that the numbers of all images lie side by side.
    around = np.zeros((height + 1, width + 1, 3, count), np.int16)
    for y in range(height):
        for x in range(width):
            predicted = _predict(around[y + 1, x], around[y, x + 1], around[y, x])
            around[y + 1, x + 1] = (residuals[:, :, y, x] + predicted) & 255
    green, red, blue = np.moveaxis(around[1:, 1:].astype(np.uint8), (2, 3), (0, 1))
    return np.stack([red + green, green, blue + green], -1)


def _predict(left: Values, above: Values, corner: Values) -> Values:
    """The prediction of lossless JPEG (LOCO-I): of left, above and left + above - corner the one in the middle."""
    low, high = np.minimum(left, above), np.maximum(left, above)
    return np.asarray(np.clip(left + above - corner, low, high))


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """A compressed `.npz` file that is there whole or not at all."""
    beside = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    np.savez_compressed(beside, allow_pickle=False, **arrays)
    beside.replace(path)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file; an error that names it where it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # zipfile, zlib and numpy raise many kinds
        raise DataError(f"not a readable .npz file: {error}", file=path, remedy=_REMEDY) from error


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write `study.json` with the hash of every file beside it that belongs to the study."""
    names = sorted(path.name for path in folder.glob("*.npz") if not path.name.startswith("."))
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    beside = folder / f".{CARD}.{os.getpid()}"
    beside.write_text(json.dumps({"schema": SCHEMA, **card, "sha256": hashes}, indent=1) + "\n", encoding="utf-8")
    beside.replace(folder / CARD)


@dataclass(frozen=True, eq=False)
class TestTasks:
    """The tasks of one mode: rows of a test set's images.

    `support` (T, N, K), `query` (T, N, Q), `support_context` (T, N), `order` (T, N * Q): the queries, class by class,
    in the order in which a method gets them. `keys` name the supports.
    """

    __test__ = False  # pytest would take it for a test

    support: Rows
    query: Rows
    support_context: Rows
    order: Rows
    keys: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.support)

    def first(self, count: int) -> TestTasks:
        """The first tasks."""
        part = slice(count)
        return TestTasks(
            self.support[part], self.query[part], self.support_context[part], self.order[part], self.keys[part]
        )


@dataclass(frozen=True, eq=False)
class TestSet:
    """Images (n, S, S, 3), the context (n,) of each, and tasks by mode."""

    __test__ = False

    name: str
    images: Pixels
    context: Rows
    tasks: Mapping[str, TestTasks]


class Study:
    """A folder that `prepare` wrote; arrays are read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / CARD
        try:
            self.card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"no study here: {error}", file=path, remedy="`prepare` makes one") from error
        if self.card.get("schema") != SCHEMA:
            raise DataError(f"a study of another kind: {self.card.get('schema')!r}", file=path, remedy=_REMEDY)

    def check_files(self) -> None:
        """An error that names the first file that is missing or damaged."""
        for name, wanted in self.card["sha256"].items():
            path = self.folder / name
            if not path.is_file():
                raise DataError("a part of the study is missing", file=path, remedy="send this part, too")
            if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
                raise DataError("this part is damaged: its hash differs", file=path, remedy=_REMEDY)

    @property
    def correlations(self) -> tuple[float, ...]:
        """Correlations of context and class in training."""
        return tuple(self.card["correlations"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of training."""
        return tuple(self.card["seeds"])

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the test sets."""
        return tuple(self.card["sets"])

    def read_pixels(self, name: str) -> Pixels:
        """The images of `train-CORRELATION`, `val` or `test-SET`."""
        return read_pixels(self.folder, self.card["pixels"][name])

    def read_training(self, correlation: float, seed: int) -> dict[str, NDArray[Any]]:
        """Labels, class names, and the tasks of training and of validation."""
        return read_arrays(self.folder / f"training-{format_correlation(correlation)}-{seed}.npz")

    def read_test(self, name: str) -> TestSet:
        """A test set."""
        arrays = read_arrays(self.folder / f"test-{name}.npz")
        tasks = {}
        for mode in self.card["modes"]:
            support, query, context, order = (
                arrays[f"{mode}/{part}"].astype(np.int64) for part in ("support", "query", "context", "order")
            )
            tasks[mode] = TestTasks(support, query, context, order, tuple(map(str, arrays[f"{mode}/keys"])))
        return TestSet(name, self.read_pixels(f"test-{name}"), arrays["context"].astype(np.int64), tasks)
