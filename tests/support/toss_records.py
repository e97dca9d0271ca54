"""Records of TOSS made by hand, and their scores."""

from __future__ import annotations

from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions

SPLITS = ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal")

TOLD = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")

UNTOLD = ("L0", "L1", "L2+L3", "L4", "L5", "L6")

TOLD_IN_PART = ("L0", "L1", "L2", "L2+L3", "L4", "L5", "L6")


def scorecard(frame, scs="paper", void="ignored", **more):
    options = TossOptions(**{"resamples": 0, "reading": {"scs": scs, "void": void}, **more})
    return TOSS.score(frame, options)


def row(place, tier, fold, split, name, query, counts, mixed=False, salient=(-1, -1, -1, -1), similarity=-2.0):
    """A record; `counts` are pixels by whether they are predicted and whether they are true, false, or left open.

    `salient` are the pixels that are salient, those of them predicted, true, and both.
    """
    both, missed, wrong, _, wrong_open, clear_open = counts
    return {
        "unit": f"pair-{place:04d}", "tier": tier, "fold": fold, "split": split, "class": name, "shots": 1,
        "mixed": mixed, "query": query, "support": "somewhere", "intersection": both,
        "predicted": both + wrong + wrong_open, "truth": both + missed, "predicted_void": wrong_open,
        "void": wrong_open + clear_open, "pixels": sum(counts), "listing": "built", "prediction": "",
        "salient": salient[0], "predicted_salient": salient[1], "truth_salient": salient[2],
        "found_salient": salient[3], "similarity": similarity,
    }  # fmt: skip


def frame_of(rows):
    return TOSS.schema.frame(rows)


def rows_of_ious(cells):
    """One pair of 100 pixels union for each (tier, fold, split, class): IoU in per cent."""
    return [
        row(place, *cell, f"image {place}", [percent, 100 - percent, 0, 50, 0, 0])
        for place, (cell, percent) in enumerate(cells.items())
    ]
