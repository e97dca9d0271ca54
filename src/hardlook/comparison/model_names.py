"""What the models of a comparison are called: by what tells their runs apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.runs.scoring import ScoredRun


def model_names(runs: Sequence[ScoredRun], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """The given names, one a run; else the models' own where they differ, else those of the run folders."""
    if names:
        if len(names) != len(runs) or len(set(names)) != len(names) or not all(name.strip() for name in names):
            raise OptionError(
                f"--names: expected {len(runs)} different names for {len(runs)} runs, got {', '.join(names) or 'none'}",
                remedy="give one name a run, in their order, with commas between",
            )
        return tuple(names)
    own = [str(run.manifest["model"]["name"]) if run.manifest["model"] else "stored predictions" for run in runs]
    if len(set(own)) == len(own):
        return tuple(own)
    return tuple(distinct_paths([run.folder.path for run in runs]))


def chart_names(models: Sequence[str], room: int = 14) -> dict[str, str]:
    """Names for the labels of charts: what all begin with is left out where a name has more than `room` letters.

    >>> chart_names(["distance-mobile-sam", "distance-mobile-sam-first"])["distance-mobile-sam-first"]
    '…sam-first'
    >>> chart_names(["ridge", "k-nn"])["ridge"]
    'ridge'
    """
    ends = min(models), max(models)
    # What the first and the last in order begin with, all do.
    alike = next((place for place, (a, b) in enumerate(zip(*ends, strict=False)) if a != b), len(ends[0]))
    start = ends[0][:alike]
    # Whole words are left out, and never a whole name.
    kept = max((start.rfind(mark, 0, len(start) - (start in models)) + 1 for mark in " -_/:"), default=0)
    long = len(models) > 1 and kept > 1 and any(len(model) > room for model in models)
    return {model: f"\N{HORIZONTAL ELLIPSIS}{model[kept:]}" if long else model for model in models}


def distinct_paths(paths: Sequence[Path]) -> list[str]:
    """As few last parts of each path as tell all of them apart.

    >>> distinct_paths([Path("monday/net"), Path("friday/net")])
    ['monday/net', 'friday/net']
    >>> distinct_paths([Path("runs/a"), Path("runs/b")])
    ['a', 'b']
    """
    whole = [path.resolve().parts for path in paths]
    if len(set(whole)) < len(whole):
        twice = next(path for path, parts in zip(paths, whole, strict=True) if whole.count(parts) > 1)
        raise OptionError(f"the run {twice} is given twice", remedy="compare a run with another one")
    length = 1
    while len({parts[-length:] for parts in whole}) < len(whole):
        length += 1
    return ["/".join(parts[-length:]) for parts in whole]
