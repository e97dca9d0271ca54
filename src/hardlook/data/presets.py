"""Published datasets by name: which folders hold them, and what the numbers of their label maps mean.

`presets.toml` is the table of layouts, with the origin of each fact. A dataset may have several layouts (as published,
as converted for mmsegmentation or detectron2); the first whose folders are there is read.

>>> list_presets()[:5]
('ade20k', 'ade20k-847', 'pascal-context', 'pascal-context-459', 'pascal-voc-20')
>>> list_instance_presets(), list_panoptic_presets()
(('lvis', 'coco-instances', 'ade20k-instances'), ('coco-panoptic', 'ade20k-panoptic'))
>>> get_preset_labels("cityscapes")
'cityscapes19'
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hardlook.data.voc import read_image_ids
from hardlook.errors import DataError, OptionError

_MAX_LISTED = 12


@dataclass(frozen=True)
class Layout:
    """One layout of a dataset of label maps; the fields are those of `presets.toml`."""

    dataset: str
    roots: tuple[str, ...]
    images: tuple[str, ...]
    maps: tuple[str, ...]
    map_end: str
    numbering: Literal["id", "category-id", "alphabetical"]
    ignored: tuple[int, ...]
    splits: Mapping[str, str]
    origin: str
    labels: str | None = None
    image_end: str = ""
    skip_end: str = ""
    cities: bool = False
    split_list: str = ""
    offset: int = 0
    own_labels: bool = False


@dataclass(frozen=True)
class InstanceLayout:
    """Where a dataset of annotated objects has its json and its images."""

    dataset: str
    annotations: tuple[str, ...]
    images: tuple[str, ...]
    image_folders: tuple[str, ...]
    splits: Mapping[str, str]
    origin: str
    labels: str | None = None
    image_splits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PanopticLayout:
    """Where a panoptic dataset has its json, the PNGs of its segments and its images."""

    dataset: str
    roots: tuple[str, ...]
    annotations: tuple[str, ...]
    segments: tuple[str, ...]
    images: tuple[str, ...]
    splits: Mapping[str, str]
    origin: str
    labels: str | None = None
    image_splits: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MapFile:
    """The label map of an image; the image is the file `image_stem`, with any suffix, in `image_folder`."""

    path: Path
    image_folder: Path
    image_stem: str


@dataclass(frozen=True)
class MapDataset:
    """A split of a dataset on disk: its layout, its label maps by image id, and the folders and list behind them."""

    layout: Layout
    maps: Mapping[str, MapFile] = field(repr=False)
    sources: Mapping[str, Path]


@dataclass(frozen=True)
class InstanceFiles:
    """A split of a dataset of objects: its json, the folder that `file_name` starts from, and all paths behind them."""

    annotations: Path
    images: Path | None
    sources: Mapping[str, Path]


@dataclass(frozen=True)
class PanopticFiles:
    """A split of a panoptic dataset: its json, the folder of its PNGs, that of its images, and all of them by name.

    `spellings` are names of the json with those that the label set has in their place.
    """

    annotations: Path
    segments: Path
    images: Path | None
    sources: Mapping[str, Path]
    spellings: Mapping[str, str] = field(default_factory=dict)


def list_presets() -> tuple[str, ...]:
    """The names of all datasets in the table."""
    return tuple(dict.fromkeys(layout.dataset for layout in _list_layouts()))


def list_map_presets() -> tuple[str, ...]:
    """The names of the datasets of label maps."""
    return tuple(dict.fromkeys(layout.dataset for layout in _read_table().maps))


def list_instance_presets() -> tuple[str, ...]:
    """The names of the datasets of annotated objects."""
    return tuple(layout.dataset for layout in _read_table().instances)


def list_panoptic_presets() -> tuple[str, ...]:
    """The names of the panoptic datasets."""
    return tuple(layout.dataset for layout in _read_table().panoptic)


def get_preset_labels(name: str) -> str | None:
    """The shipped label set of a dataset; None where it has none."""
    return next((layout.labels for layout in _list_layouts() if layout.dataset == name), None)


def open_map_preset(name: str, folder: Path, split: str) -> MapDataset:
    """The label maps of a split in the first layout that is there; a `DataError` lists what was expected and found."""
    layouts = [layout for layout in _read_table().maps if layout.dataset == name]
    expected = []
    for layout in layouts:
        word = _find_split(layout, split)
        for root in dict.fromkeys(folder / root for root in layout.roots):
            images, maps = (_find_folder(root, options, word) for options in (layout.images, layout.maps))
            listing = root / layout.split_list.format(split=word) if layout.split_list else None
            if images and maps and (listing is None or listing.is_file()):
                found = _list_maps(layout, images, maps, listing)
                if found:
                    sources = {f"{name} images": images, f"{name} maps": maps}
                    return MapDataset(layout, found, {**sources, **({f"{name} list": listing} if listing else {})})
        ends = f"{'*/' if layout.cities else ''}*{layout.map_end}"
        parts = [" or ".join(layout.images), f"{' or '.join(layout.maps)} ({ends})", layout.split_list]
        expected.append(" with ".join(part for part in parts if part).replace("{split}", word))
    raise _missing(name, folder, expected)


def open_instance_preset(name: str, folder: Path, split: str, *, needs_images: bool) -> InstanceFiles:
    """The json and the images of a split; a `DataError` lists what was expected and found."""
    layout = next(layout for layout in _read_table().instances if layout.dataset == name)
    word = _find_split(layout, split)
    choices = [choice.format(split=word) for choice in layout.annotations]
    annotations = next((folder / choice for choice in choices if (folder / choice).is_file()), None)
    folders_of_images = [choice.format(split=layout.image_splits.get(split, word)) for choice in layout.images]
    for images in (folder / choice for choice in folders_of_images):
        present = {part: images / part for part in layout.image_folders if (images / part).is_dir()}
        if present:
            break
    else:
        images, present = None, {}
    if annotations is None or (needs_images and images is None):
        folders = "images" if layout.image_folders == (".",) else " or ".join(layout.image_folders)
        where = ", ".join("PATH" if choice == "." else choice for choice in folders_of_images)
        raise _missing(name, folder, [f"{' or '.join(choices)} with {folders} in {where}"])
    sources = {f"{name} annotations": annotations}
    named = {f"{name} {'images' if part == '.' else part}": path for part, path in present.items()}
    return InstanceFiles(annotations, images, {**sources, **named})


def open_panoptic_preset(name: str, folder: Path, split: str, *, needs_images: bool) -> PanopticFiles:
    """The json, the PNGs and the images of a split; a `DataError` lists what was expected and found."""
    layout = next(layout for layout in _read_table().panoptic if layout.dataset == name)
    word = _find_split(layout, split)
    for root in (folder / choice for choice in layout.roots):
        files = (root / choice.format(split=word) for choice in layout.annotations)
        annotations = next((file for file in files if file.is_file()), None)
        segments = _find_folder(root, layout.segments, word)
        images = _find_folder(root, layout.images, layout.image_splits.get(split, word))
        if annotations and segments and (images or not needs_images):
            sources = {f"{name} annotations": annotations, f"{name} segments": segments}
            sources |= {f"{name} images": images} if images else {}
            return PanopticFiles(annotations, segments, images, sources, layout.spellings)
    parts = [" or ".join(layout.annotations), " or ".join(layout.segments)]
    expected = [part.format(split=word) for part in parts]
    if needs_images:
        expected.append(" or ".join(layout.images).format(split=layout.image_splits.get(split, word)))
    raise _missing(name, folder, [" with ".join(expected)])


def number_labels(
    layout: Layout, names: Sequence[str], ids: Sequence[int], category_ids: Sequence[int]
) -> tuple[int, ...]:
    """What the layout's label maps write for each label.

    >>> layout = next(one for one in _read_table().maps if one.numbering == "alphabetical" and one.offset == 1)
    >>> number_labels(layout, ["cow", "table", "bag"], [0, 1, 2], [0, 1, 2])
    (2, 3, 1)
    """
    alphabetical = sorted(names)
    numbers: Mapping[str, Sequence[int]] = {
        "id": ids,
        "category-id": category_ids,
        "alphabetical": [alphabetical.index(name) for name in names],
    }
    return tuple(number + layout.offset for number in numbers[layout.numbering])


def _find_split(layout: Layout | InstanceLayout | PanopticLayout, split: str) -> str:
    if split not in layout.splits:
        raise OptionError(
            f"{layout.dataset} has no split {split!r}", remedy=f"give --split {' or '.join(layout.splits)}"
        )
    return layout.splits[split]


def _find_folder(root: Path, choices: Iterable[str], split: str) -> Path | None:
    folders = (root / choice.format(split=split) for choice in choices)
    return next((folder for folder in folders if folder.is_dir()), None)


def _list_maps(layout: Layout, images: Path, maps: Path, listing: Path | None) -> dict[str, MapFile]:
    """The label maps by image id, sorted; those of a list in its order, whether or not the file is there."""
    if listing is not None:
        ids = read_image_ids(listing)
        return {name: MapFile(maps / f"{name}{layout.map_end}", images, name + layout.image_end) for name in ids}
    found: dict[str, MapFile] = {}
    for path in sorted(maps.glob(f"{'*/' if layout.cities else ''}*{layout.map_end}")):
        if layout.skip_end and path.name.endswith(layout.skip_end):
            continue
        name = path.name.removesuffix(layout.map_end)
        if name in found:
            what = f"two label maps are called {name!r}: {found[name].path} and {path}"
            raise DataError(what, file=path, unit=name, remedy="keep one of them")
        found[name] = MapFile(path, images / path.parent.relative_to(maps), name + layout.image_end)
    return found


def _missing(name: str, folder: Path, expected: Iterable[str]) -> DataError:
    if not folder.is_dir():
        return DataError(f"{name}: there is no such folder", file=folder, remedy="check the path")
    present = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    more = f" and {len(present) - _MAX_LISTED} more" if len(present) > _MAX_LISTED else ""
    what = f"no layout of {name} that is known here; found {', '.join(present[:_MAX_LISTED]) or 'nothing'}{more}"
    remedy = f"give the folder that holds {'; or '.join(expected)}"
    return DataError(what, file=folder, remedy=remedy)


class _Table(NamedTuple):
    maps: tuple[Layout, ...]
    instances: tuple[InstanceLayout, ...]
    panoptic: tuple[PanopticLayout, ...]


def _list_layouts() -> list[Layout | InstanceLayout | PanopticLayout]:
    table = _read_table()
    return [*table.maps, *table.instances, *table.panoptic]


@cache
def _read_table() -> _Table:
    table = tomllib.loads(files("hardlook.data").joinpath("presets.toml").read_text(encoding="utf-8"))

    def freeze(row: Mapping[str, Any]) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}

    return _Table(
        tuple(Layout(**freeze(row)) for row in table["layout"]),
        tuple(InstanceLayout(**freeze(row)) for row in table["instances"]),
        tuple(PanopticLayout(**freeze(row)) for row in table["panoptic"]),
    )
