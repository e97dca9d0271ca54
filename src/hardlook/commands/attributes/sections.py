"""How attributes of masks are shown: by class and by partition, against each other, and the extremes in pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.contract.sections import (
    Block,
    DistributionChart,
    Example,
    Gallery,
    Picture,
    ScatterChart,
    Section,
    Spot,
)
from hardlook.errors import HardlookError
from hardlook.tiers.attribute_rows import AttributeRow

if TYPE_CHECKING:
    from hardlook.data.class_masks import ClassMasks

# Name of the field, name for people, what it says.
ATTRIBUTES = (
    ("saliou", "salience", "IoU of the mask with the saliency map above .5"),
    ("iou", "supervised IoU", "IoU of the supervised model's pixels of the class with the mask"),
    ("area_ratio", "size", "area of the mask's box over the frame, at 512 x 512"),
    ("offset_ratio", "centredness", "1 for a box in the middle, 0 for one whose centre lies half a side away"),
    ("blob_count", "blobs", "connected pieces of the mask, and one for the background"),
    ("distractor_weight", "distractors", "share of other classes among the pixels of all classes"),
)
MOST_SPOTS = 1500
_SHOWN = 4


def value_of(row: AttributeRow, field: str) -> float | None:
    """A row's number by the name of its field."""
    value = getattr(row, field)
    return None if value is None else float(value)


def distributions(rows: Sequence[AttributeRow], groups: Mapping[str, Sequence[AttributeRow]], by: str) -> list[Block]:
    """One chart an attribute that has values, with a histogram a group."""
    blocks: list[Block] = []
    for field, name, meaning in ATTRIBUTES:
        spread = [(group, _values(own, field)) for group, own in groups.items()]
        if any(values for _, values in spread):
            kept = [("all masks", _values(rows, field)), *((group, values) for group, values in spread if values)]
            caption = f"{_capital(meaning)}. Each histogram is as high as its own fullest bin."
            blocks.append(DistributionChart(f"{_capital(name)} by {by}", caption, kept, name))
    return blocks


def by_class(rows: Iterable[AttributeRow]) -> dict[str, list[AttributeRow]]:
    """Rows grouped by class, in the order they come in."""
    groups: dict[str, list[AttributeRow]] = {}
    for row in rows:
        groups.setdefault(row.class_name, []).append(row)
    return groups


def scatter(
    rows: Sequence[AttributeRow], x: str, y: str, groups: Mapping[str, str], caption: str
) -> ScatterChart | None:
    """Two attributes of the same masks; of very many, every k-th is drawn. None where one has no values."""
    names = {field: name for field, name, _ in ATTRIBUTES}
    known = [row for row in rows if value_of(row, x) is not None and value_of(row, y) is not None]
    if not known:
        return None
    step = -(-len(known) // MOST_SPOTS)
    spots = [
        Spot(value_of(row, x) or 0.0, value_of(row, y) or 0.0, row.filename, groups.get(row.filename, ""))
        for row in known[::step]
    ]
    thinned = f" Every {step}. of {len(known):,} masks is drawn." if step > 1 else ""
    title = f"{_capital(names[x])} and {names[y]}"
    return ScatterChart(title, caption + thinned, spots, names[x], names[y])


def extremes(rows: Sequence[AttributeRow]) -> Section:
    """Galleries of the masks at both ends of salience, supervised IoU and size."""
    galleries = []
    for field, name, _ in ATTRIBUTES[:3]:
        ranked = sorted((row for row in rows if value_of(row, field) is not None), key=lambda row: _order(row, field))
        if len(ranked) >= 2 * _SHOWN:
            for word, chosen in (("Lowest", _one_a_class(ranked)), ("Highest", _one_a_class(ranked[::-1]))):
                examples = [
                    Example(row.filename, f"{row.class_name}: {name} {_order(row, field)[0]:.2f}") for row in chosen
                ]
                galleries.append(Gallery(f"{word} {name}", "The mask is laid over the image.", examples))
    return Section("The extremes", "What the numbers mean in pictures.", galleries)


def mask_pictures(source: ClassMasks, sections: Sequence[Section]) -> dict[str, Sequence[Picture] | str]:
    """The image with its mask for every token that a gallery shows."""
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    found: dict[str, Sequence[Picture] | str] = {}
    for token in dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples):
        try:
            found[token] = [Picture(source.class_of(token), source.read_image(token), source.read_mask(token).mask)]
        except (HardlookError, OSError) as error:
            found[token] = str(error)
    return found


def _values(rows: Iterable[AttributeRow], field: str) -> list[float]:
    return [value for row in rows if (value := value_of(row, field)) is not None]


def _order(row: AttributeRow, field: str) -> tuple[float, str]:
    return value_of(row, field) or 0.0, row.filename


def _one_a_class(ranked: Sequence[AttributeRow]) -> list[AttributeRow]:
    """The first of each class: many masks share the lowest value, and one class must not fill the gallery."""
    first: dict[str, AttributeRow] = {}
    for row in ranked:
        first.setdefault(row.class_name, row)
    return list(first.values())[:_SHOWN]


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
