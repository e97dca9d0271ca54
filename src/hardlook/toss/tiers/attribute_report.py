"""The report of attributes of masks: by class, against each other, in pictures, beside the published table.

The comparison with the published table: blobs and distractors come from the masks alone and must agree. Size and
centredness of the published table are one value per image, whatever the class, so they cannot be those of the class
mask, which the paper describes and we measure. Salience and supervised IoU come from other models, and are compared by
rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError
from hardlook.harness.sections import (
    Block,
    DistributionChart,
    Dot,
    DotChart,
    Example,
    Gallery,
    Picture,
    ScatterChart,
    Section,
    Spot,
    Table,
)
from hardlook.harness.stats import Estimate, bootstrap_indices, spearman
from hardlook.randomness import generator
from hardlook.toss.tiers.attributes import AttributeRow, FailedImage, MeasuredTable

if TYPE_CHECKING:
    from hardlook.data.class_masks import ClassMaskSource


# Field, displayed name, what it is.
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


def build_sections(
    rows: Sequence[AttributeRow], comparison: PublishedComparison | None, failures: Sequence[FailedImage]
) -> list[Section]:
    """The page of `hardlook attributes`."""
    pairs = (
        ("saliou", "iou", "One point per mask: what a saliency model finds, and what a supervised model finds."),
        ("area_ratio", "saliou", "One point per mask: large objects tend to be salient."),
        ("offset_ratio", "saliou", "One point per mask: central objects tend to be salient."),
        ("distractor_weight", "iou", "One point per mask: share of other classes, and what a supervised model finds."),
    )
    charts = [chart for x, y, caption in pairs if (chart := build_scatter(rows, x, y, {}, caption)) is not None]
    sections = [Section("By class", "", build_distributions(rows, group_by_class(rows), "class"))]
    sections += [Section("Two at a time", "", charts)] if charts else []
    sections += [build_published_section(comparison)] if comparison else []
    return [*sections, build_extremes_section(rows), *build_failure_sections(failures)]


def summarise_attributes(
    table: MeasuredTable,
    failures: Sequence[FailedImage],
    comparison: PublishedComparison | None,
    identity: Mapping[str, Any],
) -> dict[str, Any]:
    """The numbers of `hardlook attributes` as JSON; `identity` says what they depend on."""
    means = {}
    for field, name, _ in ATTRIBUTES:
        values = _list_values(table.rows, field)
        means[name] = {"masks": len(values), "mean": sum(values) / len(values) if values else None}
    return {
        "schema": "hardlook.attributes-study/1",
        "masks": len(table.rows),
        "found_before": table.found,
        "attributes": means,
        "published": comparison_to_json(comparison) if comparison else None,
        "failures": [asdict(failure) for failure in failures],
        **identity,
    }


def build_failure_sections(failures: Sequence[FailedImage]) -> list[Section]:
    """A table of the images that failed, if some did."""
    if not failures:
        return []
    rows = [(failure.image, failure.error) for failure in failures]
    table = Table("Images that failed", "They are in no number of this page.", ("image", "error"), rows)
    return [Section("What was left out", f"{len(rows)} images failed.", (table,))]


def read_value(row: AttributeRow, field: str) -> float | None:
    """A row's number by the name of its field."""
    value = getattr(row, field)
    return None if value is None else float(value)


def build_distributions(
    rows: Sequence[AttributeRow], groups: Mapping[str, Sequence[AttributeRow]], by: str
) -> list[Block]:
    """One chart per attribute that has values, with one histogram per group."""
    blocks: list[Block] = []
    for field, name, meaning in ATTRIBUTES:
        spread = [(group, _list_values(own, field)) for group, own in groups.items()]
        if any(values for _, values in spread):
            kept = [("all masks", _list_values(rows, field)), *((group, values) for group, values in spread if values)]
            caption = f"{_capital(meaning)}. Each histogram is as high as its own fullest bin."
            blocks.append(DistributionChart(f"{_capital(name)} by {by}", caption, kept, name))
    return blocks


def group_by_class(rows: Iterable[AttributeRow]) -> dict[str, list[AttributeRow]]:
    """Rows grouped by class, in the order they come in."""
    groups: dict[str, list[AttributeRow]] = {}
    for row in rows:
        groups.setdefault(row.class_name, []).append(row)
    return groups


