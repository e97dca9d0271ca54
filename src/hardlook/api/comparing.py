"""`hl.compare` and `hl.leaderboard`: which model is better, where, and whether the difference is significant."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardlook.api.inline import choose_table_format, draw_inline_table
from hardlook.api.runs import Run
from hardlook.cloud.run_folders import open_run
from hardlook.errors import OptionError
from hardlook.report.compare.comparison import RESAMPLES, Comparison, compare_runs, read_runs
from hardlook.report.compare.differences import Difference, describe_difference, find_score_meaning

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.runs.scoring import ScoredRun
    from hardlook.report.leaderboard.board import Leaderboard
    from hardlook.report.leaderboard.runs import CollectedRuns
    from hardlook.report.text_tables import IntervalStyle, TextFormat

RunLike = Run | str | Path


@dataclass(frozen=True)
class ComparedRuns:
    """The result of `hl.compare`: verdicts, differences and a ranking; a notebook shows them inline.

    `comparison` holds everything as the report has it, `page` the path of the page where one was written, `document`
    the content of `comparison.json`.
    """

    comparison: Comparison = field(repr=False)
    runs: Sequence[Sequence[ScoredRun]] = field(repr=False)
    page: Path | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return self.comparison.models

    @cached_property
    def sentences(self) -> list[str]:
        """One sentence per headline score and pair of models: better, worse, or not significantly different."""
        card = self.comparison.benchmark.card
        return [describe_difference(one, find_score_meaning(card, one.name)) for one in self.comparison.headline]

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """The differences of the headline scores over all units."""
        return _build_difference_frame(self.comparison.headline)

    @cached_property
    def differences(self) -> pl.DataFrame:
        """All differences: every pair of models, every score and every slice."""
        return _build_difference_frame(self.comparison.differences)

    @cached_property
    def ranking(self) -> pl.DataFrame:
        """By headline score the models with their ranks, best first; models that share a rank do not differ."""
        import polars as pl

        rows = [
            (name, place.rank, place.model, place.score, ", ".join(place.sets))
            for name, places in self.comparison.standings.items()
            for place in places
        ]
        schema = {"score": pl.String, "rank": pl.Int64, "model": pl.String, "value": pl.Float64, "tied sets": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def format_table(
        self,
        *,
        all_scores: bool = False,
        format: TextFormat | None = None,
        intervals: IntervalStyle = "none",
        out: str | Path | None = None,
    ) -> str:
        """Models by headline scores, or by all scores, as text for a paper; also written to `out` where given.

        Args:
            all_scores: Every score over all units, not the headline scores alone.
            format: `latex` (needs booktabs), `markdown` or `csv`; None takes that of the file's suffix, else markdown.
            intervals: Written as `brackets`, `plus-minus` or `none` (not in csv).
            out: The file.
        """
        from hardlook.harness.runs.folder import refuse_part_of_run, write_atomically
        from hardlook.report.compare.document import build_document
        from hardlook.report.compare.method_table import build_method_table, format_method_table

        document = build_document(self.comparison, [group[0] for group in self.runs])
        methods = build_method_table(document, every_score=all_scores)
        text = format_method_table(methods, choose_table_format(format, out), intervals)
        if out is not None:
            refuse_part_of_run(Path(out))
            write_atomically(Path(out), text)
        return text

    def __repr__(self) -> str:
        return "\n".join([f"{' and '.join(self.models)} on {self.comparison.benchmark.card.title}", *self.sentences])

    def _repr_html_(self) -> str:
        card = self.comparison.benchmark.card
        title = f"<p><b>{html.escape(' and '.join(self.models))}</b> on {html.escape(card.title)}</p>"
        said = "".join(f"<li>{html.escape(text)}</li>" for text in self.sentences)
        names = [score.name for score in card.scores if any(one.name == score.name for one in self.comparison.headline)]
        titles = {score.name: score.title for score in card.scores}
        rows = [[model, *(self._find_value(model, name) for name in names)] for model in self.models]
        table = draw_inline_table(("model", *(titles[name] for name in names)), rows)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.comparison.notes)
        return f"{title}<ul>{said}</ul>{table}{notes}"

    def _find_value(self, model: str, name: str) -> float:
        scores = self.comparison.scores[model]
        return next((score.value for score in scores if score.name == name and not score.slice), math.nan)


def compare(
    *runs: RunLike | Sequence[RunLike],
    out: str | Path | None = None,
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
    swaps: int | None = None,
    resamples: int = RESAMPLES,
    interval: Literal["jackknife", "percentile"] = "jackknife",
    seed: int = 0,
    reading: Mapping[str, str] | None = None,
    examples: int = 6,
    progress: Callable[[int, int], Any] | None = None,
) -> ComparedRuns:
    """Compare runs of one benchmark on the units that they share.

    Args:
        *runs: Two or more runs or their folders; a list of runs is one method trained with several seeds.
        out: Where the page and its numbers go: a folder, or a file that ends in .html; without it nothing is written.
        names: Names of the models.
        alpha: Chance of a false claim in a family of comparisons.
        swaps: Random swaps behind each p-value; None takes as many as the scores afford.
        resamples: Bootstrap resamples behind percentile intervals.
        interval: Of differences and scores: `jackknife` or `percentile`.
        seed: Seed of swaps and resamples.
        reading: Which readings, for all runs.
        examples: Units in each gallery at most.
        progress: Called with the number of swaps made and their total.
    """
    from hardlook.report.compare.document import choose_page, write_comparison

    if len(runs) < 2:
        raise OptionError("a comparison needs at least two runs, got one", remedy="give the folders of several runs")
    if not 0 < alpha < 1:
        raise OptionError(f"--alpha {alpha}: expected a number between 0 and 1", remedy="for example --alpha .05")
    if interval not in ("jackknife", "percentile"):
        raise OptionError(f"--interval {interval}: there is no such interval", remedy="choose jackknife or percentile")
    page = None if out is None else choose_page(Path(out))
    changes: dict[str, Any] = {"reading": dict(reading)} if reading else {}
    scored = [read_runs(_list_folders(one), changes) for one in runs]
    compared = compare_runs(
        scored,
        names=names,
        swaps=swaps,
        resamples=resamples,
        alpha=alpha,
        seed=seed,
        interval=interval,
        show_progress=progress,
    )
    if page is None:
        return ComparedRuns(compared, scored)
    return ComparedRuns(compared, scored, page, write_comparison(compared, scored, page, examples=examples))


def _list_folders(runs: RunLike | Sequence[RunLike]) -> list[Path]:
    if isinstance(runs, Run):
        return [runs.folder]
    if isinstance(runs, str | Path):
        return [open_run(runs)]
    return [folder for one in runs for folder in _list_folders(one)]


def _build_difference_frame(differences: Sequence[Difference]) -> pl.DataFrame:
    """Differences as a frame; slices get one column each."""
    import polars as pl

    properties = list(dict.fromkeys(name for one in differences for name in one.slice))
    rows = [
        (
            one.name,
            *(one.slice.get(name) for name in properties),
            *(one.first, one.second, one.verdict, one.value, *one.bounds),
            *(one.p_value, one.adjusted, one.n, one.units_needed, one.first_value, one.second_value),
        )
        for one in differences
    ]
    texts = ("first", "second", "verdict")
    numbers = ("difference", "low", "high", "p", "adjusted p", "n", "units needed", "first value", "second value")
    schema: dict[str, Any] = {"score": pl.String, **dict.fromkeys((f"slice {name}" for name in properties), pl.String)}
    schema |= dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))


@dataclass(frozen=True)
class Leaderboards:
    """The result of `hl.leaderboard`: one leaderboard per benchmark, and the runs that are in none.

    `pages` are the files that were written, if any, and `site` the first page of the site.
    """

    boards: Sequence[Leaderboard] = field(repr=False)
    found: CollectedRuns = field(repr=False)
    pages: tuple[Path, ...] = ()
    site: Path | None = None

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All scores of all runs in all slices, then all published ones."""
        from hardlook.report.leaderboard.document import build_frame

        return build_frame(list(self.boards))

    def __repr__(self) -> str:
        lines = [f"{board.card.name}: {len(board.entries)} runs" for board in self.boards]
        return "\n".join([*lines, *(f"left out: {one.folder}: {one.describe()}" for one in self.found.left_out)])

    def _repr_html_(self) -> str:
        parts = []
        for board in self.boards:
            parts.append(f"<p><b>{html.escape(board.card.title)}</b></p>")
            for ranking in board.rankings:
                columns = ("rank", "method", "value", "low", "high", "kind", "note")
                rows = [[getattr(row, name) for name in columns] for row in ranking.rows]
                parts.append(draw_inline_table(columns, rows, ranking.meaning.title))
        parts += [f"<p>Left out: {html.escape(one.folder)}: {html.escape(one.describe())}</p>" for one in
                  self.found.left_out]  # fmt: skip
        return "".join(parts)


