"""The features of a whole list of images: every image encoded once, then read by any process from the disk.

A table belongs to one encoder (its identity), one preprocessing, one list of contents and the choice whether maps are
kept. What other
tables of the same encoder hold is copied, not encoded again. On the processor images pass the encoder one at a time, so
the bits of a row depend on its image alone. On a GPU they pass in batches of one size, the last one filled up, while
threads read the next images.

>>> import tempfile
>>> from hardlook.world.planted import PlantedWorld
>>> scenes = {f"{number}.png": scene.image for number, scene in enumerate(PlantedWorld(count=3))}
>>> paths = [Path(name) for name in scenes]
>>> table = build_feature_table("planted-encoder", {}, paths, ["a", "b", "c"], maps=False,
...     read=lambda path: scenes[path.name], folder=Path(tempfile.mkdtemp()))
>>> table.vectors.shape, table.maps
((3, 64), None)

Rows are written one by one, by one process at a time; a run that is killed resumes. A table's folder holds one `.npy`
file per array, `contents.json` with the content of each row, `checksums.npy` with one CRC-32 per row and array, and
`complete.json` once every row is there. Checksums are written after their rows are on the disk, so that they are never
wrong, whatever stops the machine. A row is read only if it has its checksum; one that has not is encoded again.

>>> folder = Path(tempfile.mkdtemp())
>>> writer = RowWriter(folder / "table", ["a", "a"], ("vectors",))
>>> writer.put([0, 1], {"vectors": np.array([1.0, 2.0], np.float32)})
>>> writer.finish()
>>> open_rows(folder / "table", ("vectors",))["vectors"].tolist()
[[1.0, 2.0], [1.0, 2.0]]
>>> stored = StoredRows(folder, ("vectors",))
>>> stored.get("a")["vectors"].tolist(), "b" in stored
([1.0, 2.0], False)
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprints
from hardlook.errors import DataError, HardlookError, ModelError
from hardlook.models.answer_checks import check_answers
from hardlook.models.feature_cache import default_cache_folder
from hardlook.models.identity import identify
from hardlook.models.preprocessing import Preprocessing, preprocess_image
from hardlook.models.registry import build
from hardlook.models.roles import Encoder, Features, Image
from hardlook.reading import parse_json, reading

COMPLETE, CONTENTS, CHECKSUMS = "complete.json", "contents.json", "checksums.npy"
ROWS_PER_FLUSH = 64
GPU_BATCH, BATCHES_AHEAD = 128, 4


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of n images, mapped read-only, float32: `vectors` (n, D), `maps` (n, C, h, w); pickled by path."""

    folder: Path
    vectors: NDArray[np.float32]
    maps: NDArray[np.float32] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return open_feature_table, (self.folder, self.maps is not None)


def default_tables_folder() -> Path:
    """Where tables are kept: `feature_tables` beside the folder of single features."""
    return default_cache_folder().parent / "feature_tables"


def open_feature_table(folder: Path, maps: bool) -> FeatureTable:
    """The finished table in `folder`; a `DataError` where there is none."""
    if (table := _find_table(folder, maps)) is None:
        raise DataError("there is no complete table of features here", file=folder, remedy="encode the images again")
    return table


def _find_table(folder: Path, maps: bool) -> FeatureTable | None:
    arrays = open_rows(folder, _names(maps))
    return None if arrays is None else FeatureTable(folder, arrays["vectors"], arrays.get("maps"))


def build_feature_table(
    encoder_name: str,
    encoder_args: Mapping[str, Any],
    images: Sequence[Path],
    content: Sequence[str],
    *,
    maps: bool,
    read: Callable[[Path], Image],
    folder: Path | None = None,
    show_progress: Callable[[int, int], Any] | None = None,
    preprocessing: Preprocessing = "encoder",
) -> FeatureTable:
    """The features of `images` by the encoder of that name; see `encode_table`."""
    encoder = build(encoder_name, "encoder", encoder_args)
    identity = identify(encoder, name=encoder_name, role="encoder", args=encoder_args).fingerprint()
    return encode_table(
        encoder,
        identity,
        images,
        content,
        maps=maps,
        read=read,
        folder=folder,
        show_progress=show_progress,
        preprocessing=preprocessing,
    )