def build_scatter(
    rows: Sequence[AttributeRow], x: str, y: str, groups: Mapping[str, str], caption: str
) -> ScatterChart | None:
    """Two attributes of the same masks; of very many, every k-th is drawn. None where one has no values."""
    names = {field: name for field, name, _ in ATTRIBUTES}
    known = [row for row in rows if read_value(row, x) is not None and read_value(row, y) is not None]
    if not known:
        return None
    step = -(-len(known) // MOST_SPOTS)
    spots = [
        Spot(read_value(row, x) or 0.0, read_value(row, y) or 0.0, row.filename, groups.get(row.filename, ""))
        for row in known[::step]
    ]
    thinned = f" Every {step}. of {len(known):,} masks is drawn." if step > 1 else ""
    title = f"{_capital(names[x])} and {names[y]}"
    return ScatterChart(title, caption + thinned, spots, names[x], names[y])


def build_extremes_section(rows: Sequence[AttributeRow]) -> Section:
    """Galleries of the masks at both ends of salience, supervised IoU and size."""
    galleries = []
    for field, name, _ in ATTRIBUTES[:3]:
        ranked = sorted((row for row in rows if read_value(row, field) is not None), key=lambda row: _order(row, field))
        if len(ranked) >= 2 * _SHOWN:
            for word, chosen in (("Lowest", _first_of_classes(ranked)), ("Highest", _first_of_classes(ranked[::-1]))):
                examples = [
                    Example(row.filename, f"{row.class_name}: {name} {_order(row, field)[0]:.2f}") for row in chosen
                ]
                galleries.append(Gallery(f"{word} {name}", "The mask is laid over the image.", examples))
    return Section("The extremes", "What the numbers mean in pictures.", galleries)


def list_gallery_units(sections: Sequence[Section]) -> list[str]:
    """The units that the galleries of the sections show, each once."""
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    return list(dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples))


def draw_gallery_masks(source: ClassMaskSource, sections: Sequence[Section]) -> dict[str, Sequence[Picture] | str]:
    """The image with its mask for every token that a gallery shows."""
    pictures: dict[str, Sequence[Picture] | str] = {}
    for token in list_gallery_units(sections):
        try:
            pictures[token] = [Picture(source.class_of(token), source.read_image(token), source.read_mask(token).mask)]
        except (HardlookError, OSError) as error:
            pictures[token] = str(error)
    return pictures


def _list_values(rows: Iterable[AttributeRow], field: str) -> list[float]:
    return [value for row in rows if (value := read_value(row, field)) is not None]


def _order(row: AttributeRow, field: str) -> tuple[float, str]:
    return read_value(row, field) or 0.0, row.filename


def _first_of_classes(ranked: Sequence[AttributeRow]) -> list[AttributeRow]:
    """The first of each class: many masks share the lowest value, and one class must not fill the gallery."""
    first: dict[str, AttributeRow] = {}
    for row in ranked:
        first.setdefault(row.class_name, row)
    return list(first.values())[:_SHOWN]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


RANKED = ("saliou", "iou")


EXACT = ("blob_count", "distractor_weight", "area_ratio", "offset_ratio")


NEAR = 1e-6


_RESAMPLES = 2000


@dataclass(frozen=True)
class RankAgreement:
    """Spearman's correlation of one column with the published one, resampled over images; the pairs of values."""

    column: str
    estimate: Estimate
    ours: NDArray[np.float64]
    published: NDArray[np.float64]


@dataclass(frozen=True)
class ExactShare:
    """How many of the shared rows have the published value (within 1e-6), and their rank correlation all the same."""

    column: str
    equal: int
    rows: int
    spearman: float


@dataclass(frozen=True)
class PublishedComparison:
    """The rows that both tables have, column by column."""

    rows: int
    ranked: tuple[RankAgreement, ...]
    exact: tuple[ExactShare, ...]


