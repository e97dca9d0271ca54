"""Published results of the open metrics' paper, and whether a run's scores are comparable with them.

"Rethinking Evaluation Metrics of Open-Vocabulary Segmentation", arXiv 2311.03352, Tables 3 to 11. `published/` holds
the tables as printed, in percent; results for leaderboards are fractions of 1. Four printed increments are not the
difference of their two values and are kept as printed. In Table 9 the open score of RegionCLIP over all classes (53.9)
does not fit its base and novel ones (61.6 and 33.6 average to 54.3).

>>> [table.name for table in (*list_miou_tables(), *list_pq_tables(), *list_ap_tables())]
['table-3', 'table-4', 'table-11', 'table-5', 'table-6', 'table-10', 'table-7', 'table-8', 'table-9']
>>> [row.values["open-miou"] for row in list_miou_results() if row.method == "SAN" and row.where["dataset"] == "PAS-20"]
[0.96]
>>> len(list_ap_results()), list_ap_results()[0].method, list_ap_results()[0].values["open-ap"]
(23, 'ODISE', 0.143)
>>> [row.values["open-pq"] for row in list_pq_results() if row.method == "FC-CLIP" and row.source == "Table 5, A-150"]
[0.288]
"""

from __future__ import annotations

from dataclasses import replace

from hardlook.harness.published import PublishedResult, PublishedTable, fraction, read_published
from hardlook.harness.scorecard import Scorecard
from hardlook.open_vocabulary.options import SimilarityOptions

PACKAGE = "hardlook.open_vocabulary"

# Shipped label sets, and the paper's names for the datasets whose classes they are.
DATASETS = {
    "ade150": "A-150",
    "ade847": "A-847",
    "pc459": "PC-459",
    "pc59": "PC-59",
    "voc20": "PAS-20",
    "coco80": "COCO",
    "coco133": "COCO",
}

_COMPARABLE = "comparable with a run on the dataset's whole validation set with --variant published and --measure path"
_SENSES_UNKNOWN = (
    "mIoU is comparable with a run on the dataset's whole validation set; open mIoU is not: the paper's senses of the "
    "847 classes are not known"
)
_PREFIXES = {"vanilla": "", "dagger": "dagger-", "open": "open-"}


def list_miou_tables() -> tuple[PublishedTable, ...]:
    """Similarity measures (3), mIoU (4) and the user study (11)."""
    return _tables("table-3", "table-4", "table-11")


def list_pq_tables() -> tuple[PublishedTable, ...]:
    """PQ across datasets (5), inside of COCO (6) and under three measures (10)."""
    return _tables("table-5", "table-6", "table-10")


def list_ap_tables() -> tuple[PublishedTable, ...]:
    """AP of instances (7), and AP50 of masks (8) and boxes (9) of base and novel classes."""
    return _tables("table-7", "table-8", "table-9")


def list_miou_results() -> tuple[PublishedResult, ...]:
    """Vanilla and open mIoU per method and dataset; POMP has no results on three datasets."""
    return tuple(
        PublishedResult(
            method,
            f"Table 4, {dataset}",
            values,
            _SENSES_UNKNOWN if dataset == "A-847" else _COMPARABLE,
            {"dataset": dataset},
        )
        for (method, dataset), values in _values("table-4", "miou").items()
    )


def list_ap_results() -> tuple[PublishedResult, ...]:
    """Vanilla, dagger and open AP: of masks on A-150, and AP50 of COCO's base and novel classes."""
    results = [
        PublishedResult(method, "Table 7, A-150, masks", values, _COMPARABLE, {"dataset": "A-150", "iou": "segm"})
        for (method,), values in _values("table-7").items()
    ]
    for table, source, iou in (
        ("table-8", "Table 8, COCO 48/17, masks", "segm"),
        ("table-9", "Table 9, COCO 48/17, boxes", "bbox"),
    ):
        for (method, setting, classes), values in _values(table, "ap50").items():
            where = {"dataset": "COCO", "iou": iou, "setting": setting, "classes": classes}
            results.append(PublishedResult(method, f"{source}, {setting}, {classes}", values, _COMPARABLE, where))
    return tuple(results)


