"""Instances of GrabCut, Berkeley, DAVIS, COCO-MVal, TETRIS, and of any folder with one of their layouts.

>>> LAYOUT_OF["tetris"].rule, LAYOUT_OF["davis"] == LAYOUT_OF["coco-mval"]
('integers', True)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from hardlook import fingerprint
from hardlook.data.isegm import BERKELEY, DAVIS, GRABCUT, TETRIS, InteractiveInstance, Layout, read_instances
from hardlook.data.object_instances.left_out import LeftOutNotes
from hardlook.data.object_instances.longest_side import LONGEST
from hardlook.data.object_instances.object_instance import ObjectInstance

LAYOUT_OF: Mapping[str, Layout] = {
    "grabcut": GRABCUT,
    "berkeley": BERKELEY,
    "davis": DAVIS,
    "coco-mval": DAVIS,
    "tetris": TETRIS,
}


def interactive_instances(dataset: str, folder: Path, min_area: int, notes: LeftOutNotes) -> list[ObjectInstance]:
    """The instances of a folder, by stem; a dataset that is not known by name is known by its folders' names.

    Images with equal bytes share a key: Berkeley's 100 instances are of 96 images (189011, 189011a, 189011b).
    """
    stored = read_instances(folder, LAYOUT_OF.get(dataset))
    first = first_of_equals([instance.path for instance in stored])
    found = []
    for one in stored:
        key = f"{dataset}/{first[one.path].stem}"
        longest = LONGEST if one.rule == TETRIS.rule else None
        instance = ObjectInstance(dataset, one.image_stem, one.object_stem, key, one, longest)
        if min_area < 1 or notes.fits(_area(one), min_area, instance.full_stem):
            found.append(instance)
    return found


def first_of_equals(paths: Sequence[Path]) -> dict[Path, Path]:
    """For each file the first with the same bytes, often itself; only files of equal length are read."""
    by_length: defaultdict[int, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        by_length[path.stat().st_size].append(path)
    first: dict[Path, Path] = {}
    for alike in by_length.values():
        seen: dict[str, Path] = {}
        for path in alike:
            first[path] = seen.setdefault(fingerprint.of_file(path), path) if len(alike) > 1 else path
    return first


def _area(instance: InteractiveInstance) -> int:
    return int(instance.stored_target().mask.sum()) if instance.area is None else instance.area
