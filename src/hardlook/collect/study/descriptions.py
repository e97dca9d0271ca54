r"""Objects in words, for the text mode: the class that a dataset gives them, or a researcher's own file.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "words.csv"
>>> _ = path.write_text("full_stem,description\nllama,the llama on the left\n")
>>> Descriptions({}, path).own
{'llama': 'the llama on the left'}
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from hardlook.collect.study.instances_to_click import ClickableInstance, PlantedInstance
from hardlook.data.coco_instances import read_instances
from hardlook.data.coco_panoptic import read_panoptic
from hardlook.data.images import read_bytes
from hardlook.data.object_instances import dataset_name
from hardlook.data.voc import IGNORE, VocDevkit, open_devkit
from hardlook.errors import DataError
from hardlook.labels.shipped import read_shipped
from hardlook.labels.wording import wording

COLUMNS = ("full_stem", "description")
LONGEST = 300
_REMEDY = f"write a csv file with the columns {' and '.join(COLUMNS)}"


class Descriptions:
    """Call it with an instance for its words, "" where none are known.

    `data` is what `--data` names; VOC, COCO's instances and panoptic format know an object's class. Words of `file`
    go before those of the dataset.
    """

    def __init__(self, data: Mapping[str, Path], file: Path | None = None) -> None:
        self._data = {dataset_name(name): path for name, path in data.items()}
        self.own = read_descriptions(file) if file else {}
        self._used: set[str] = set()

    def __call__(self, instance: ClickableInstance) -> str:
        """The words of an instance."""
        if instance.full_stem in self.own:
            self._used.add(instance.full_stem)
            return self.own[instance.full_stem]
        if isinstance(instance, PlantedInstance):
            return instance.concept
        if instance.dataset == "voc" and "voc" in self._data:
            return self._voc_class(instance)
        if instance.dataset in self._classes:
            return self._classes[instance.dataset].get((instance.image_key, instance.object_stem), "")
        return ""

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the file that no instance had that was asked for."""
        return tuple(stem for stem in self.own if stem not in self._used)

    @cached_property
    def _devkit(self) -> VocDevkit:
        return open_devkit(self._data["voc"])

    @cached_property
    def _classes(self) -> dict[str, dict[tuple[str, str], str]]:
        """By dataset, the class of each (image's key, object's stem)."""
        found: dict[str, dict[tuple[str, str], str]] = {}
        if "instances" in self._data:
            content = read_instances(self._data["instances"])
            found["instances"] = {
                (f"instances/{image.id}", str(i)): _spoken(content.categories[int(category)])
                for image in content.images
                for i, category in zip(image.ids.tolist(), image.category_ids, strict=True)
            }
        if "panoptic" in self._data:
            things = read_panoptic(*(self._data[name] for name in ("panoptic", "segments", "images")))
            found["panoptic"] = {
                (f"panoptic/{image.id}", str(segment.id)): _spoken(things.categories[segment.category_id].name)
                for image in things.images
                for segment in image.segments
            }
        return found

    def _voc_class(self, instance: ClickableInstance) -> str:
        """VOC keeps classes in a second map; where the two disagree the class of most pixels counts."""
        classes = self._devkit.image(instance.image_stem).read_classes()
        counts = np.bincount(classes[instance.read_target().mask], minlength=IGNORE + 1)
        counts[[0, IGNORE]] = 0
        index = int(counts.argmax())
        return _spoken(self._devkit.classes[index - 1]) if 0 < index <= len(self._devkit.classes) else ""


def read_descriptions(path: Path) -> dict[str, str]:
    """Descriptions by full stem; a missing column, an empty or a second description is a `DataError` with its line."""
    try:
        rows = csv.DictReader(io.StringIO(read_bytes(path).decode("utf-8-sig"), newline=""), strict=True)
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise DataError(f"no column {missing[0]}", file=path, remedy=_REMEDY)
        found: dict[str, str] = {}
        for row in rows:
            stem, words = (" ".join((row[name] or "").split()) for name in COLUMNS)
            if not (stem and 0 < len(words) <= LONGEST) or stem in found:
                wrong = "a second description" if stem in found else f"no name, or no words of 1 to {LONGEST} letters"
                raise DataError(f"line {rows.line_num}: {wrong}", file=path, unit=stem or None, remedy=_REMEDY)
            found[stem] = words
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"not a readable csv file: {error}", file=path, remedy=_REMEDY) from error
    return found


def _spoken(name: str) -> str:
    """A class name as people say it: VOC writes `diningtable`, COCO `cell phone` and sometimes `hot_dog`.

    >>> _spoken("tvmonitor"), _spoken("fire_hydrant")
    ('tv monitor', 'fire hydrant')
    """
    return _voc_words().get(name) or name.replace("_", " ").strip()


@cache
def _voc_words() -> dict[str, str]:
    return {label.name: wording(label) for label in read_shipped("voc20")}
