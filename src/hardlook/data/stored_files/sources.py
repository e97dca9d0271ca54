"""Datasets by their name in `--data`: webdataset, hf-dataset, fiftyone, and dataset for a Python object.

Each of them gives label maps, objects or labelled images, as far as its format has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hardlook.data.stored_files import fiftyone, hf_datasets, python_objects, shards
from hardlook.data.stored_files.columns import parse_columns, read_box_format
from hardlook.data.stored_files.samples import LabelledSample, MapSample, ObjectSamples
from hardlook.errors import OptionError

WEBDATASET, HF_DATASET, FIFTYONE, OBJECT = "webdataset", "hf-dataset", "fiftyone", python_objects.NAME
MAP_SOURCES = (WEBDATASET, HF_DATASET, FIFTYONE, OBJECT)
OBJECT_SOURCES = (WEBDATASET, HF_DATASET, FIFTYONE, OBJECT)
LABEL_SOURCES = (WEBDATASET, HF_DATASET, OBJECT)
SPLIT_SOURCES = (HF_DATASET,)
_MAP_KEYS = ("image", "mask")
_OBJECT_KEYS = ("image", "objects", "bbox", "category", "segmentation", "box")
_LABEL_KEYS = ("image", "label", "context")


def find_source(data: Mapping[str, Path], known: tuple[str, ...]) -> str | None:
    """The one dataset of `data` that is of these; None where there is none; an `OptionError` for one beside others."""
    named = [name for name in data if name in known]
    if not named:
        return None
    if len(data) > 1:
        others = ", ".join(sorted(set(data) - {named[0]}))
        remedy = f"leave out --data {others}; stored predictions of its images go beside it as --pred"
        raise OptionError(f"--data {named[0]} has its own images and annotations", remedy=remedy)
    return named[0]


def list_source_files(name: str, path: Path, split: str | None) -> dict[str, Path | str]:
    """What the content of a dataset depends on: its files by name, or the fingerprint of an object."""
    if name == HF_DATASET:
        return {f"{name} {one}": file for one, file in hf_datasets.list_files(path, split).items()}
    if name == OBJECT:
        words, digest = python_objects.describe_source(path)
        return {words: digest}
    return {name: path}


def read_map_samples(name: str, path: Path, split: str, columns: str = "") -> list[MapSample]:
    """The images of a dataset with their label maps."""
    chosen = _check_columns(name, columns, _MAP_KEYS)
    if name == WEBDATASET:
        samples = shards.read_shards(path)
        return [MapSample(key, sample.find_image(), sample.find_mask()) for key, sample in samples.items()]
    if name == HF_DATASET:
        return hf_datasets.read_samples(path, split, chosen)
    return fiftyone.read_samples(path) if name == FIFTYONE else python_objects.read_samples(path)


def read_object_samples(name: str, path: Path, split: str | None, columns: str = "") -> ObjectSamples:
    """The images of a dataset with their objects; `split` None takes the only one."""
    chosen = _check_columns(name, columns, _OBJECT_KEYS)
    if name == WEBDATASET:
        return shards.read_objects(path, read_box_format(chosen))
    if name == HF_DATASET:
        return hf_datasets.read_objects(path, split, chosen)
    return fiftyone.read_objects(path) if name == FIFTYONE else python_objects.read_objects(path, chosen)


def read_labelled_samples(name: str, path: Path, columns: str = "") -> list[LabelledSample]:
    """The images of a dataset with their labels and contexts, of all splits."""
    chosen = _check_columns(name, columns, _LABEL_KEYS)
    if name == WEBDATASET:
        return shards.read_labelled(path)
    if name == HF_DATASET:
        return hf_datasets.read_labelled(path, None, chosen)
    return python_objects.read_labelled(path)


def _check_columns(name: str, columns: str, keys: tuple[str, ...]) -> dict[str, str]:
    """The columns that are named; an `OptionError` where the dataset has none, or nothing asks for one of them."""
    chosen = parse_columns(columns)
    if surplus := [key for key in chosen if key not in keys]:
        remedy = f"this benchmark asks for {', '.join(keys)}"
        raise OptionError(f"--columns {surplus[0]}={chosen[surplus[0]]} would not be used", remedy=remedy)
    if surplus := [key for key in chosen if key != "box"] if name != HF_DATASET else []:
        raise OptionError(f"--columns {surplus[0]}: --data {name} has no columns", remedy=f"give it with {HF_DATASET}")
    return chosen
