"""Standard output of commands: scorecards as tables, or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    from hardlook.harness.benchmark import Benchmark
    from hardlook.harness.scorecard import Scorecard


def print_scores(scorecard: Scorecard, benchmark: Benchmark, *, as_json: bool, full: bool = False) -> None:
    """Print the scorecard as tables of about 40 lines, all when `full`, or as scores.json; no colour in a pipe."""
    if as_json:
        sys.stdout.write(scorecard.to_json())
        return
    from rich.console import Console

    from hardlook.report.terminal import print_scorecard

    print_scorecard(scorecard, Console(), benchmark.card.scores, full=full)


def print_json(document: Any) -> None:
    """Print a JSON document, the only standard output of a command with `--json`; undefined numbers are null."""
    sys.stdout.write(dump_json(document) + "\n")
