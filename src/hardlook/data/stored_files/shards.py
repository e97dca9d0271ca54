"""WebDataset shards: tar files whose members with one key make a sample, such as `0001.jpg` and `0001.seg.png`.

A shard is read in place: its headers once, for the index, and then the bytes of single members. Compressed shards
cannot be read like that and are refused. The key of a member is its path up to the first dot of its name, as in
the library webdataset. Objects, labels and contexts are read from `0001.json`, labels also from `0001.cls` and
`0001.cls.txt`, contexts from `0001.context.txt`. `write_shards` writes pairs of images and label maps as shards.

>>> split_name("train/0001.seg.png")
('train/0001', 'seg.png')
"""

from __future__ import annotations

import io
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import PIL.Image

from hardlook.data.images import SUFFIXES, to_rgb
from hardlook.data.stored_files import read_stored_size
from hardlook.data.stored_files.samples import (
    ANY_CONTEXT,
    BOX_WORDS,
    CATEGORY_WORDS,
    CROWD_WORDS,
    MASK_WORDS,
    BoxFormat,
    LabelledSample,
    ObjectRows,
    ObjectSamples,
    take_first,
)
from hardlook.errors import DataError, OptionError, shorten
from hardlook.reading import parse_json, reading

_REMEDY = "give an uncompressed .tar file, or a folder of them, with members such as 0001.jpg and 0001.seg.png"
_IMAGE_WORDS = ("", "image", "img", "input")
_MASK_WORDS = ("mask", "seg", "segmentation", "semantic", "label", "labels", "annotation", "gt")
_MASK_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".npy", ".npz")
_OBJECT_WORDS = ("objects", "annotations", "instances")
_LABEL_WORDS = ("label", "class", "category", "concept")
_CONTEXT_WORDS = ("context", "domain", "environment", "background")
_LABEL_ENDS = ("cls", "cls.txt", "label.txt")
_CONTEXT_ENDS = ("context", "context.txt")
_MAX_MEMBERS = 20_000_000
_MAX_TEXT = 1000  # bytes of a label
_MAX_JSON = 64 << 20


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
        """The label map: `mask.png`, `seg.png`, `png` beside a `jpg`; a `DataError` where there is none or several."""
        masks = [end for end in self.members if _is_kind(end, _MASK_WORDS, _MASK_SUFFIXES)]
        if not masks:
            image = self.find_image()
            masks = [end for end in ("png", "npy") if end in self.members and self.members[end] is not image]
        return self._take_only(masks, "label map")

    def read_json(self) -> dict[str, Any]:
        """The content of the member `json`; empty where there is none."""
        member = self.members.get("json")
        if member is None:
            return {}
        if member.size > _MAX_JSON:
            raise DataError(f"{member.size} bytes of JSON", file=member.path, remedy="store what belongs to one image")
        with reading(member.path, "not JSON", remedy="write the shard again"):
            content = parse_json(member.read_bytes())
        if not isinstance(content, dict):
            raise DataError("the JSON is not an object", file=member.path, remedy='write {"objects": [...]}')
        return content

    def read_text(self, ends: tuple[str, ...], words: tuple[str, ...], what: str) -> str | None:
        """A short text: the first member of these endings, else the first of these keys of the JSON, else None."""
        for end in ends:
            if member := self.members.get(end):
                if member.size > _MAX_TEXT:
                    raise DataError(f"{member.size} bytes of {what}", file=member.path, remedy="write one short name")
                with reading(member.path, f"not a {what}", remedy="write the shard again"):
                    return member.read_bytes().decode().strip()
        content = self.read_json()
        value = next((content[word] for word in words if content.get(word) not in (None, "")), None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
            raise DataError(
                f"the {what} {shorten(repr(value), 40)}", file=self.shard, unit=self.key, remedy="write a name"
            )
        return None if value is None else str(value)

    def _take_only(self, ends: list[str], what: str) -> TarMember:
        if len(ends) == 1:
            return self.members[ends[0]]
        problem = f"several members may be the {what}: {', '.join(ends)}" if ends else f"no member is the {what}"
        present = ", ".join(sorted(self.members))
        remedy = (
            f"a sample needs one image (jpg, png, ...) and one label map (seg.png, mask.png, ...); it has {present}"
        )
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
        what = "the members of a sample are not consecutive, or two samples have one key"
        raise DataError(what, file=path, unit=twice, remedy="write the members of a sample one after the other")
    return named


def read_objects(path: Path, box_format: BoxFormat = "xywh") -> ObjectSamples:
    """The images of shards with the objects that their `json` lists: boxes, names of categories, and masks if present.

    The JSON is `{"objects": [{"bbox": [x, y, width, height], "category": "cat", "segmentation": ...}]}`, boxes in
    pixels, segmentation in COCO's formats; `annotations` is accepted in place of `objects`.
    """
    rows = ObjectRows(path, None, box_format)
    for name, sample in read_shards(path).items():
        content = sample.read_json()
        listed = next((content[word] for word in _OBJECT_WORDS if isinstance(content.get(word), list)), None)
        if listed is None:
            present = ", ".join(sorted(sample.members))
            what = f"no objects; the sample has {present}" + (
                f", its JSON {shorten(', '.join(content))}" * bool(content)
            )
            remedy = 'write a member json: {"objects": [{"bbox": [x, y, width, height], "category": "cat"}]}'
            raise DataError(what, file=sample.shard, unit=sample.key, remedy=remedy)
        image = sample.find_image()
        rows.add_image(name, read_stored_size(image), image)
        for one in listed:
            with reading(sample.shard, f"an object of {sample.key} cannot be read"):
                rows.add_object(
                    take_first(one, CATEGORY_WORDS),
                    bbox=take_first(one, BOX_WORDS),
                    segmentation=take_first(one, MASK_WORDS),
                    area=one.get("area"),
                    crowd=take_first(one, CROWD_WORDS),
                )
    return rows.build()


def read_labelled(path: Path) -> list[LabelledSample]:
    """The images of shards with their labels (`cls`, or in `json`) and, where they have some, contexts."""
    found = []
    for name, sample in read_shards(path).items():
        label = sample.read_text(_LABEL_ENDS, _LABEL_WORDS, "label")
        if not label:
            remedy = f"write a member cls, or json with a label; the sample has {', '.join(sorted(sample.members))}"
            raise DataError("no label", file=sample.shard, unit=sample.key, remedy=remedy)
        context = sample.read_text(_CONTEXT_ENDS, _CONTEXT_WORDS, "context") or ANY_CONTEXT
        found.append(LabelledSample(name, sample.find_image(), label, context))
    return found


def write_shards(
    samples: Iterable[tuple[Any, Any]], folder: Path | str, *, names: Iterable[str] | None = None, per_shard: int = 1000
) -> list[Path]:
    """Write pairs of image and label map as shards that `--data webdataset=DIR` reads; returns the shards.

    `samples` are pairs of PIL images or arrays, as torchvision's VOCSegmentation and Cityscapes (its target "semantic")
    give them without a transform: an image (H, W, 3) uint8, and a label map (H, W) of whole numbers. `names` are the
    keys, by default the numbers of the samples. Images are stored as PNG, so that no pixel changes; label maps too, and
    as NumPy files where they need more than 16 bits. A folder that holds shards is refused.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if present := sorted(folder.glob("*.tar")):
        raise DataError("the folder holds shards already", file=present[0], remedy="give another folder")
    keys = iter(names) if names is not None else (f"{number:08d}" for number in count())
    shards: list[Path] = []
    pairs = iter(samples)
    while batch := list(islice(pairs, 1)):
        shards.append(folder / f"shard-{len(shards):06d}.tar")
        with tarfile.open(shards[-1], "w") as archive:
            for image, mask in chain(batch, islice(pairs, per_shard - 1)):
                key = next(keys, "")
                if not PurePosixPath(key).name or "." in PurePosixPath(key).name:
                    raise OptionError(f"the key {key!r} of a sample", remedy="give each a name without a dot")
                members = {"png": _encode_image(image, key), **_encode_mask(mask, key)}
                for end, content in members.items():
                    info = tarfile.TarInfo(f"{key}.{end}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    return shards


def _encode_image(image: Any, key: str) -> bytes:
    pixels = to_rgb(image, key) if isinstance(image, PIL.Image.Image) else np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        what = f"an image of shape {pixels.shape} and type {pixels.dtype}"
        raise DataError(what, unit=key, remedy="give PIL images or arrays (H, W, 3) uint8, without a transform")
    return _to_png(PIL.Image.fromarray(pixels))


def _encode_mask(mask: Any, key: str) -> dict[str, bytes]:
    numbers = np.asarray(mask)
    if numbers.ndim != 2 or not np.issubdtype(numbers.dtype, np.integer):
        what = f"a label map of shape {numbers.shape} and type {numbers.dtype}"
        raise DataError(what, unit=key, remedy="give PIL images or arrays (H, W) of whole numbers, without a transform")
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if 0 <= low and high < 1 << 16:
        return {"seg.png": _to_png(PIL.Image.fromarray(numbers.astype(np.uint8 if high < 256 else np.uint16)))}
    stream = io.BytesIO()
    np.save(stream, numbers)
    return {"seg.npy": stream.getvalue()}


def _to_png(image: PIL.Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


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
    """The samples of a shard in its order: consecutive members with the same key."""
    with reading(shard, "not a tar file that can be read in place", remedy=_REMEDY):
        total = shard.stat().st_size
        members: dict[str, TarMember] = {}
        current = ""
        with shard.open("rb") as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for position, info in enumerate(archive):
                if position >= _MAX_MEMBERS:
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
                archive.members = []  # type: ignore[attr-defined]  # tarfile keeps every header otherwise
            # tarfile takes a header that is cut off or damaged for the end.
            stream.seek(archive.offset)
            if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                what = f"the shard is cut off or damaged after {current or 'its start'}"
                raise DataError(what, file=shard, remedy="copy or write the shard again")
        if members:
            yield ShardSample(current, shard, members)
