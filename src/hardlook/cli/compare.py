"""`hardlook compare RUN RUN ...`: which model is better, where, and whether the difference is significant.

`hardlook gate RUN BASELINE` fails where a run is worse than a baseline by more than is allowed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hardlook.api.comparing import compare as compare_runs
from hardlook.api.gating import gate as gate_runs
from hardlook.cli import arguments
from hardlook.cli.printing import print_json
from hardlook.harness.runs.folder import refuse_part_of_run, write_atomically
from hardlook.report.compare.comparison import RESAMPLES
from hardlook.report.compare.terminal import print_comparison
from hardlook.report.json_values import to_json_value


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders of one benchmark, two or more; those of one method trained with several seeds "
            "separated by commas."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for comparison.html and comparison.json, or the page as FILE.html.")
    ] = Path("comparison"),
    names: Annotated[
        str | None, typer.Option("--names", help="Names of the models, separated by commas.", show_default=False)
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Chance of a false claim in a family of comparisons.")] = 0.05,
    swaps: Annotated[
        int | None,
        typer.Option(
            "--swaps",
            min=1,
            help="Random swaps behind each p-value; without it 9,999, or 999 for scores that take long, such as AP.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=RESAMPLES, help="Bootstrap resamples behind percentile intervals.")
    ] = RESAMPLES,
    interval: Annotated[
        str, typer.Option("--interval", help="Intervals of differences and scores: jackknife or percentile.")
    ] = "jackknife",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of swaps and resamples.")] = 0,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="NAME=VALUE for all runs; repeatable.", show_default=False)
    ] = None,
    examples: Annotated[int, typer.Option("--examples", min=0, help="Units in each gallery at most.")] = 6,
    as_json: Annotated[bool, typer.Option("--json", help="Print comparison.json instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare runs on the units that they share: differences, tests, ranking, and who wins where.

    Each score gets a sentence: better, worse, or not significantly different, and how many units it would take.

    Examples:
      hardlook compare runs/first runs/second --out compared

      hardlook compare runs/*/ --alpha .01 --out ranking.html

      hardlook compare runs/net-1,runs/net-2,runs/net-3 runs/other-1,runs/other-2,runs/other-3
    """
    with _progress(quiet) as show_progress:
        compared = compare_runs(
            *map(split_seeds, runs),
            out=out,
            names=[word.strip() for word in names.split(",")] if names else None,
            alpha=alpha,
            swaps=swaps,
            resamples=resamples,
            interval=interval,  # type: ignore[arg-type]
            seed=seed,
            reading=arguments.parse_pairs(reading, "--reading"),
            examples=examples,
            progress=show_progress,
        )
    if as_json:
        print_json(compared.document)
        return

    print_comparison(compared.comparison, Console())
    typer.echo(f"\npage: {compared.page}")


def split_seeds(runs: Path) -> list[Path]:
    """The run folders that are separated by commas; one folder whose name has a comma is itself.

    >>> [str(path) for path in split_seeds(Path("runs/net-1,runs/net-2"))]
    ['runs/net-1', 'runs/net-2']
    """
    if runs.exists():
        return [runs]
    return [Path(part.strip()) for part in str(runs).split(",") if part.strip()]


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], Any] | None]:
    """A progress bar of swaps on standard error where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("swaps", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


WORSE = 5


def gate(
    run: Annotated[Path, typer.Argument(help="The folder of the new run.")],
    baseline: Annotated[Path, typer.Argument(help="The folder of the run that it is compared with.")],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A score; repeatable. Without it the headline scores.", show_default=False),
    ] = None,
    max_drop: Annotated[
        float, typer.Option("--max-drop", min=0, help="By how much a score may get worse, in its own scale.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="The chance that a run at the limit fails.")] = 0.05,
    undecided: Annotated[
        str, typer.Option("--undecided", metavar="pass|fail", help="What it means if the units cannot tell.")
    ] = "pass",
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML to this file.")] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github", help="Print annotations of GitHub Actions.", show_default="where these run it"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the comparison's page.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Compare a run with a baseline on the units that they share, and exit with 5 where it is worse.

    A score fails where the interval of the paired difference, of level 1 - 2 alpha, lies beyond the allowed drop. Where
    the interval reaches both sides, the units cannot tell, and --undecided counts.

    Examples:
      hardlook gate runs/new runs/main --metric miou --max-drop .01

      hardlook gate runs/new runs/main --undecided fail --junit gate.xml --out comparison
    """
    if junit is not None:
        refuse_part_of_run(junit, "--junit")
    result = gate_runs(
        run,
        baseline,
        metrics=metric or (),
        max_drop=max_drop,
        alpha=alpha,
        undecided=undecided,  # type: ignore[arg-type]
        out=out,
    )
    if junit is not None:
        write_atomically(junit, result.to_junit())
    annotations = github if github is not None else os.environ.get("GITHUB_ACTIONS") == "true"
    if as_json:
        rows = [{**vars(score), "sentence": score.describe()} for score in result.scores]
        print_json({"schema": "hardlook.gate/1", "passed": result.passed, "scores": to_json_value(rows)})
    else:
        plain = [f"{one.outcome}: {one.describe()}" for one in result.scores]
        typer.echo("\n".join(result.to_github() if annotations else plain))
    if not result.passed:
        raise typer.Exit(WORSE)
