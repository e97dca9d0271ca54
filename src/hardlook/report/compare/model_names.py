"""Names for the models of a comparison: given ones, their own, or the folders of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.errors import OptionError
from hardlook.harness.runs.scoring import WITH
from hardlook.report.run_report import list_model_marks

if TYPE_CHECKING:
    from hardlook.harness.runs.scoring import ScoredRun


def name_models(runs: Sequence[ScoredRun], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """The given names; else the models' own where they differ, else those of the folders; transductive ones marked.

    A model's own name has the models that it works with, such as its encoder.
    """
    if names:
        if len(names) != len(runs) or len(set(names)) != len(names) or not all(name.strip() for name in names):
            raise OptionError(
                f"--names: expected {len(runs)} different names for {len(runs)} runs, got {', '.join(names) or 'none'}",
                remedy="give one name per run, in their order, separated by commas",
            )
        return tuple(names)
    models = [str(run.manifest["model"]["name"]) if run.manifest["model"] else "" for run in runs]
    own = [run.method for run in runs]
    if len(set(own)) < len(own):
        own = shorten_paths([run.folder.path for run in runs])
    transductive = ["transductive" in list_model_marks(model) if model else False for model in models]
    return tuple(f"{name} (transductive)" if marked else name for name, marked in zip(own, transductive, strict=True))


def shorten_model_names(models: Sequence[str], room: int = 14) -> dict[str, str]:
    """Names for the labels of charts: their common start is left out where a name has more than `room` letters.

    So is an encoder that all have.

    >>> shorten_model_names(["distance-mobile-sam", "distance-mobile-sam-first"])["distance-mobile-sam-first"]
    '…sam-first'
    >>> shorten_model_names(["ridge", "k-nn"])["ridge"]
    'ridge'
    >>> shorten_model_names([])
    {}
    >>> shorten_model_names(["ridge with clip-large", "k-nn with clip-large"])["ridge with clip-large"]
    'ridge'
    """
    alone, encoders = [model.partition(WITH)[0] for model in models], {model.partition(WITH)[2] for model in models}
    if len(encoders) == 1 and "" not in encoders and any(len(model) > room for model in models):
        short = shorten_model_names(alone, room)
        return {model: short[own] for model, own in zip(models, alone, strict=True)}
    ends = min(models, default=""), max(models, default="")  # none has a score that is undefined for all
    # The common start of the first and the last in alphabetical order is common to all.
    same = next((place for place, (a, b) in enumerate(zip(*ends, strict=False)) if a != b), len(ends[0]))
    start = ends[0][:same]
    # Only whole words are left out, and never a whole name.
    kept = max((start.rfind(mark, 0, len(start) - (start in models)) + 1 for mark in " -_/:"), default=0)
    long = len(models) > 1 and kept > 1 and any(len(model) > room for model in models)
    return {model: f"\N{HORIZONTAL ELLIPSIS}{model[kept:]}" if long else model for model in models}


def shorten_paths(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that are all different, with the same number of parts.

    >>> shorten_paths([Path("monday/net"), Path("friday/net")])
    ['monday/net', 'friday/net']
    >>> shorten_paths([Path("runs/a"), Path("runs/b")])
    ['a', 'b']
    """
    whole = [path.resolve().parts for path in paths]
    if len(set(whole)) < len(whole):
        twice = next(path for path, parts in zip(paths, whole, strict=True) if whole.count(parts) > 1)
        raise OptionError(f"the run {twice} is given twice", remedy="compare different runs")
    length = 1
    while len({parts[-length:] for parts in whole}) < len(whole):
        length += 1
    return ["/".join(parts[-length:]) for parts in whole]