def encode_table(
    encoder: Encoder,
    identity: str,
    images: Sequence[Path],
    content: Sequence[str],
    *,
    maps: bool,
    read: Callable[[Path], Image],
    folder: Path | None = None,
    show_progress: Callable[[int, int], Any] | None = None,
    preprocessing: Preprocessing = "encoder",
) -> FeatureTable:
    """The features of `images`, in their order, encoded now where they are not on disk.

    `identity` is the encoder's fingerprint (`models.identity`). `content` names the content of each file (a hash):
    equal names are encoded once. `read` makes an image of a path. `folder` holds all tables (default:
    `default_tables_folder`). `show_progress(total, done)` gives a context manager with `advance(units, failed)`;
    total counts different contents. `preprocessing` is what happens to an image before the encoder gets it.
    """
    if not images or len(images) != len(content):
        raise DataError(f"expected images with one content each, got {len(images)} images and {len(content)} contents")
    # Features of preprocessed images are others: they have tables of their own.
    home = (folder or default_tables_folder()) / (
        identity if preprocessing == "encoder" else f"{identity}-{preprocessing}"
    )
    places = {kept: home / fingerprints.hash_value([list(content), kept]) for kept in (False, True)}

    def prepared(path: Path) -> Image:
        return preprocess_image(read(path), preprocessing)

    if (complete := _find_complete(places, maps)) is None:
        # One process per encoder, not per table: of two lists that overlap the second finds what the first encoded.
        with lock_folder(home):
            if (complete := _find_complete(places, maps)) is None:
                paths = dict(zip(reversed(content), reversed(images), strict=True))
                _fill_table(places[maps], content, _BatchEncoder(encoder, paths, prepared, maps), show_progress)
                complete = open_feature_table(places[maps], maps)
    return complete


def _find_complete(places: Mapping[bool, Path], maps: bool) -> FeatureTable | None:
    # A table with maps serves those who want vectors only.
    wanted = (True,) if maps else (False, True)
    found = (_find_table(places[kept], maps) for kept in wanted)
    return next((table for table in found if table is not None), None)


def _fill_table(
    place: Path, content: Sequence[str], encoder: _BatchEncoder, show_progress: Callable[[int, int], Any] | None
) -> None:
    """Write every row of `content` that is missing: copied from other tables, else encoded."""
    writer = RowWriter(place, content, _names(encoder.maps), per_flush=max(ROWS_PER_FLUSH, 4 * encoder.batch))
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(content):
        rows.setdefault(name, []).append(row)
    stored = StoredRows(place.parent, writer.names)
    wanted = dict.fromkeys(content[row] for row in writer.missing)
    fresh = [name for name in wanted if name not in stored]

    def put(name: str, values: Mapping[str, NDArray[np.float32]]) -> None:
        _check_shapes(values, writer, encoder.paths[name])
        writer.put(rows[name], values)

    with show_progress(len(rows), len(rows) - len(fresh)) if show_progress else nullcontext() as progress:
        try:
            # Copies first: they are safe on the disk before anything takes long.
            for name in wanted:
                if (values := stored.get(name)) is not None:
                    put(name, values)
            for name, values in encoder.encode(fresh):
                put(name, values)
                if progress is not None:
                    progress.advance(1, 0)
        finally:
            writer.flush()
    writer.finish()


def _check_shapes(values: Mapping[str, NDArray[np.float32]], writer: RowWriter, path: Path) -> None:
    for kind, value in values.items():
        if writer.shapes and value.shape != writer.shapes[kind]:
            what = f"the encoder's {kind} differ in shape: {writer.shapes[kind]} before, {value.shape} here"
            remedy = "choose an encoder, or a size of its input, that gives all images maps of one shape"
            raise ModelError(what, file=path, remedy=remedy)