def compare_with_published(
    ours: Iterable[AttributeRow], published: Iterable[AttributeRow], *, seed: int = 0
) -> PublishedComparison:
    """Compare the rows of equal tokens; a column that one side lacks is left out.

    >>> row = AttributeRow("1_a", None, 0.5, 0.2, 0.9, 0.4, 2, 0.0)
    >>> [share.equal for share in compare_with_published([row], [row]).exact]
    [1, 1, 1, 1]
    """
    theirs = {row.filename: row for row in published}
    pairs = [(row, theirs[row.filename]) for row in ours if row.filename in theirs]
    ranked = [_ranked(column, pairs, seed) for column in RANKED if _pair_values(column, pairs)[0].size]
    exact = []
    for column in EXACT:
        mine, other, _ = _pair_values(column, pairs)
        if mine.size:
            equal = int((np.abs(mine - other) <= NEAR).sum())
            exact.append(ExactShare(column, equal, mine.size, spearman(mine, other)))
    return PublishedComparison(len(pairs), tuple(ranked), tuple(exact))


def _ranked(column: str, pairs: Sequence[tuple[AttributeRow, AttributeRow]], seed: int) -> RankAgreement:
    mine, other, images = _pair_values(column, pairs)
    estimate = bootstrap_indices(
        mine.size,
        lambda places: spearman(mine[places], other[places]),
        rng=generator(seed, "published attributes", column),
        clusters=images,
        resamples=_RESAMPLES,
        resampled="image",
    )
    return RankAgreement(column, estimate, mine, other)


def _pair_values(
    column: str, pairs: Sequence[tuple[AttributeRow, AttributeRow]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    both = [(getattr(mine, column), getattr(other, column), mine.image) for mine, other in pairs]
    known = [(mine, other, image) for mine, other, image in both if mine is not None and other is not None]
    return (
        np.array([mine for mine, _, _ in known], np.float64),
        np.array([other for _, other, _ in known], np.float64),
        [image for _, _, image in known],
    )


_MEANING = {
    "saliou": "salience",
    "iou": "supervised IoU",
    "blob_count": "from the mask alone: all must be equal",
    "distractor_weight": "from the label map alone: all must be equal",
    "area_ratio": "published: one value per image, whatever the class; ours: the box of the class mask",
    "offset_ratio": "published: one value per image, whatever the class; ours: the box of the class mask",
}


def build_published_section(comparison: PublishedComparison) -> Section:
    """Our attributes beside the published ones."""
    dots = [
        Dot(_MEANING[one.column], one.estimate.value, one.estimate.interval.low, one.estimate.interval.high)
        for one in comparison.ranked
    ]
    shares = [
        (one.column, one.rows, one.equal, 100 * one.equal / one.rows, one.spearman, _MEANING[one.column])
        for one in comparison.exact
    ]
    spots = []
    for one in comparison.ranked:
        step = -(-one.ours.size // MOST_SPOTS)
        points = zip(one.published[::step].tolist(), one.ours[::step].tolist(), strict=True)
        spots.append(
            ScatterChart(
                f"{_MEANING[one.column][0].upper()}{_MEANING[one.column][1:]}: published and ours",
                "One point per mask. Another model measured it there, so points spread; on the line both agree.",
                [Spot(x, y, "") for x, y in points],
                "published",
                "ours",
                diagonal=True,
            )
        )
    return Section(
        "Beside the published table",
        f"{comparison.rows:,} masks are in both tables. The published table's size and centredness repeat one "
        "value for all classes of an image, so they are not those of the class mask that the paper describes.",
        [
            DotChart(
                "Rank correlation with the published columns", "Spearman, interval over images.", dots, "Spearman"
            ),
            Table(
                "Equal values",
                "Within 1e-6.",
                ("column", "masks", "equal", "percent", "Spearman", "why"),
                shares,
                decimals=3,
            ),
            *spots,
        ],
    )


def comparison_to_json(comparison: PublishedComparison) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "rows": comparison.rows,
        "spearman": {
            one.column: {
                "value": one.estimate.value,
                "low": one.estimate.interval.low,
                "high": one.estimate.interval.high,
                "masks": int(one.ours.size),
            }
            for one in comparison.ranked
        },
        "exact": {
            one.column: {
                "equal": one.equal,
                "rows": one.rows,
                "spearman": None if one.spearman != one.spearman else one.spearman,
            }
            for one in comparison.exact
        },
    }