def list_pq_results() -> tuple[PublishedResult, ...]:
    """Vanilla and open PQ, SQ and RQ: per dataset, of known and unknown things, and under other measures."""
    results = []
    for (method, dataset, _), values in _values("table-5").items():
        note = _COMPARABLE
        if dataset == "COCO" and method != "FC-CLIP":
            note += "; the printed PQ is far below the product of the printed SQ and RQ"
        results.append(PublishedResult(method, f"Table 5, {dataset}", values, note, {"dataset": dataset}))
    for (method, classes), values in _values("table-6").items():
        note = f"{_COMPARABLE}, of the {classes} thing classes alone"
        # The slice of a run with --class-sets coco-things-64-16, whose sets are things alone.
        where = {"dataset": "COCO", "classes": classes}
        results.append(PublishedResult(method, f"Table 6, COCO, {classes} things", values, note, where))
    note = "not comparable: the paper does not say which vectors or texts the measure was trained on"
    for (method, dataset, measure), values in _values("table-10").items():
        if measure != "Path":  # which is the row of Table 5
            where = {"dataset": dataset, "measure": measure.lower()}
            results.append(PublishedResult(method, f"Table 10, {dataset}, {measure}", values, note, where))
    return tuple(results)


def _tables(*names: str) -> tuple[PublishedTable, ...]:
    return tuple(read_published(PACKAGE).tables[name] for name in names)


def _values(table: str, score: str | None = None) -> dict[tuple[str, ...], dict[str, float]]:
    """Values by score name, per row of a table; without `score` the last label of a row says which score it is."""
    published = read_published(PACKAGE)
    values: dict[tuple[str, ...], dict[str, float]] = {}
    for row in published.rows(table):
        labels = row.split("|")
        name = score or labels.pop().lower()
        for column in published.tables[table].columns:
            if column in _PREFIXES and published.cell(table, row, column) is not None:
                value = fraction(published.number(table, row, column))
                values.setdefault(tuple(labels), {})[_PREFIXES[column] + name] = value
    return values


def describe_comparability(options: SimilarityOptions) -> str:
    """Whether scores under these options are comparable with the paper's, in one sentence.

    >>> describe_comparability(SimilarityOptions())
    'Not comparable with the paper: these are scenes of the planted world.'
    """
    if not (options.data or options.gt):
        return "Not comparable with the paper: these are scenes of the planted world."
    if options.pred_words == "free":
        return "Not comparable with the paper's tables, whose methods choose among given labels."
    if options.labels == "ade847":
        return "Open scores are not comparable with the paper's, whose senses of these labels are not known."
    if options.similarity is not None or (options.variant, options.measure) != ("published", "path"):
        return "Not comparable with the paper's tables, which are --variant published --measure path."
    return "Comparable with the paper's tables where the images are the same validation set."


def add_comparability(scorecard: Scorecard, options: SimilarityOptions) -> Scorecard:
    """The scorecard with that sentence on every score over all units."""
    text = describe_comparability(options)
    scores = tuple(score if score.slice else replace(score, comparable=text) for score in scorecard.scores)
    return replace(scorecard, scores=scores)


def find_published_dataset(options: SimilarityOptions) -> dict[str, str]:
    """The paper's dataset that these labels belong to, as a slice; empty for the planted world and for other labels.

    No option says whether the images are the dataset's validation set.

    >>> from pathlib import Path
    >>> find_published_dataset(SimilarityOptions(gt=Path("truth"), labels="ade150"))
    {'dataset': 'A-150'}
    >>> find_published_dataset(SimilarityOptions(labels="ade150"))
    {}
    """
    given = bool(options.data or options.gt)
    return {"dataset": DATASETS[options.labels]} if given and options.labels in DATASETS else {}