def leaderboard(
    folder: str | Path,
    *,
    benchmark: str | None = None,
    sort: str | None = None,
    out: str | Path | None = None,
    site: str | Path | None = None,
) -> Leaderboards:
    """Rank all runs below a folder, with the published results beside them.

    Args:
        folder: The folder that contains the runs, at any depth.
        benchmark: Only runs of this benchmark.
        sort: The score that comes first.
        out: Where the pages and the table go; without it they are not written.
        site: A new or empty folder for a static site with all reports, or an earlier such site.
    """
    from hardlook.report.leaderboard.board import build_leaderboard
    from hardlook.report.leaderboard.report import write_pages
    from hardlook.report.leaderboard.runs import collect_runs
    from hardlook.report.leaderboard.site import write_site
    from hardlook.report.run_report import list_model_marks

    root = open_run(folder)
    target = None if out is None else Path(out)
    if target is not None and target.exists() and not target.is_dir():
        raise OptionError("this is a file, not a folder", file=target, remedy="choose a folder for --out")
    found = collect_runs(root, benchmark)
    if not found.runs:
        raise _no_runs_error(root, benchmark, found)
    if sort is not None and benchmark is None and len(found.runs) > 1:
        raise OptionError(
            f"--sort {sort}: there are runs of {', '.join(found.runs)}", remedy="choose one with --benchmark"
        )
    boards = [
        build_leaderboard(found.benchmarks[name], runs, found.list_skipped(name), sort=sort, marks=list_model_marks)
        for name, runs in found.runs.items()
    ]
    first = None if site is None else write_site(boards, root, Path(site))
    if target is None:
        return Leaderboards(boards, found, site=first)
    pages, table = write_pages(boards, target)
    return Leaderboards(boards, found, (*pages, table), first)


_MAX_NAMED = 5


def _no_runs_error(folder: Path, benchmark: str | None, found: CollectedRuns) -> OptionError:
    runs = f"run of {benchmark}" if benchmark else "run"
    if not found.left_out:
        remedy = "give the folder that holds the --out folders of `hardlook run`"
        return OptionError(f"there is no {runs} below this folder", file=folder, remedy=remedy)
    named = [f"{one.folder}: {one.why}" for one in found.left_out[:_MAX_NAMED]]
    if len(found.left_out) > _MAX_NAMED:
        named.append(f"and {len(found.left_out) - _MAX_NAMED} more")
    remedies = dict.fromkeys(one.remedy for one in found.left_out if one.remedy)
    return OptionError(
        f"no {runs} below this folder can be ranked ({'; '.join(named)})",
        file=folder,
        remedy="; ".join(list(remedies)[:_MAX_NAMED]) or None,
    )
