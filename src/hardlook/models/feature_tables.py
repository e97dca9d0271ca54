"""The features of a whole list of images: every image encoded once, then read by any process from the disk.

A table belongs to one encoder (its identity), one list of contents and the choice whether maps are kept. What other
tables of the same encoder hold is copied, not encoded again. Maps are kept even where only vectors are asked for, as
long as they are of one shape and small (`MOST_UNASKED_BYTES`), so that a learner on maps need not encode again. Images
pass the encoder one at a time, so the bits of a row depend on its image alone. What was encoded before a kill is kept.

>>> import tempfile
>>> from hardlook.world.planted import PlantedWorld
>>> scenes = {f"{number}.png": scene.image for number, scene in enumerate(PlantedWorld(count=3))}
>>> paths = [Path(name) for name in scenes]
>>> table = feature_table("planted-encoder", {}, paths, ["a", "b", "c"], maps=False,
...     read=lambda path: scenes[path.name], folder=Path(tempfile.mkdtemp()))
>>> table.vectors.shape, table.maps
((3, 64), None)
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprint
from hardlook.errors import DataError, HardlookError, ModelError
from hardlook.models.feature_cache import default_cache_folder
from hardlook.models.feature_rows import FillingRows, KnownRows, complete_rows, one_process
from hardlook.models.identity import identify
from hardlook.models.registry import build
from hardlook.models.roles import Encoder, Features, Image

MOST_UNASKED_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of n images, memory-mapped and read-only: `vectors` (n, D) and, where kept, `maps` (n, C, h, w).

    Both float32. A table that is sent to another process is opened there again, not copied.
    """

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
    arrays = complete_rows(folder, _names(maps))
    if arrays is None:
        raise DataError("there is no complete table of features here", file=folder, remedy="encode the images again")
    return FeatureTable(folder, arrays["vectors"], arrays.get("maps"))


def feature_table(
    encoder_name: str,
    encoder_args: Mapping[str, Any],
    images: Sequence[Path],
    content: Sequence[str],
    *,
    maps: bool,
    read: Callable[[Path], Image],
    folder: Path | None = None,
    show_progress: Callable[[int, int], Any] | None = None,
) -> FeatureTable:
    """The features of `images`, in their order, encoded now where they are not on disk.

    `content` names the content of each file (a hash): equal names are encoded once. `read` makes an image of a path.
    `folder` holds all tables (default: `default_tables_folder`). `show_progress(total, done)` gives a context
    manager with `advance(units, failed)`; total counts different contents.
    """
    if not images or len(images) != len(content):
        raise DataError(f"expected images with one content each, got {len(images)} images and {len(content)} contents")
    encoder = build(encoder_name, "encoder", encoder_args)
    identity = identify(encoder, name=encoder_name, role="encoder", args=encoder_args).fingerprint()
    home = (folder or default_tables_folder()) / identity
    places = {kept: home / fingerprint.of_value([list(content), kept]) for kept in (False, True)}
    found = _complete(places, maps)
    if found is None:
        # One process an encoder, not a table: of two lists that overlap the second finds what the first encoded.
        with one_process(home):
            found = _complete(places, maps)
            if found is None:
                paths = dict(zip(reversed(content), reversed(images), strict=True))
                found = _made(places, maps, _Images(encoder, paths, read), content, show_progress)
    return open_feature_table(found, maps)


class _UnaskedMaps(Exception):
    """Maps that nobody asked for cannot be kept."""


class _Images:
    """Images by content, encoded when asked for; the last answer is remembered, for a second try without maps."""

    def __init__(self, encoder: Encoder, paths: Mapping[str, Path], read: Callable[[Path], Image]) -> None:
        self.encoder, self.paths, self.read = encoder, paths, read
        self._last: tuple[str, Features] | None = None

    def encoded(self, content: str) -> Features:
        if self._last is None or self._last[0] != content:
            self._last = content, self._encode(self.paths[content])
        return self._last[1]

    def _encode(self, path: Path) -> Features:
        try:
            return self.encoder.encode([self.read(path)])
        except HardlookError as error:
            raise error.at(file=path) from error
        except Exception as error:  # an encoder of another package may raise anything; the image tells where to look
            raise ModelError(f"the image cannot be encoded: {type(error).__name__}: {error}", file=path) from error


