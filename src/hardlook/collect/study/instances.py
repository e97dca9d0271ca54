r"""Objects that a study of clicks can be made of, of datasets or of the planted world, and their descriptions.

>>> one = list_planted_instances(PlantedWorld(seed=0, count=2))[1]
>>> one.dataset, one.full_stem, one.read().shape, bool(one.read_target().mask.any())
('planted', '000002', (120, 160, 3), True)

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
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from hardlook.data.coco_detection import read_instances
from hardlook.data.coco_panoptic import read_panoptic
from hardlook.data.object_instances import ObjectInstance, normalize_dataset_name
from hardlook.data.object_instances.instance import Target
from hardlook.data.voc import IGNORE, VocDevkit, open_devkit
from hardlook.errors import DataError
from hardlook.models.roles import Image
from hardlook.rclicks.units import PLANTED
from hardlook.reading import read_bytes, reading
from hardlook.similarity.label_sets import load_shipped_set
from hardlook.similarity.labels import label_text
from hardlook.world.layouts import ISEGM_IGNORE, make_trimap
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene


@dataclass(frozen=True)
class PlantedInstance:
    """The subject of a scene, named as `hardlook run rclicks` and `hardlook world make` name it."""

    world: PlantedWorld = field(repr=False)
    index: int
    dataset: str = PLANTED
    object_stem: str = ""

    @property
    def image_stem(self) -> str:
        """The scene's number, from 1; its full stem as well, since every scene has one subject."""
        return f"{self.index + 1:06d}"

    full_stem = image_stem

    @property
    def image_key(self) -> str:
        """The same for all objects of an image."""
        return f"{self.dataset}/{self.image_stem}"

    @property
    def concept(self) -> str:
        """The class of the scene's subject."""
        return self.world.concept(self.index)

    def read(self) -> Image:
        """The picture (H, W, 3) uint8 RGB."""
        return _render(self.world, self.index).image

    def read_target(self) -> Target:
        """The subject, and the band along its edge that is ignored."""
        mask = _render(self.world, self.index).target_mask
        return Target(mask, make_trimap(mask) == ISEGM_IGNORE)


ClickableInstance = ObjectInstance | PlantedInstance


def list_planted_instances(world: PlantedWorld) -> tuple[PlantedInstance, ...]:
    """The subjects of all scenes, in order."""
    return tuple(PlantedInstance(world, index) for index in range(len(world)))


@lru_cache(maxsize=2)
def _render(world: PlantedWorld, index: int) -> RenderedScene:
    """Cached, as the picture and its mask are read one after the other."""
    return world[index]


COLUMNS = ("full_stem", "description")
LONGEST = 300
_REMEDY = f"write a csv file with the columns {' and '.join(COLUMNS)}"


class Descriptions:
    """Returns the description of an instance, "" where none is known.

    `data` is what `--data` names; VOC, COCO's instances and panoptic format know an object's class. Descriptions in
    `file` take precedence.
    """

    def __init__(self, data: Mapping[str, Path], file: Path | None = None) -> None:
        self._data = {normalize_dataset_name(name): path for name, path in data.items()}
        self.own = read_descriptions(file) if file else {}
        self._used: set[str] = set()

    def __call__(self, instance: ClickableInstance) -> str:
        """The description of an instance."""
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
        """Names in the file that belong to no instance described so far."""
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
                (f"instances/{image.id}", str(i)): _split_class_name(content.categories[int(category)])
                for image in content.images
                for i, category in zip(image.ids.tolist(), image.category_ids, strict=True)
            }
        if "panoptic" in self._data:
            things = read_panoptic(*(self._data[name] for name in ("panoptic", "segments", "images")))
            found["panoptic"] = {
                (f"panoptic/{image.id}", str(one.id)): _split_class_name(things.categories[one.category_id].name)
                for image in things.images
                for one in image.segments
            }
        return found

    def _voc_class(self, instance: ClickableInstance) -> str:
        """VOC keeps classes in a second map; where the two disagree, the class of most pixels counts."""
        classes = self._devkit.image(instance.image_stem).read_classes()
        counts = np.bincount(classes[instance.read_target().mask], minlength=IGNORE + 1)
        counts[[0, IGNORE]] = 0
        index = int(counts.argmax())
        return _split_class_name(self._devkit.classes[index - 1]) if 0 < index <= len(self._devkit.classes) else ""


def read_descriptions(path: Path) -> dict[str, str]:
    """Descriptions by full stem; a missing column, an empty or a second description is a `DataError` with its line."""
    with reading(path, "not a readable csv file", remedy=_REMEDY):
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
    return found


def _split_class_name(name: str) -> str:
    """A class name in separate words: VOC writes `diningtable`, COCO `cell phone` and sometimes `hot_dog`.

    >>> _split_class_name("tvmonitor"), _split_class_name("fire_hydrant")
    ('tv monitor', 'fire hydrant')
    """
    words = {label.name: label_text(label) for label in load_shipped_set("voc20")}
    return words.get(name) or name.replace("_", " ").strip()
