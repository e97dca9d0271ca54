"""The report of built tiers: the lists, the partitions, the cells, the levels, and what could not be filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.data.toss_pairs import LEVELS
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import Block, DistributionChart, HeatMap, Section, Table
from hardlook.toss.tiers.attribute_report import (
    build_distributions,
    build_extremes_section,
    build_scatter,
    group_by_class,
)
from hardlook.toss.tiers.attributes import AttributeRow, FailedImage
from hardlook.toss.tiers.rules import PARTITIONS, BuiltTiers

_SHORT = {"easy_nsal": "en", "easy_sal": "es", "hard_nsal": "hn", "hard_sal": "hs"}


@dataclass(frozen=True)
class BuiltReport:
    """Everything the page shows."""

    built: BuiltTiers
    rows: Sequence[AttributeRow]
    partitions: Mapping[str, str]
    cosines: Mapping[str, Sequence[float]]
    mean_cosine: float
    general: Mapping[str, int]
    dropped: Sequence[str]
    failures: Sequence[FailedImage]
    unmeasured: int
    without_row: Sequence[str] = ()
    given_partitions: bool = False


def build_sections(report: BuiltReport) -> list[Section]:
    """All sections, in the order of the page; those of attributes, levels and tier 3 only if there is something."""
    by_partition = Section(
        "Attributes by partition",
        "How masks of the four partitions differ in what did not define them.",
        build_distributions(report.rows, _group_by_partition(report), "partition"),
    )
    by_class = Section(
        "Attributes by class",
        "Classes differ more than partitions do; a class mean hides its spread.",
        build_distributions(report.rows, group_by_class(report.rows), "class"),
    )
    sections = [_build_list_section(report), _build_partition_section(report), _build_cell_section(report.built)]
    sections += [section for section in (by_partition, by_class) if section.blocks]
    if report.built.levels:
        sections.append(_build_level_section(report))
    if report.general or report.dropped:
        sections.append(_build_general_section(report))
    shown = build_extremes_section(report.rows)
    return [*sections, _build_unfilled_section(report), *([shown] if shown.blocks else [])]


def _build_list_section(report: BuiltReport) -> Section:
    built = report.built
    names = {0: "fixed: random pairs", 1: "tier 1: query complexity", 2: "tier 2: support cognizance"}
    rows: list[tuple[str, int | None, str | None, int]] = [
        (names[tier], fold, split or None, len(pairs)) for (tier, fold, split), pairs in sorted(built.lists.items())
    ]
    if report.general:
        rows.append(("tier 3: generalisation", None, None, sum(report.general.values())))
    folds = [(fold, ", ".join(classes)) for fold, classes in enumerate(built.folds)]
    return Section(
        "The lists",
        f"{len(report.rows):,} masks are in the lists' classes, {len(report.failures)} images failed, "
        f"{len(report.without_row)} masks have no row in the table.",
        [
            Table("Pairs per list", "One row per file.", ("list", "fold", "queries", "pairs"), rows, decimals=0),
            Table(
                "Folds", "A fold tests these classes; a model for it trains on the others.", ("fold", "tests"), folds
            ),
        ],
    )


def _build_partition_section(report: BuiltReport) -> Section:
    groups = _group_by_partition(report)
    classes = [name for fold in report.built.folds for name in fold]
    held = {partition: Counter(row.class_name for row in own) for partition, own in groups.items()}
    counts = [[float(held[partition][name]) for partition in PARTITIONS] for name in classes]
    caption = (
        "Masks per class and partition. A cell with few masks gives few pairs, and an empty one none: no score of this "
        "class in that partition."
    )
    heat_map = HeatMap("Masks by class and partition", caption, classes, PARTITIONS, counts, "class", "partition", 0)
    drawn = build_scatter(
        report.rows,
        "saliou",
        "iou",
        report.partitions,
        "One point per mask. Salient lies right of .5, easy above .75. Many points near a border mean that another "
        "saliency or supervised model would move them across.",
    )
    return Section(
        "Partitions",
        "A mask's partition is that of the lists that were given."
        if report.given_partitions
        else "A mask is easy if the supervised model finds it (IoU above .75), and salient if the saliency map "
        "above .5 overlaps it (IoU above .5).",
        [heat_map, *([drawn] if drawn else [])],
    )


def _build_cell_section(built: BuiltTiers) -> Section:
    columns = [f"{_SHORT[query]}-{_SHORT[support]}" for query in PARTITIONS for support in PARTITIONS]
    classes = [name for fold in built.folds for name in fold]
    sizes = {
        (cell.class_name, cell.query_partition, cell.support_partition): float(len(cell.pairs))
        for cells in built.cells.values()
        for cell in cells
    }
    values = [[sizes[name, query, support] for query in PARTITIONS for support in PARTITIONS] for name in classes]
    caption = "e easy, h hard; s salient, n not. Classes whose cells are small weigh as much in mIoU as the others."
    return Section(
        "Tier 1: the cells",
        "Each class has sixteen cells: the query's partition, then the support's. Below 2,000 pairs a cell lists all, "
        "else 1,000 drawn ones.",
        [HeatMap("Pairs per cell", caption, classes, columns, values, "class", "query-support", 0)],
    )


def _build_level_section(report: BuiltReport) -> Section:
    levels = report.built.levels
    counts = [[float(levels[name][level]) for level in LEVELS] for name in levels]
    mean = report.mean_cosine
    caption = "L0 identical, L1 transformed, L2 similar, L3 dissimilar, L4 other class, L5 null mask, L6 empty."
    blocks: list[Block] = [HeatMap("Pairs per level", caption, list(levels), LEVELS, counts, "class", "level", 0)]
    if report.cosines:
        groups = [("all classes", [v for own in report.cosines.values() for v in own]), *report.cosines.items()]
        caption = "Cosine of the two images of same-class pairs. "
        caption += f"Above the mean, {format_fixed(mean, 3)}, a pair is similar (L2)."
        blocks.append(DistributionChart("Similarity of same-class pairs", caption, groups, "cosine"))
    return Section("Tier 2: the levels", "From the query itself as support down to no support at all.", blocks)


def _build_general_section(report: BuiltReport) -> Section:
    pairs = list(report.general.items())
    return Section(
        "Tier 3: unlike classes",
        f"{len(report.general)} classes stay, {len(report.dropped)} were dropped since they resemble a class of the "
        "training set. Queries come half from the most, half from the least salient images of each class.",
        [
            Table("Pairs per class", "Most published classes have 45.", ("class", "pairs"), pairs, decimals=0),
            Table("Dropped", "Classes that resemble one of VOC's.", ("class",), [(name,) for name in report.dropped]),
        ],
    )


def _build_unfilled_section(report: BuiltReport) -> Section:
    rows = [(one.part, one.wanted, one.got, one.why) for one in report.built.unfilled]
    failed = [(failure.image, failure.error) for failure in report.failures]
    lacks = "are in none of the lists given" if report.given_partitions else "lack a supervised IoU or a salience"
    sentence = f"{report.unmeasured} masks {lacks} and have no partition."
    without = [(token,) for token in report.without_row]
    return Section(
        "What could not be filled",
        sentence if report.unmeasured else "Every measured mask is in a partition.",
        [
            Table(
                "Fewer pairs than wanted",
                "Empty tier-1 cells, and tier-2 levels below the published number.",
                ("part", "wanted", "got", "why"),
                rows,
                decimals=0,
            ),
            *([Table("Images that failed", "They are in no list.", ("image", "error"), failed)] if failed else []),
            *([Table("Masks without a row", "The table lacks them.", ("mask",), without)] if without else []),
        ],
    )


def _group_by_partition(report: BuiltReport) -> dict[str, list[AttributeRow]]:
    groups: dict[str, list[AttributeRow]] = {name: [] for name in PARTITIONS}
    for row in report.rows:
        if row.filename in report.partitions:
            groups[report.partitions[row.filename]].append(row)
    return groups
