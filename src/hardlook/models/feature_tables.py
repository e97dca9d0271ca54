"""The features of a whole list of images: every image encoded once, then read by any process from the disk.

A table belongs to one encoder (its identity), one list of contents and the choice whether maps are kept. Images pass
the encoder one at a time, so the bits of a row depend on its image alone. What was encoded before a kill is kept.

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

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprint
from hardlook.errors import DataError, ModelError
from hardlook.models.feature_cache import default_cache_folder
from hardlook.models.feature_rows import FillingRows, complete_rows, one_process
from hardlook.models.identity import identify
from hardlook.models.registry import build
from hardlook.models.roles import Encoder, Image


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
    root = folder or default_tables_folder()
    places = {kept: root / fingerprint.of_value([identity, list(content), kept]) for kept in (maps, True)}
    for kept, place in places.items():
        # A table with maps serves those who want vectors only.
        if complete_rows(place, _names(kept)) is not None:
            return open_feature_table(place, maps)
    place = places[maps]
    with one_process(place):
        if complete_rows(place, _names(maps)) is None:
            _fill(FillingRows(place, len(images), _names(maps)), encoder, images, content, read, show_progress)
    return open_feature_table(place, maps)


def _fill(
    filling: FillingRows,
    encoder: Encoder,
    images: Sequence[Path],
    content: Sequence[str],
    read: Callable[[Path], Image],
    show_progress: Callable[[int, int], Any] | None,
) -> None:
    twins: dict[str, list[int]] = {}
    for row, name in enumerate(content):
        twins.setdefault(name, []).append(row)
    wanted = {content[row]: row for row in reversed(filling.missing)}
    with show_progress(len(twins), len(twins) - len(wanted)) if show_progress else nullcontext() as progress:
        try:
            for name, row in sorted(wanted.items(), key=lambda item: item[1]):
                filling.put(twins[name], _encoded(encoder, read(images[row]), images[row], filling))
                if progress is not None:
                    progress.advance(1, 0)
        finally:
            filling.flush()
    filling.finish()


def _encoded(encoder: Encoder, image: Image, path: Path, filling: FillingRows) -> dict[str, NDArray[np.float32]]:
    features = encoder.encode([image])
    values = {"vectors": np.asarray(features.vectors, np.float32).reshape(-1)}
    if "maps" in filling.names:
        if features.maps is None:
            remedy = "choose an encoder with feature maps, or learners that work on vectors"
            raise ModelError("the encoder gives no feature maps", remedy=remedy)
        values["maps"] = np.asarray(features.maps[0], np.float32)
    if len(values["vectors"]) != encoder.dimension:
        raise ModelError(
            f"expected one vector of {encoder.dimension} numbers, the encoder gave {np.shape(features.vectors)}",
            file=path,
            remedy="`hardlook check encoder MODEL` says what the role asks for",
        )
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise ModelError(f"the encoder's {name} are not finite", file=path, remedy="check its input and weights")
        if filling.shapes and value.shape != filling.shapes[name]:
            raise ModelError(
                f"the encoder's {name} differ in shape: {filling.shapes[name]} before, {value.shape} here",
                file=path,
                remedy="choose an encoder, or a size of its input, that gives all images maps of one shape",
            )
    return values


def _names(maps: bool) -> tuple[str, ...]:
    return ("vectors", "maps") if maps else ("vectors",)