def _complete(places: Mapping[bool, Path], maps: bool) -> Path | None:
    # A table with maps serves those who want vectors only.
    wanted = (True,) if maps else (False, True)
    return next((places[kept] for kept in wanted if complete_rows(places[kept], _names(kept)) is not None), None)


def _made(
    places: Mapping[bool, Path],
    maps: bool,
    images: _Images,
    content: Sequence[str],
    show_progress: Callable[[int, int], Any] | None,
) -> Path:
    home = places[True].parent
    if not maps:
        with_maps, alone = KnownRows(home, _names(True)), KnownRows(home, _names(False))
        known = [name for name in content if name in alone]
        # Maps are kept where something has to be encoded, and every row that is known has its map.
        if len(known) == len(content) or any(name not in with_maps for name in known):
            return _filled(places[False], False, maps, images, content, show_progress)
    try:
        return _filled(places[True], True, maps, images, content, show_progress)
    except _UnaskedMaps:
        found = _filled(places[False], False, maps, images, content, show_progress)
    shutil.rmtree(places[True], ignore_errors=True)
    return found


def _filled(
    place: Path,
    kept: bool,
    asked: bool,
    images: _Images,
    content: Sequence[str],
    show_progress: Callable[[int, int], Any] | None,
) -> Path:
    filling = FillingRows(place, content, _names(kept))
    twins: dict[str, list[int]] = {}
    for row, name in enumerate(content):
        twins.setdefault(name, []).append(row)
    known = KnownRows(place.parent, filling.names)
    wanted = dict.fromkeys(content[row] for row in filling.missing)
    fresh = sum(name not in known for name in wanted)
    with show_progress(len(twins), len(twins) - fresh) if show_progress else nullcontext() as progress:
        try:
            # Copies first: they are safe on the disk before anything takes long.
            for name in sorted(wanted, key=lambda name: name not in known):
                values = known.get(name) or _values(images, name, kept, asked)
                _check(values, filling, asked, images.paths[name], images.encoder.dimension)
                filling.put(twins[name], values)
                if progress is not None and name not in known:
                    progress.advance(1, 0)
        finally:
            filling.flush()
    filling.finish()
    return place


def _values(images: _Images, name: str, kept: bool, asked: bool) -> dict[str, NDArray[np.float32]]:
    features = images.encoded(name)
    values = {"vectors": np.asarray(features.vectors, np.float32).reshape(-1)}
    if kept and features.maps is not None:
        values["maps"] = np.asarray(features.maps[0], np.float32)
    elif kept and asked:
        remedy = "choose an encoder with feature maps, or learners that work on vectors"
        raise ModelError("the encoder gives no feature maps", file=images.paths[name], remedy=remedy)
    elif kept:
        raise _UnaskedMaps
    return values


def _check(
    values: Mapping[str, NDArray[np.float32]], filling: FillingRows, asked: bool, path: Path, dimension: int
) -> None:
    if "maps" in values and not asked and not _can_be_kept(values["maps"], filling):
        raise _UnaskedMaps
    if values["vectors"].shape != (dimension,):
        raise ModelError(
            f"expected one vector of {dimension} numbers, the encoder gave {values['vectors'].size}",
            file=path,
            remedy="`hardlook check encoder MODEL` says what the role asks for",
        )
    for kind, value in values.items():
        if not np.isfinite(value).all():
            raise ModelError(f"the encoder's {kind} are not finite", file=path, remedy="check its input and weights")
        if filling.shapes and value.shape != filling.shapes[kind]:
            raise ModelError(
                f"the encoder's {kind} differ in shape: {filling.shapes[kind]} before, {value.shape} here",
                file=path,
                remedy="choose an encoder, or a size of its input, that gives all images maps of one shape",
            )


def _can_be_kept(one: NDArray[np.float32], filling: FillingRows) -> bool:
    # Half of the free space at most: what nobody asked for must not fill the disk.
    most = min(MOST_UNASKED_BYTES, shutil.disk_usage(filling.folder.parent).free // 2)
    fits = one.shape == filling.shapes["maps"] if filling.shapes else one.nbytes * filling.count <= most
    return fits and bool(np.isfinite(one).all())


def _names(maps: bool) -> tuple[str, ...]:
    return ("vectors", "maps") if maps else ("vectors",)
