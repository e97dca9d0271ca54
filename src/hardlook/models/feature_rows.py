"""Arrays of features on disk that are filled row by row: resumable after a kill, one process at a time.

A folder holds one `.npy` file an array, `contents.json` with the content of each row, `done.npy` with one flag a row,
and `complete.json` once every row is there. Flags are written after the rows they speak of are on the disk, so a flag
is never wrong, whatever stops the machine.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> filling = FillingRows(folder / "table", ["a", "a"], ("vectors",))
>>> filling.put([0, 1], {"vectors": np.array([1.0, 2.0], np.float32)})
>>> filling.finish()
>>> complete_rows(folder / "table", ("vectors",))["vectors"].tolist()
[[1.0, 2.0], [1.0, 2.0]]
>>> known = KnownRows(folder, ("vectors",))
>>> known.get("a")["vectors"].tolist(), "b" in known
([1.0, 2.0], False)
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

COMPLETE, CONTENTS = "complete.json", "contents.json"
ROWS_A_FLUSH = 64


@contextlib.contextmanager
def one_process(folder: Path) -> Iterator[None]:
    """Wait until no other process fills the folder, and keep others out; the lock of a killed process is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as stream:
        # File systems without locks exist; there two processes write the same rows twice.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def complete_rows(folder: Path, names: Sequence[str]) -> dict[str, NDArray[Any]] | None:
    """The arrays of these names, memory-mapped and read-only; None where they are not complete or damaged."""
    try:
        count = json.loads((folder / COMPLETE).read_text())["rows"]
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}
    except (OSError, ValueError, EOFError, KeyError, TypeError):
        return None
    return arrays if all(len(array) == count for array in arrays.values()) else None


class FillingRows:
    """One row a content of each of the arrays `names`, some of which may be there from before.

    `missing` are the rows to fill, ascending. The shape of a row is that of the first one put. Rows reach the disk
    every few dozen, and with `flush`; `finish` says that all are there.
    """

    def __init__(self, folder: Path, contents: Sequence[str], names: Sequence[str]) -> None:
        self.folder, self.contents, self.names = folder, list(contents), tuple(names)
        self.count = count = len(self.contents)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._done = np.zeros(count, np.bool_)
        self._waiting: list[int] = []
        # Rows of a run that was stopped, unless a file of it is missing or cut off: then from the start.
        with contextlib.suppress(OSError, ValueError, EOFError):
            done = np.load(folder / "done.npy")
            shapes = {name: np.load(folder / f"{name}.npy", mmap_mode="r").shape for name in self.names}
            if all(shape[0] == count for shape in (done.shape, *shapes.values())):
                self._done, self.shapes = done, {name: shape[1:] for name, shape in shapes.items()}

    @property
    def missing(self) -> list[int]:
        """The rows that are not there."""
        return [int(row) for row in np.flatnonzero(~self._done)]

    def put(self, rows: Sequence[int], values: Mapping[str, NDArray[np.float32]]) -> None:
        """Write one value, by name, into all of `rows` (doubles share their features)."""
        try:
            if not self.shapes:
                self._create({name: values[name].shape for name in self.names})
            for name in self.names:
                self._write(name, rows, values[name])
            self._waiting += rows
            if len(self._waiting) >= ROWS_A_FLUSH:
                self.flush()
        except OSError as error:
            remedy = "free some space, or name another folder in HARDLOOK_CACHE; it goes on where it stopped"
            raise DataError(f"features cannot be written: {error.strerror}", file=self.folder, remedy=remedy) from error

    def flush(self) -> None:
        """Bring rows to the disk, then their flags."""
        if self._waiting:
            for name in self.names:
                with (self.folder / f"{name}.npy").open("rb") as stream:
                    os.fsync(stream.fileno())
            self._done[self._waiting] = True
            self._waiting = []
            _write_whole(self.folder / "done.npy", self._done)

    def finish(self) -> None:
        """Say that every row is there."""
        self.flush()
        if not self._done.all():
            raise ValueError(f"expected all of {self.count} rows, {(~self._done).sum()} are missing")
        _write_whole(self.folder / COMPLETE, json.dumps({"rows": self.count}).encode())
        for left_behind in self.folder.glob(".done.npy.*"):
            left_behind.unlink(missing_ok=True)

    def _create(self, shapes: dict[str, tuple[int, ...]]) -> None:
        # Whatever speaks of older rows goes first: a kill from here on leaves nothing that looks filled.
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (COMPLETE, "done.npy"):
            (self.folder / name).unlink(missing_ok=True)
        _write_whole(self.folder / CONTENTS, json.dumps(self.contents).encode())
        for name, shape in shapes.items():
            path = self.folder / f"{name}.npy"
            np.lib.format.open_memmap(path, "w+", np.float32, (self.count, *shape)).flush()
        _write_whole(self.folder / "done.npy", self._done)
        self.shapes = shapes

    def _write(self, name: str, rows: Sequence[int], value: NDArray[np.float32]) -> None:
        if value.shape != self.shapes[name]:
            raise ValueError(f"expected a row of {name} of shape {self.shapes[name]}, got {value.shape}")
        # Plain writes: a full disk is an error here, and the end of the process through a memory map.
        path = self.folder / f"{name}.npy"
        content = np.ascontiguousarray(value, np.float32).tobytes()
        header = path.stat().st_size - self.count * len(content)
        with path.open("r+b") as stream:
            for row in rows:
                stream.seek(header + row * len(content))
                stream.write(content)


class KnownRows:
    """What is on disk of the arrays `names`, by content: the rows of all tables in `root`, also of half-filled ones.

    A table that lacks one of the arrays, or is damaged, counts as not there.
    """

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        self._places: dict[str, tuple[dict[str, NDArray[Any]], int]] = {}
        for flags in sorted(root.glob("*/done.npy")):
            with contextlib.suppress(OSError, ValueError, EOFError):
                done, contents = np.load(flags), json.loads((flags.parent / CONTENTS).read_text())
                arrays = {name: np.load(flags.parent / f"{name}.npy", mmap_mode="r") for name in names}
                if all(len(part) == len(done) for part in (contents, *arrays.values())):
                    self._places.update({contents[row]: (arrays, int(row)) for row in np.flatnonzero(done)})

    def __contains__(self, content: str) -> bool:
        return content in self._places

    def get(self, content: str) -> dict[str, NDArray[np.float32]] | None:
        """The row of each array, mapped into memory; None where the content is not known."""
        if content not in self._places:
            return None
        arrays, row = self._places[content]
        return {name: array[row] for name, array in arrays.items()}


def _write_whole(path: Path, content: bytes | NDArray[np.bool_]) -> None:
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with beside.open("wb") as stream:
        if isinstance(content, bytes):
            stream.write(content)
        else:
            np.save(stream, content)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)