class _BatchEncoder:
    """Encodes the images of contents, whose files are `paths`; with `maps`, every row has its map."""

    def __init__(self, encoder: Encoder, paths: Mapping[str, Path], read: Callable[[Path], Image], maps: bool) -> None:
        self.encoder, self.paths, self.read, self.maps = encoder, paths, read, maps
        on_gpu = str(getattr(encoder, "device", "cpu")).startswith("cuda")
        # An encoder may let the threads that read images also bring them to its size.
        self.resize: Callable[[Image], Image] = getattr(encoder, "resize", None) or (lambda image: image)
        # More threads than that take the interpreter from the one that feeds the GPU.
        self.batch, self.readers = (GPU_BATCH, max(1, (os.cpu_count() or 1) * 3 // 4)) if on_gpu else (1, 0)

    def encode(self, names: Sequence[str]) -> Iterator[tuple[str, dict[str, NDArray[np.float32]]]]:
        """The row of each content, in their order."""
        batches = [names[start : start + self.batch] for start in range(0, len(names), self.batch)]
        if not self.readers:
            for batch in batches:
                yield from zip(batch, self._encode_batch(batch, [self._read(name) for name in batch]), strict=True)
            return
        with ThreadPoolExecutor(self.readers, "read image") as pool:
            ahead: deque[list[Future[Image]]] = deque()
            waiting = iter(batches)
            for batch in batches:
                while len(ahead) < BATCHES_AHEAD and (following := next(waiting, None)) is not None:
                    ahead.append([pool.submit(self._read, name) for name in following])
                images = [one.result() for one in ahead.popleft()]
                yield from zip(batch, self._encode_batch(batch, images), strict=True)

    def _read(self, name: str) -> Image:
        try:
            image = self.read(self.paths[name])
            return self.resize(image) if self.readers else image
        except HardlookError as error:
            raise error.at(file=self.paths[name]) from error

    def _encode_batch(self, names: Sequence[str], images: list[Image]) -> list[dict[str, NDArray[np.float32]]]:
        try:
            # The last batch is filled up: the bits of a row may depend on the size of its batch.
            answers = self._answer([*images, *images[-1:] * (self.batch - len(images))])[: len(images)]
        except (Exception, SystemExit) as error:  # outside code may raise anything; the image tells where
            if len(images) > 1:
                return [row for name, image in zip(names, images, strict=True) for row in self._encode_one(name, image)]
            raise self._name_file(error, names[0]) from error
        return [self._make_row(name, *answer) for name, answer in zip(names, answers, strict=True)]

    def _encode_one(self, name: str, image: Image) -> list[dict[str, NDArray[np.float32]]]:
        """The row of an image whose batch failed, in a batch of its own; the error of the image that is to blame."""
        try:
            [answer, *_] = self._answer([image] * self.batch)
        except (Exception, SystemExit):
            try:
                [answer] = self._answer([image])  # a smaller batch may fit where a whole one does not
            except (Exception, SystemExit) as error:
                raise self._name_file(error, name) from error
        return [self._make_row(name, *answer)]

    def _answer(self, images: list[Image]) -> list[tuple[Any, Any]]:
        if self.maps:
            features = self.encoder.encode(images)
        else:
            # An encoder may have a quicker way to vectors alone.
            quicker = getattr(self.encoder, "encode_vectors", self.encoder.encode)
            features = Features(getattr(quicker(images), "vectors", None))  # type: ignore[arg-type]
        return list(check_answers("encoder", self.encoder, features, images))

    def _make_row(self, name: str, vector: Any, one: Any) -> dict[str, NDArray[np.float32]]:
        row = {"vectors": np.asarray(vector, np.float32).reshape(-1)}
        if self.maps:
            if one is None:
                remedy = "choose an encoder with feature maps, or learners that work on vectors"
                raise ModelError("the encoder gives no feature maps", file=self.paths[name], remedy=remedy)
            row["maps"] = np.asarray(one, np.float32)
        return row

    def _name_file(self, error: BaseException, name: str) -> HardlookError:
        path = self.paths[name]
        if isinstance(error, HardlookError):
            return error.at(file=path)
        return ModelError(f"the image cannot be encoded: {type(error).__name__}: {error}", file=path)


def _names(maps: bool) -> tuple[str, ...]:
    return ("vectors", "maps") if maps else ("vectors",)


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process fills the folder, and keep others out; the lock of a killed process is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as stream:
        # File systems without locks exist; there two processes write the same rows twice.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def open_rows(folder: Path, names: Sequence[str]) -> Mapping[str, NDArray[np.float32]] | None:
    """The arrays of these names, memory-mapped and read-only; None where they are not complete or damaged."""
    try:
        with reading(folder / COMPLETE):
            count = parse_json((folder / COMPLETE).read_bytes())["rows"]
        stored = _load_rows(folder, names)
    except DataError:
        return None
    return stored.arrays if len(stored) == count and stored.find_whole().all() else None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Arrays (n, ...) by name, mapped into memory, and `checksums` (n,) with a field per array, 0 for a missing row."""

    arrays: Mapping[str, np.memmap[Any, np.dtype[np.float32]]]
    checksums: NDArray[np.void]

    def __len__(self) -> int:
        return len(self.checksums)

    def is_whole(self, row: int) -> bool:
        """Whether every array's row is there and as it was written."""
        return all(_hash_row(array[row]) == self.checksums[name][row] for name, array in self.arrays.items())

    def find_whole(self) -> NDArray[np.bool_]:
        """(n,) of each row."""
        return np.array([self.is_whole(row) for row in range(len(self))], np.bool_)


def _load_rows(folder: Path, names: Sequence[str]) -> _Rows:
    """What lies in a table's folder; a `DataError` where a file of it is missing or damaged."""
    with reading(folder):  # a damaged header makes numpy raise nearly anything
        checksums = np.load(folder / CHECKSUMS)
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}
        # A header that lost a bit may still be one, of the other byte order for example.
        if any(array.dtype != np.float32 or len(array) != len(checksums[name]) for name, array in arrays.items()):
            raise DataError("the arrays differ in length or are not float32")
    return _Rows(arrays, checksums)


def _hash_row(values: NDArray[np.float32]) -> int:
    """The CRC-32 of a row's bytes; never 0, which marks a missing row."""
    return zlib.crc32(np.ascontiguousarray(values, np.float32).data) or 1


class RowWriter:
    """Writes one row per content into each of the arrays `names`; rows of an earlier run are kept.

    `missing` are the rows to write, ascending. The shape of a row is that of the first one put. Rows reach the disk
    `per_flush` at a time, and with `flush`; `finish` says that all are there.
    """

    def __init__(
        self, folder: Path, contents: Sequence[str], names: Sequence[str], *, per_flush: int = ROWS_PER_FLUSH
    ) -> None:
        self.folder, self.contents, self.names = folder, list(contents), tuple(names)
        self._per_flush = per_flush
        self.count = count = len(self.contents)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._done = np.zeros(count, np.bool_)
        self._checksums = np.zeros(count, [(name, np.uint32) for name in self.names])
        self._waiting: dict[int, tuple[int, ...]] = {}
        self._streams: dict[str, BinaryIO] = {}
        self._headers: dict[str, int] = {}
        # Rows of a run that was stopped, unless a file of it is missing or damaged: then from the start.
        with contextlib.suppress(DataError):
            stored = _load_rows(folder, self.names)
            if len(stored) == count and (whole := stored.find_whole()).any():
                self._done, self._checksums = whole, stored.checksums
                self.shapes = {name: array.shape[1:] for name, array in stored.arrays.items()}
                self._headers = {name: array.offset for name, array in stored.arrays.items()}

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
            self._waiting |= dict.fromkeys(rows, tuple(_hash_row(values[name]) for name in self.names))
            if len(self._waiting) >= self._per_flush:
                self.flush()
        except OSError as error:
            remedy = "free some space, or name another folder in HARDLOOK_CACHE; the next run resumes"
            raise DataError(f"features cannot be written: {error.strerror}", file=self.folder, remedy=remedy) from error

    def flush(self) -> None:
        """Bring rows to the disk, then their flags."""
        if self._waiting:
            for stream in self._streams.values():
                stream.flush()
                os.fsync(stream.fileno())
                stream.close()
            self._streams.clear()
            for row, checksums in self._waiting.items():
                self._done[row], self._checksums[row] = True, checksums
            self._waiting = {}
            _write_whole(self.folder / CHECKSUMS, self._checksums)

    def finish(self) -> None:
        """Say that every row is there."""
        self.flush()
        if not self._done.all():
            raise ValueError(f"expected all of {self.count} rows, {(~self._done).sum()} are missing")
        _write_whole(self.folder / COMPLETE, json.dumps({"rows": self.count}).encode())
        for left_behind in self.folder.glob(f".{CHECKSUMS}.*"):
            left_behind.unlink(missing_ok=True)

    def _create(self, shapes: dict[str, tuple[int, ...]]) -> None:
        # What describes older rows goes first: a process killed from here on leaves nothing that looks filled.
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (COMPLETE, CHECKSUMS):
            (self.folder / name).unlink(missing_ok=True)
        _write_whole(self.folder / CONTENTS, json.dumps(self.contents).encode())
        for name, shape in shapes.items():
            array = np.lib.format.open_memmap(self.folder / f"{name}.npy", "w+", np.float32, (self.count, *shape))
            array.flush()
            self._headers[name] = array.offset
        _write_whole(self.folder / CHECKSUMS, self._checksums)
        self.shapes = shapes

    def _write(self, name: str, rows: Sequence[int], value: NDArray[np.float32]) -> None:
        if value.shape != self.shapes[name]:
            raise ValueError(f"expected a row of {name} of shape {self.shapes[name]}, got {value.shape}")
        # Plain writes: a full disk is an error here, and the end of the process through a memory map.
        content = np.ascontiguousarray(value, np.float32).tobytes()
        if name not in self._streams:
            self._streams[name] = (self.folder / f"{name}.npy").open("r+b")
        stream = self._streams[name]
        for row in rows:
            stream.seek(self._headers[name] + row * len(content))
            stream.write(content)


class StoredRows:
    """Rows on disk of the arrays `names`, by content, of all tables in `root`, also incomplete, but no damaged ones."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        self._places: dict[str, list[tuple[_Rows, int]]] = {}
        for checksums in sorted(root.glob(f"*/{CHECKSUMS}")):
            with contextlib.suppress(DataError), reading(checksums.parent):
                contents = parse_json((checksums.parent / CONTENTS).read_bytes())
                rows = _load_rows(checksums.parent, names)
                if len(contents) == len(rows):
                    for row, content in enumerate(contents):
                        self._places.setdefault(content, []).append((rows, row))

    def __contains__(self, content: str) -> bool:
        return self.get(content) is not None

    def get(self, content: str) -> dict[str, NDArray[np.float32]] | None:
        """The row of each array, mapped into memory; None where no table has it undamaged."""
        for rows, row in self._places.get(content, ()):
            if rows.is_whole(row):
                return {name: array[row] for name, array in rows.arrays.items()}
        return None


def _write_whole(path: Path, content: bytes | NDArray[np.void]) -> None:
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with beside.open("wb") as stream:
        if isinstance(content, bytes):
            stream.write(content)
        else:
            np.save(stream, content)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)
