"""Calibration dials that the benchmarks on labels share."""

from __future__ import annotations

from hardlook.harness.benchmark import Dial


def misname_half(setting: float) -> dict[str, float]:
    """Half of all objects get a wrong name at every setting: a stranger's at 0, a sibling's at 1."""
    return {"sibling": 0.5 * setting, "stranger": 0.5 * (1 - setting)}


def naming_dials(model: str, vanilla: str, opened: str) -> tuple[Dial, ...]:
    """Both scores fall with wrong names; only the open one tells similar wrong names from dissimilar ones."""
    return (
        Dial("a stranger's name", model, lambda v: {"stranger": v}, vanilla),
        Dial("sibling or stranger", model, misname_half, vanilla, moves=False),
        Dial("a stranger's name", model, lambda v: {"stranger": v}, opened),
        Dial("sibling or stranger", model, misname_half, opened),
    )
