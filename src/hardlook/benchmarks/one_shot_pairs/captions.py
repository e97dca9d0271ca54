"""A single pair in words: what was looked for, how well it was found, what the mask went with."""

from __future__ import annotations

from hardlook.benchmarks.one_shot_pairs.salience import NOT_ASKED
from hardlook.contract.records import Record


def caption_of(record: Record, setting: str, *, spurious: bool = False) -> str:
    """One sentence about a pair; `setting` says what was asked, `spurious` that the support does not show the class.

    The IoU leaves pixels out that the truth leaves open; where they were predicted, the IoU with them follows.

    >>> counts = {"intersection": 3, "predicted": 5, "truth": 4, "predicted_void": 1}
    >>> caption_of({"class": "cat", "salient": 9, "predicted_salient": 4, **counts}, "hard, not salient")
    'The mask for cat (hard, not salient) has an IoU of 0.600 (0.500 with void) and of 0.400 with what is salient.'
    >>> caption_of({"class": "cat", **counts, "predicted_void": 0}, "L5 no mask", spurious=True)
    'The mask for cat (L5 no mask) has an IoU of 0.500 with what the support does not show: 0 is right.'
    """
    subject = f"The mask for {record['class']} ({setting})"
    hits, predicted, void = (int(record[name]) for name in ("intersection", "predicted", "predicted_void"))
    union = predicted + int(record["truth"]) - hits
    if not predicted:
        words = "is empty, and there is nothing to find" if not union else "is empty"
        return f"{subject} {words}{': right, since the support does not show the class' if spurious else ''}."
    if union == void:
        return f"{subject} lies where the truth is left open, and there is nothing to find."
    words = f"{subject} has an IoU of {hits / (union - void):.3f}"
    words += f" ({hits / union:.3f} with void)" if void else ""
    if spurious:
        return f"{words} with what the support does not show: 0 is right."
    salient = int(record.get("salient", NOT_ASKED))
    if salient == NOT_ASKED:
        return f"{words}."
    both = int(record["predicted_salient"])
    return f"{words} and of {both / (predicted + salient - both):.3f} with what is salient."
