"""Single pairs of TOSS in words."""

from __future__ import annotations

from hardlook.benchmarks.one_shot_pairs.captions import caption_of
from hardlook.benchmarks.toss.scores import FIXED, GENERAL, SPURIOUS
from hardlook.benchmarks.toss.split_words import LEVEL_WORDS, SPLIT_WORDS
from hardlook.contract.records import Record


def pair_caption(record: Record) -> str:
    """The class, the split or level, how well it was found, and what the mask went with.

    >>> counts = {"intersection": 3, "predicted": 5, "truth": 4, "predicted_void": 0}
    >>> pair = {"class": "cat", "tier": 2, "fold": 1, "split": "L1", "shots": 5, "mixed": False, **counts}
    >>> pair_caption(pair)
    "The mask for cat (L1 the query's original, moved; 5 supports) has an IoU of 0.500."
    """
    split = str(record["split"])
    setting = SPLIT_WORDS.get(split) or LEVEL_WORDS.get(split) or split
    if record["tier"] == GENERAL:
        setting = "tier 3, query and support of two classes" if record["mixed"] else "tier 3"
    elif record["tier"] == FIXED:
        setting = f"fixed pair of fold {record['fold']}"
    more = f"; {record['shots']} supports" if record["shots"] > 1 else ""
    return caption_of(record, f"{setting}{more}", spurious=split in SPURIOUS)
