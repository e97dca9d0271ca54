"""The report on attributes of masks: by class, against each other, in pictures, beside the published table.

Which attributes must agree with the published table: blobs and distractors come from the masks alone and must be equal.
Size and centredness of the published table are one value per image, whatever the class, so they cannot be those of the
class mask, which the paper describes and we measure. Salience and supervised IoU come from other models, and are
compared by rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import (
    Block,
    DistributionChart,
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
from hardlook.report.estimates import estimate_to_json, finite_or_none, make_estimate_dot
from hardlook.toss.tiers.attributes import ATTRIBUTES, AttributeRow, FailedImage, MeasuredTable

if TYPE_CHECKING:
    from hardlook.data.class_masks import ClassMaskSource

MEANINGS = {
    "saliou": "IoU of the mask with the saliency map above .5",
    "iou": "IoU of the supervised model's pixels of the class with the mask",
    "area_ratio": "area of the mask's box over the frame, at 512 x 512",
    "offset_ratio": "1 for a box in the middle, 0 for one whose centre lies half a side away",
    "blob_count": "connected components of the mask, plus one for the background",
    "distractor_weight": "share of other classes among the pixels of all classes",
}
RANKED = ("saliou", "iou")  # columns that are compared with the published ones by rank
_BOX_NOTE = "published: one value per image, whatever the class; ours: the box of the class mask"
# Columns that are compared with the published ones value by value, and what to expect.
EXACT = {
    "blob_count": "from the mask alone: all must be equal",
    "distractor_weight": "from the label map alone: all must be equal",
    "area_ratio": _BOX_NOTE,
    "offset_ratio": _BOX_NOTE,
}
TOLERANCE = 1e-6  # values that differ by no more count as equal
MAX_SPOTS = 1500
_MAX_EXAMPLES = 4


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
    """The numbers of `hardlook attributes` as JSON; `identity` are the data and models that they depend on."""
    means = {}
    for column in MEANINGS:
        values = _list_values(table.rows, column)
        means[ATTRIBUTES[column]] = {"masks": len(values), "mean": sum(values) / len(values) if values else None}
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
    table = Table("Images that failed", "No number on this page includes them.", ("image", "error"), rows)
    return [Section("What was left out", f"{len(rows)} images failed.", (table,))]


def build_distributions(
    rows: Sequence[AttributeRow], groups: Mapping[str, Sequence[AttributeRow]], by: str
) -> list[Block]:
    """One chart per attribute that has values, with one histogram per group."""
    blocks: list[Block] = []
    for column, meaning in MEANINGS.items():
        spread = [(group, values) for group, own in groups.items() if (values := _list_values(own, column))]
        if spread:
            name = ATTRIBUTES[column]
            caption = f"{_capitalize(meaning)}. Each histogram is as high as its own fullest bin."
            kept = [("all masks", _list_values(rows, column)), *spread]
            blocks.append(DistributionChart(f"{_capitalize(name)} by {by}", caption, kept, name))
    return blocks


def group_by_class(rows: Iterable[AttributeRow]) -> dict[str, list[AttributeRow]]:
    """Rows grouped by class, in the given order."""
    groups: dict[str, list[AttributeRow]] = {}
    for row in rows:
        groups.setdefault(row.class_name, []).append(row)
    return groups


def build_scatter(
    rows: Sequence[AttributeRow], x: str, y: str, groups: Mapping[str, str], caption: str
) -> ScatterChart | None:
    """A chart of two attributes of the same masks, at most `MAX_SPOTS` of them; None if one attribute has no values."""
    known = [
        Spot(float(first), float(second), row.filename, groups.get(row.filename, ""))
        for row in rows
        if (first := getattr(row, x)) is not None and (second := getattr(row, y)) is not None
    ]
    if not known:
        return None
    step, thinned = _space_spots(len(known))
    title = f"{_capitalize(ATTRIBUTES[x])} and {ATTRIBUTES[y]}"
    return ScatterChart(title, caption + thinned, known[::step], ATTRIBUTES[x], ATTRIBUTES[y])


def _space_spots(masks: int) -> tuple[int, str]:
    """How far apart the masks are that a chart of at most `MAX_SPOTS` draws, and the sentence that says so."""
    step = -(-masks // MAX_SPOTS)
    return step, f" One of every {step} of the {masks:,} masks is drawn." if step > 1 else ""


def build_extremes_section(rows: Sequence[AttributeRow]) -> Section:
    """Galleries of the masks at both ends of salience, supervised IoU and size."""
    galleries = []
    for column in ("saliou", "iou", "area_ratio"):
        known = [(getattr(row, column), row.filename, row.class_name) for row in rows]
        ranked = sorted(one for one in known if one[0] is not None)
        if len(ranked) >= 2 * _MAX_EXAMPLES:
            for word, ordered in (("Lowest", ranked), ("Highest", ranked[::-1])):
                # One per class: many masks share the lowest value, and one class must not fill the gallery.
                first: dict[str, Example] = {}
                for value, token, class_name in ordered:
                    caption = f"{class_name}: {ATTRIBUTES[column]} {format_fixed(value, 2)}"
                    first.setdefault(class_name, Example(token, caption))
                examples = list(first.values())[:_MAX_EXAMPLES]
                title = f"{word} {ATTRIBUTES[column]}"
                galleries.append(Gallery(title, "The mask is laid over the image.", examples))
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


def _list_values(rows: Iterable[AttributeRow], column: str) -> list[float]:
    return [float(value) for row in rows if (value := getattr(row, column)) is not None]


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class RankAgreement:
    """Spearman's correlation of one column with the published one (interval over images), and both columns' values."""

    column: str
    estimate: Estimate
    ours: NDArray[np.float64]
    published: NDArray[np.float64]


@dataclass(frozen=True)
class ExactShare:
    """How many of the shared rows have the published value (within 1e-6), and Spearman's correlation for comparison."""

    column: str
    equal: int
    rows: int
    spearman: float


