"""What the cards of the benchmarks on labels share: citation, licence and calibration dials."""

from __future__ import annotations

from hardlook.harness.benchmark import Dial

CITATION = "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation, arXiv 2311.03352 (2023)."
DATA_LICENCE = "the planted world: MIT; your own data: yours"
_FAULTS = {"missed": "missed objects", "ragged": "ragged borders"}


def misname_half(setting: float) -> dict[str, float]:
    """Half of all objects get a wrong name at every setting: a stranger's at 0, a sibling's at 1."""
    return {"sibling": 0.5 * setting, "stranger": 0.5 * (1 - setting)}


def open_dials(model: str, vanilla: str, faults: tuple[str, ...], most_siblings: float = 1.0) -> tuple[Dial, ...]:
    """Wrong names move the scores, and only the open one tells similar names from others; `faults` move no gain.

    `most_siblings` is the share of objects that have a sibling's name at 1.
    """
    title = "a sibling's name" if most_siblings == 1 else "a sibling's name, up to half"
    opened = f"open-{vanilla}"
    return (
        Dial(title, model, lambda v: {"sibling": most_siblings * v}, "open-gain"),
        *(_control_dial(model, fault) for fault in faults),
        Dial("a stranger's name", model, lambda v: {"stranger": v}, vanilla),
        Dial("sibling or stranger", model, misname_half, vanilla, moves=False),
        Dial("a stranger's name", model, lambda v: {"stranger": v}, opened),
        Dial("sibling or stranger", model, misname_half, opened),
    )


def _control_dial(model: str, fault: str) -> Dial:
    return Dial(_FAULTS[fault], model, lambda v: {fault: v}, "open-gain", moves=False)
