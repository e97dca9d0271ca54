"""The report of built tiers: what went in, the partitions, the cells, the levels, and what could not be filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.commands.attributes.sections import by_class, distributions, extremes, scatter
from hardlook.contract.sections import Block, DistributionChart, HeatMap, Section, Table
from hardlook.data.toss_pairs import LEVELS
from hardlook.tiers.attribute_rows import AttributeRow
from hardlook.tiers.attribute_table import FailedImage
from hardlook.tiers.built_tiers import BuiltTiers
from hardlook.tiers.partitions import PARTITIONS

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
    """All sections, in the order of the page."""
    sections = [
        _lists(report),
        _partitions(report),
        _cells(report.built),
        *_attributes(report),
    ]
    if report.built.levels:
        sections.append(_levels(report))
    if report.general or report.dropped:
        sections.append(_general(report))
    shown = extremes(report.rows)
    return [*sections, _unfilled(report), *([shown] if shown.blocks else [])]


def _attributes(report: BuiltReport) -> list[Section]:
    by_partition = distributions(report.rows, _by_partition(report), "partition")
    words = (
        "How masks of the four partitions differ in what did not define them.",
        "Classes differ more than partitions do; a class mean hides its spread.",
    )
    of_class = distributions(report.rows, by_class(report.rows), "class")
    found = [
        Section("Attributes by partition", words[0], by_partition),
        Section("Attributes by class", words[1], of_class),
    ]
    return [section for section in found if section.blocks]


def _lists(report: BuiltReport) -> Section:
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
            Table("Pairs a list", "One row a file.", ("list", "fold", "queries", "pairs"), rows, decimals=0),
            Table(
                "Folds", "A fold tests these classes; a model for it trains on the others.", ("fold", "tests"), folds
            ),
        ],
    )


def _partitions(report: BuiltReport) -> Section:
    groups = _by_partition(report)
    classes = [name for fold in report.built.folds for name in fold]
    counts = [
        [float(sum(row.class_name == name for row in groups[partition])) for partition in PARTITIONS]
        for name in classes
    ]
    caption = (
        "Masks a class and partition. A cell with few masks gives few pairs, and an empty one none: no score of this "
        "class in that partition."
    )
    blocks: list[Block] = [
        HeatMap("Masks by class and partition", caption, classes, PARTITIONS, counts, "class", "partition", 0)
    ]
    drawn = scatter(
        report.rows,
        "saliou",
        "iou",
        report.partitions,
        "One point a mask. Salient lies right of .5, easy above .75. Many points near a border mean that another "
        "saliency or supervised model would move them across.",
    )
    return Section(
        "Partitions",
        "A mask's partition is that of the lists that were given."
        if report.given_partitions
        else "A mask is easy when the supervised model finds it (IoU above .75), and salient when the saliency map "
        "above .5 overlaps it (IoU above .5).",
        [*blocks, *([drawn] if drawn else [])],
    )


def _cells(built: BuiltTiers) -> Section:
    columns = [f"{_SHORT[query]}-{_SHORT[support]}" for query in PARTITIONS for support in PARTITIONS]
    classes = [name for fold in built.folds for name in fold]
    sizes = {
        (cell.class_name, cell.query_partition, cell.support_partition): float(len(cell.pairs))
        for cells in built.cells.values()
        for cell in cells
    }
    values = [[sizes[name, query, support] for query in PARTITIONS for support in PARTITIONS] for name in classes]
    return Section(
        "Tier 1: the cells",
        "Each class has sixteen cells: the query's partition, then the support's. Below 2,000 pairs a cell lists all, "
        "else 1,000 drawn ones.",
        [
            HeatMap(
                "Pairs a cell",
                "e easy, h hard; s salient, n not. Classes whose cells are small weigh as much in mIoU as the others.",
                classes,
                columns,
                values,
                "class",
                "query-support",
                0,
            )
        ],
    )


def _levels(report: BuiltReport) -> Section:
    levels = report.built.levels
    counts = [[float(levels[name][level]) for level in LEVELS] for name in levels]
    mean = report.mean_cosine
    blocks: list[Block] = [
        HeatMap(
            "Pairs a level",
            "L0 identical, L1 transformed, L2 similar, L3 dissimilar, L4 other class, L5 null mask, L6 empty.",
            list(levels),
            LEVELS,
            counts,
            "class",
            "level",
            0,
        )
    ]
    if report.cosines:
        groups = [("all classes", [v for own in report.cosines.values() for v in own]), *report.cosines.items()]
        caption = f"Cosine of the two images of same-class pairs. Above the mean, {mean:.3f}, a pair is similar (L2)."
        blocks.append(DistributionChart("Similarity of same-class pairs", caption, groups, "cosine"))
    return Section("Tier 2: the levels", "From the query itself as support down to no support at all.", blocks)


def _general(report: BuiltReport) -> Section:
    rows = [(name, pairs) for name, pairs in report.general.items()]
    return Section(
        "Tier 3: unlike classes",
        f"{len(report.general)} classes stay, {len(report.dropped)} were dropped since they resemble a class of the "
        "training set. Queries come half from the most, half from the least salient images of each class.",
        [
            Table("Pairs a class", "Most published classes have 45.", ("class", "pairs"), rows, decimals=0),
            Table("Dropped", "Classes that resemble one of VOC's.", ("class",), [(name,) for name in report.dropped]),
        ],
    )


def _unfilled(report: BuiltReport) -> Section:
    rows = [(one.part, one.wanted, one.got, one.why) for one in report.built.unfilled]
    failed = [(failure.image, failure.error) for failure in report.failures]
    lacks = "are in none of the lists given" if report.given_partitions else "lack a supervised IoU or a salience"
    said = f"{report.unmeasured} masks {lacks} and have no partition."
    without = [(token,) for token in report.without_row]
    return Section(
        "What could not be filled",
        said if report.unmeasured else "Every measured mask is in a partition.",
        [
            Table(
                "Fewer pairs than asked for",
                "Empty tier-1 cells, and tier-2 levels below the published number.",
                ("part", "wanted", "there are", "why"),
                rows,
                decimals=0,
            ),
            *([Table("Images that failed", "They are in no list.", ("image", "error"), failed)] if failed else []),
            *([Table("Masks without a row", "The table lacks them.", ("mask",), without)] if without else []),
        ],
    )


def _by_partition(report: BuiltReport) -> dict[str, list[AttributeRow]]:
    groups: dict[str, list[AttributeRow]] = {name: [] for name in PARTITIONS}
    for row in report.rows:
        if row.filename in report.partitions:
            groups[report.partitions[row.filename]].append(row)
    return groups
