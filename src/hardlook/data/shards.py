"""WebDataset shards: tar files whose members with one key make a sample, such as `0001.jpg` and `0001.seg.png`.

A shard is read in place: its headers once, for the index, and then the bytes of single members. Compressed shards
cannot be read like that and are refused. The key of a member is its path up to the first dot of its name, as the
library webdataset has it.

>>> split_name("train/0001.seg.png")
('train/0001', 'seg.png')
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hardlook.data.images import SUFFIXES
from hardlook.errors import DataError
from hardlook.reading import reading

_REMEDY = "give an uncompressed .tar file, or a folder of them, with members such as 0001.jpg and 0001.seg.png"
_IMAGE_WORDS = ("", "image", "img", "input")
_MASK_WORDS = ("mask", "seg", "segmentation", "semantic", "label", "labels", "annotation", "gt")
_MASK_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".npy", ".npz")
_MAX_MEMBERS = 20_000_000


@dataclass(frozen=True)
class TarMember:
    """A file inside a tar file: where its bytes are."""

    archive: Path
    name: str
    offset: int
    size: int

    @property
    def path(self) -> Path:
        """The path by which errors and records name the member."""
        return self.archive / self.name

    def read_bytes(self) -> bytes:
        """The content; a `DataError` where it is empty or the shard ends before it does."""
        with reading(self.path, "the shard cannot be read", remedy="copy it again"), self.archive.open("rb") as stream:
            stream.seek(self.offset)
            data = stream.read(self.size)
        if not data or len(data) < self.size:
            what = "the member is empty" if not self.size else "the shard ends before this member does"
            raise DataError(what, file=self.path, remedy="copy or write the shard again")
        return data


@dataclass(frozen=True)
class ShardSample:
    """The members of one key, by what follows it: `jpg`, `seg.png`, `json`."""

    key: str
    shard: Path
    members: Mapping[str, TarMember] = field(repr=False)

    def find_image(self) -> TarMember:
        """The image: a member such as `jpg`, `image.png`; a `DataError` where there is none or several."""
        images = [end for end in self.members if _is_kind(end, _IMAGE_WORDS, SUFFIXES)]
        if len(images) > 1 and "png" in images:
            images.remove("png")  # the mask beside a jpg
        return self._take_only(images, "image")

    def find_mask(self) -> TarMember:
        """The label map: `mask.png`, `seg.png`, or `png` beside a `jpg`; a `DataError` where there is none or several."""
        masks = [end for end in self.members if _is_kind(end, _MASK_WORDS, _MASK_SUFFIXES)]
        if not masks:
            image = self.find_image()
            masks = [end for end in ("png", "npy") if end in self.members and self.members[end] is not image]
        return self._take_only(masks, "label map")

    def _take_only(self, ends: list[str], what: str) -> TarMember:
        if len(ends) == 1:
            return self.members[ends[0]]
        problem = f"several members may be the {what}: {', '.join(ends)}" if ends else f"no member is the {what}"
        present = ", ".join(sorted(self.members))
        remedy = f"a sample needs one image (jpg, png, ...) and one label map (seg.png, mask.png, ...); it has {present}"
        raise DataError(problem, file=self.shard, unit=self.key, remedy=remedy)


def read_shards(path: Path) -> dict[str, ShardSample]:
    """The samples of a shard or a folder of shards, by key; by shard and key where a key is in two shards."""
    samples = [sample for shard in _find_shards(path) for sample in _read_index(shard)]
    if not samples:
        raise DataError("the shards have no samples", file=path, remedy=_REMEDY)
    counts = Counter(sample.key for sample in samples)
    unique = len(counts) == len(samples)
    named = {sample.key if unique else f"{sample.shard.stem}/{sample.key}": sample for sample in samples}
    if len(named) < len(samples):
        twice = next(key for key, count in counts.items() if count > 1)
        what = "the members of a sample do not stand together, or two samples have one key"
        raise DataError(what, file=path, unit=twice, remedy="write the members of a sample one after the other")
    return named


def split_name(name: str) -> tuple[str, str]:
    """The key of a member and what follows the first dot of its name, in lower case; empty where it has no dot."""
    path = PurePosixPath(name)
    stem, _, end = path.name.partition(".")
    return str(path.parent / stem), end.lower()


def _is_kind(end: str, words: tuple[str, ...], suffixes: tuple[str, ...]) -> bool:
    word, _, last = end.rpartition(".")
    return word in words and f".{last}" in suffixes


def _find_shards(path: Path) -> list[Path]:
    if path.is_dir():
        shards = sorted(one for one in path.iterdir() if one.suffix == ".tar")
        if not shards:
            present = ", ".join(sorted(one.name for one in path.iterdir())[:12]) or "nothing"
            raise DataError(f"the folder has no .tar files; found {present}", file=path, remedy=_REMEDY)
        return shards
    if not path.is_file():
        raise DataError("there is no such file or folder of shards", file=path, remedy="check the path")
    return [path]


def _read_index(shard: Path) -> Iterator[ShardSample]:
    """The samples of a shard in its order: runs of members with one key."""
    with reading(shard, "not a tar file that can be read in place", remedy=_REMEDY):
        total = shard.stat().st_size
        members: dict[str, TarMember] = {}
        current = ""
        with tarfile.open(shard, "r:") as archive:
            for count, info in enumerate(archive):
                if count >= _MAX_MEMBERS:
                    raise DataError(f"more than {_MAX_MEMBERS:,} members", file=shard, remedy="write smaller shards")
                key, end = split_name(info.name)
                if not info.isreg() or info.issparse() or not end or PurePosixPath(key).name in ("", "."):
                    continue
                if info.size < 0 or info.offset_data + info.size > total:
                    what = "the shard ends before this member does"
                    raise DataError(what, file=shard, unit=info.name, remedy="copy the shard again")
                if key != current and members:
                    yield ShardSample(current, shard, members)
                    members = {}
                current = key
                if end in members:
                    raise DataError(f"two members {end}", file=shard, unit=key, remedy="write one of each kind")
                members[end] = TarMember(shard, info.name, info.offset_data, info.size)
                archive.members = []  # tarfile keeps every header otherwise
        if members:
            yield ShardSample(current, shard, members)
