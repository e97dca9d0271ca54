"""The figures and tables of a run by their names, for `hardlook figure` and `hardlook table`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from hardlook.contract.sections import Table
from hardlook.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from hardlook.contract.sections import Chart
    from hardlook.runs.scoring import ScoredRun

Part = TypeVar("Part")


def figures_of(scored: ScoredRun) -> dict[str, Chart]:
    """Every chart of the run's report, by name."""
    from hardlook.report.names import named_blocks

    sections = scored.benchmark.sections(scored.records, scored.scorecard)
    return {name: block for name, block in named_blocks(sections).items() if not isinstance(block, Table)}


def tables_of(scored: ScoredRun) -> dict[str, Table]:
    """The tables that every run has, those of its report, and the numbers behind its charts."""
    from hardlook.report.charts import tabulate
    from hardlook.report.names import named_blocks
    from hardlook.report.scorecard_tables import all_scores_table, left_out_table, readings_table, scores_table

    card, scorecard = scored.benchmark.card, scored.scorecard
    titles = {score.name: score.title for score in card.scores}
    tables = {
        "scores": scores_table(scorecard, [score.name for score in card.scores], titles),
        "all-scores": all_scores_table(scorecard),
        "left-out": left_out_table(scorecard),
        "readings": readings_table(scorecard),
    }
    blocks = named_blocks(scored.benchmark.sections(scored.records, scorecard))
    return tables | {name: block if isinstance(block, Table) else tabulate(block) for name, block in blocks.items()}


def named(parts: Mapping[str, Part], name: str, kind: str, run: Path) -> Part:
    """The part of that name; an error with the nearest names where there is none.

    >>> from pathlib import Path
    >>> named({"iou-of-each-class": 1}, "iou-by-class", "figure", Path("runs/a"))
    Traceback (most recent call last):
    ...
    hardlook.errors.OptionError: this run has no figure 'iou-by-class'
      file: runs/a
      remedy: did you mean iou-of-each-class? `hardlook figure runs/a` lists them
    """
    if name in parts:
        return parts[name]
    near = get_close_matches(name, parts, n=3, cutoff=0.5) or [known for known in parts if name in known][:3]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    raise OptionError(f"this run has no {kind} {name!r}", file=run, remedy=f"{meant}`hardlook {kind} {run}` lists them")
