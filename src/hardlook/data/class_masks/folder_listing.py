"""A folder's files by stem, listed once a process and small when pickled.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "2007_000032.jpg").write_bytes(b"")
>>> listing = FolderListing(folder)
>>> "2007_000032" in listing, listing.path("2007_000032").name
(True, '2007_000032.jpg')
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from hardlook.data.class_masks.pickled_by_fields import PickledByFields
from hardlook.data.images import SUFFIXES

MAP_SUFFIXES = (".png", ".npy", ".npz", ".bmp", ".tif", ".tiff")


@dataclass(frozen=True)
class FolderListing(PickledByFields):
    """The files in `folder` with one of `suffixes` (any case); the earlier suffix wins where a stem comes twice.

    The folder is listed when it is first asked for, and a folder that is not there has no files.
    """

    folder: Path
    suffixes: tuple[str, ...] = SUFFIXES

    def __contains__(self, stem: str) -> bool:
        return stem in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def path(self, stem: str) -> Path:
        """The file of a stem that is there."""
        return self.folder / self._names[stem]

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return _listed(self.folder, self.suffixes, changed(self.folder))


def changed(path: Path) -> int:
    """When a folder or file last changed, in nanoseconds; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


# A worker may unpickle one source many times; it lists a folder once all the same.
@lru_cache(maxsize=4096)
def _listed(folder: Path, suffixes: tuple[str, ...], _changed: int) -> Mapping[str, str]:
    if not folder.is_dir():
        return {}
    ranked = {suffix: rank for rank, suffix in enumerate(suffixes)}
    found: dict[str, tuple[int, str]] = {}
    for name in sorted(entry.name for entry in os.scandir(folder)):
        stem, _, suffix = name.rpartition(".")
        rank = ranked.get(f".{suffix.lower()}")
        if rank is not None and (stem not in found or rank < found[stem][0]):
            found[stem] = (rank, name)
    return {stem: name for stem, (_, name) in sorted(found.items())}
