"""The world as concepts in contexts: `split/concept/context/<id>.png` and `manifest.csv`.

The splits share no concept, as few-shot evaluation asks, and siblings stay together.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_concept_context(PlantedWorld(seed=0, count=3), folder, "png")
>>> (folder / "manifest.csv").read_text().splitlines()[0]
'path,concept,context,split'
"""

from __future__ import annotations

import csv
from pathlib import Path

from hardlook.world.layouts.pictures import save_image
from hardlook.world.planted import PlantedWorld

# Six test concepts, so that a 5-way task can choose.
SPLITS: dict[str, str] = {
    "cat": "test", "dog": "test", "car": "test", "bus": "test", "house": "test", "barn": "test",
    "apple": "train", "pear": "train", "cup": "train", "bottle": "train", "duck": "val", "owl": "val",
}  # fmt: skip
ENTRIES = ("train", "val", "test", "manifest.csv")


def concept_context_path(world: PlantedWorld, index: int, image_format: str) -> str:
    """Where scene `index` lies, relative to the dataset's folder, with forward slashes."""
    concept, context = world.concept(index), world.context(index)
    return f"{SPLITS[concept]}/{concept}/{context}/{index + 1:06d}.{image_format}"


def write_concept_context(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes and the manifest."""
    rows = []
    for index, rendered in enumerate(world):
        place = concept_context_path(world, index, image_format)
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        save_image(directory / place, rendered.image)
        split, concept, context, _ = place.split("/")
        rows.append((place, concept, context, split))
    with (directory / "manifest.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("path", "concept", "context", "split"))
        writer.writerows(rows)