@dataclass(frozen=True)
class PublishedComparison:
    """Our table against the published one on the `rows` that both have: columns compared by rank, and by value."""

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
    ranked, exact = [], []
    for column in (*RANKED, *EXACT):
        values = [(getattr(row, column), getattr(other, column), row.image) for row, other in pairs]
        known = [one for one in values if None not in one]
        if not known:
            continue
        first, second = (np.array([one[side] for one in known], np.float64) for side in (0, 1))
        if column in EXACT:
            equal = int((np.abs(first - second) <= TOLERANCE).sum())
            exact.append(ExactShare(column, equal, len(known), spearman(first, second)))
        else:
            images = [image for _, _, image in known]
            ranked.append(RankAgreement(column, _correlate(column, first, second, images, seed), first, second))
    return PublishedComparison(len(pairs), tuple(ranked), tuple(exact))


def _correlate(
    column: str, ours: NDArray[np.float64], published: NDArray[np.float64], images: list[str], seed: int
) -> Estimate:
    return bootstrap_indices(
        ours.size,
        lambda places: spearman(ours[places], published[places]),
        rng=generator(seed, "published attributes", column),
        clusters=images,
        resamples=2000,
        resampled="image",
    )


def build_published_section(comparison: PublishedComparison) -> Section:
    """Our attributes beside the published ones."""
    dots = [make_estimate_dot(ATTRIBUTES[one.column], one.estimate) for one in comparison.ranked]
    shares = [
        (one.column, one.rows, one.equal, 100 * one.equal / one.rows, one.spearman, EXACT[one.column])
        for one in comparison.exact
    ]
    charts = []
    for one in comparison.ranked:
        step, thinned = _space_spots(one.ours.size)
        points = zip(one.published[::step].tolist(), one.ours[::step].tolist(), strict=True)
        charts.append(
            ScatterChart(
                f"{_capitalize(ATTRIBUTES[one.column])}: published and ours",
                "One point per mask. The published values come from another model, so points scatter around the line."
                + thinned,
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
            *charts,
        ],
    )


def comparison_to_json(comparison: PublishedComparison) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "rows": comparison.rows,
        "spearman": {
            one.column: {**(estimate_to_json(one.estimate, ("value", "low", "high")) or {}), "masks": one.ours.size}
            for one in comparison.ranked
        },
        "exact": {
            one.column: {"equal": one.equal, "rows": one.rows, "spearman": finite_or_none(one.spearman)}
            for one in comparison.exact
        },
    }
