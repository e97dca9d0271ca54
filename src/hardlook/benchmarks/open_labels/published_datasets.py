"""Which of the paper's datasets a run's labels are those of."""

from __future__ import annotations

from hardlook.benchmarks.open_labels.options import OpenLabelOptions

# Shipped label sets, and the paper's names for the datasets whose classes they are.
DATASETS = {
    "ade150": "A-150",
    "pc459": "PC-459",
    "pc59": "PC-59",
    "voc20": "PAS-20",
    "coco80": "COCO",
    "coco133": "COCO",
}


def published_slice(labels: str | None, options: OpenLabelOptions) -> dict[str, str]:
    """The dataset of these labels; nothing for the planted world and for labels of one's own.

    Whether the images are the dataset's validation set no option tells.

    >>> from pathlib import Path
    >>> published_slice("ade150", OpenLabelOptions(gt=Path("truth"))), published_slice("ade150", OpenLabelOptions())
    ({'dataset': 'A-150'}, {})
    """
    given = bool(options.data or options.gt)
    return {"dataset": DATASETS[labels]} if given and labels in DATASETS else {}
