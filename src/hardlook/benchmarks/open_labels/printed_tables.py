"""The tables of the open metrics' paper, whole and as printed: similarity and mIoU, PQ, AP.

From "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation", arXiv 2311.03352, Tables 3 to 11. A printed
increment is that of its two values but for four, which are kept as printed.

>>> [table.name for table in (*miou_tables(), *pq_tables(), *ap_tables())]
['table-3', 'table-4', 'table-11', 'table-5', 'table-6', 'table-10', 'table-7', 'table-8', 'table-9']
"""

from __future__ import annotations

from collections.abc import Mapping

from hardlook.benchmarks.open_labels.published import SEMANTIC_DATASETS, TABLE_4
from hardlook.benchmarks.open_labels.published_ap import TABLE_7, TABLE_8, TABLE_9, Kinds
from hardlook.benchmarks.open_labels.published_pq import TABLE_5, TABLE_6, TABLE_10, Printed
from hardlook.contract.published import PublishedCell, PublishedTable
from hardlook.labels.measures import find_measure

SOURCE = "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation, arXiv 2311.03352"
Row = tuple[PublishedCell, ...]
_QUANTITIES = ("PQ", "SQ", "RQ")
# Printed increments that their values do not give; None where none is printed.
_INCREMENTS: Mapping[tuple[str, ...], float | None] = {
    ("table-4", "OVSeg", "PAS-20"): 1.1,
    ("table-5", "OPSNet", "A-150", "RQ"): 6.1,
    ("table-5", "FC-CLIP", "COCO", "SQ"): None,
    ("table-7", "ODISE", "APm"): 2.0,
    ("table-7", "ODISE", "APl"): -2.0,
}
# Our names of the measures, the paper's, and its three kinds, in its order.
_MEASURES = {
    "lin": ("Lin", "wordnet"),
    "lesk": ("Lesk", "wordnet"),
    "path": ("Path", "wordnet"),
    "wup": ("WuP", "wordnet"),
    "glove": ("GloVe", "text embedding"),
    "word2vec": ("Word2Vec", "text embedding"),
    "fasttext": ("FastText", "text embedding"),
    "t5": ("T5", "language model"),
    "clip": ("CLIP", "language model"),
    "bert": ("BERT", "language model"),
    "gpt2": ("GPT-2", "language model"),
}
# Table 11: mean and standard deviation of what people gave each measure, from 1 to 10.
USER_STUDY = {"Path": (6.12, 1.71), "GloVe": (3.05, 0.99), "T5": (4.29, 1.23)}
# Table 9 leaves the constrained setting empty for methods without results there.
_SETTINGS = ("constrained, base", "constrained, novel", "generalised, base", "generalised, novel", "generalised, all")


def miou_tables() -> tuple[PublishedTable, ...]:
    """Similarity measures (3), mIoU (4) and the user study (11)."""
    statistics: list[Row] = []
    for name, (word, kind) in _MEASURES.items():
        measure = find_measure(name)
        statistics.append((word, kind, measure.mean, measure.std))
    semantic = [
        (method, dataset, *_with_increment(datasets.get(dataset), ("table-4", method, dataset)))
        for method, datasets in TABLE_4.items()
        for dataset in SEMANTIC_DATASETS
    ]
    return (
        _table("table-3", "Table 3: similarity of ImageNet-1k's labels", ("measure", "type", "mean", "std"), statistics,
               "From 0 to 1, over all pairs. The decimal point of T5's std is missing in print."),
        _table("table-4", "Table 4: mIoU", ("method", "dataset", "vanilla", "open", "increment"), semantic,
               "Percent. The increment of OVSeg on PAS-20 is not that of its values (0.9)."),
        _table("table-11", "Table 11: user study", ("measure", "mean", "std"),
               [(name, *row) for name, row in USER_STUDY.items()], "Marks from 1 to 10."),
    )  # fmt: skip


def pq_tables() -> tuple[PublishedTable, ...]:
    """PQ across datasets (5), inside of COCO (6) and under three measures (10)."""
    ends = ("quantity", "vanilla", "open", "increment")
    across = [
        (method, dataset, "source" if dataset == "COCO" else "target", *cells)
        for (method, dataset), printed in TABLE_5.items()
        for cells in _qualities(printed, ("table-5", method, dataset))
    ]
    inside = [(*key, *cells) for key, printed in TABLE_6.items() for cells in _qualities(printed, ("table-6", *key))]
    measures = [
        (method, "A-150", measure, *cells)
        for (method, measure), printed in TABLE_10.items()
        for cells in _qualities(printed, ("table-10", method, measure))
    ]
    return (
        _table("table-5", "Table 5: PQ", ("method", "dataset", "role", *ends), across,
               "Percent. PQ of OPSNet and ODISE on COCO is far below SQ x RQ. The increment of OPSNet's RQ on A-150 is "
               "not that of its values (5.1)."),
        _table("table-6", "Table 6: PQ of known and unknown things of COCO", ("method", "classes", *ends), inside,
               "Percent, thing classes alone."),
        _table("table-10", "Table 10: PQ under three similarity measures", ("method", "dataset", "measure", *ends),
               measures, "Percent. Path is Table 5's row."),
    )  # fmt: skip


def ap_tables() -> tuple[PublishedTable, ...]:
    """AP of instances (7), and AP50 of masks (8) and boxes (9) of base and novel classes."""
    ends = ("vanilla", "dagger", "open", "increment")
    instances = [
        (method, word, *_kinds(kinds, ("table-7", method, word)))
        for method, quantities in TABLE_7.items()
        for quantity, kinds in quantities.items()
        for word in [quantity.replace("ap", "AP")]
    ]
    return (
        _table("table-7", "Table 7: AP of instances on A-150", ("method", "quantity", *ends), instances,
               "Percent; increments are over dagger. Those of ODISE's APm and APl are not those of their values (1.9, "
               "2.0)."),
        _table("table-8", "Table 8: AP50 of masks, 48 base and 17 novel classes of COCO",
               ("method", "setting", "classes", *ends), _settings(TABLE_8), "Percent."),
        _table("table-9", "Table 9: AP50 of boxes, 48 base and 17 novel classes of COCO",
               ("method", "setting", "classes", *ends), _settings(TABLE_9),
               "Percent. Open AP50 of RegionCLIP over all classes does not fit its base and novel ones (54.3)."),
    )  # fmt: skip


def _table(name: str, title: str, columns: tuple[str, ...], rows: list[Row], note: str) -> PublishedTable:
    return PublishedTable(name, title, columns, tuple(rows), SOURCE, note)


def _with_increment(values: tuple[float, float] | None, key: tuple[str, ...]) -> Row:
    if values is None:
        return (None, None, None)
    return (*values, _INCREMENTS.get(key, round(values[1] - values[0], 1)))


def _qualities(printed: Printed, key: tuple[str, ...]) -> list[Row]:
    rows = zip(_QUANTITIES, printed, strict=True)
    return [(quantity, *_with_increment(values, (*key, quantity))) for quantity, values in rows]


def _kinds(kinds: Kinds | None, key: tuple[str, ...]) -> Row:
    if kinds is None:
        return (None, None, None, None)
    return (*kinds, _INCREMENTS.get(key, round(kinds[2] - kinds[1], 1)))


def _settings(table: Mapping[str, Mapping[str, Kinds]]) -> list[Row]:
    return [
        (method, *setting.split(", "), *_kinds(settings.get(setting), ("", method)))
        for method, settings in table.items()
        for setting in _SETTINGS
    ]
