"""A run as a Python object: its scores, slices, records and pictures, shown inline in notebooks.

>>> import tempfile
>>> from hardlook.api.running import run
>>> mine = run("closed-miou", model="planted-segmenter", model_args={"stranger": 0.2}, scenes=4, resamples=50,
...            out=tempfile.mkdtemp() + "/run", progress=False)
>>> mine.scores["miou"].low < mine.scores["miou"].value < mine.scores["miou"].high
True
>>> mine.slices("class").columns[:3], len(mine.records)
(['score', 'class', 'value'], 4)
"""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hardlook.api.inline import Figure, Page, choose_table_format, draw_inline_table, make_frame
from hardlook.cloud.addresses import format_path
from hardlook.cloud.run_folders import open_run
from hardlook.errors import HardlookError, OptionError, RunError, RunWarning
from hardlook.harness.registry import find_benchmark, list_benchmarks
from hardlook.harness.runs.folder import RunFolder, refuse_part_of_run, write_atomically
from hardlook.harness.runs.scoring import ScoredRun, get_model_name, name_stored_method, score_run
from hardlook.harness.runs.sessions import describe_mixed_code, list_sessions
from hardlook.harness.scorecard import Score, Scorecard, UnitCounts, read_scores

if TYPE_CHECKING:
    import polars as pl

    from hardlook.api.reporting import Reports
    from hardlook.harness.runs.launch import RunProgress
    from hardlook.harness.sections import Table
    from hardlook.report.text_tables import IntervalStyle, TextFormat

_MAX_SHOWN_SLICES = 12


class Scores(Mapping[str, Score]):
    """The scores over all units by name: `scores["miou"].value`, `.low`, `.high`, `.n`, `.reading`, `.comparable`.

    Of a score with several readings the first one counts, which the report shows first; `Run.scorecard` has them all.
    """

    def __init__(self, scorecard: Scorecard) -> None:
        self._scores: dict[str, Score] = {}
        for score in scorecard.headline:
            self._scores.setdefault(score.name, score)

    def __getitem__(self, name: str) -> Score:
        if name not in self._scores:
            raise KeyError(f"no score {name!r}; there are: {', '.join(self._scores)}")
        return self._scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {_format_score(score)}" for name, score in self._scores.items())

    def _repr_html_(self) -> str:
        return _draw_scores(list(self._scores.values()))


class Run:
    """A run in its folder; everything but its manifest is read when it is asked for.

    `progress` has the counts of the call that made it, where there was one.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        scored: ScoredRun | None = None,
        progress: RunProgress | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.progress = progress
        self._changes = dict(changes or {})
        self._files = RunFolder(self.folder)
        self.manifest: dict[str, Any] = scored.manifest if scored else self._files.read_manifest()
        self._known = scored

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.manifest["benchmark"]["name"])

    @property
    def model(self) -> str:
        """The model's name."""
        return get_model_name(self.manifest)

    @cached_property
    def method(self) -> str:
        """The model and those that it works with, such as an encoder: `ridge with clip`."""
        try:
            # Of the others, a run.json could name any module.
            known = self.benchmark in list_benchmarks()
            return name_stored_method(self.manifest, find_benchmark(self.benchmark)) if known else self.model
        except HardlookError:
            return self.model

    @property
    def options(self) -> dict[str, Any]:
        """The benchmark's options of this run, by name."""
        return dict(self.manifest["options"])

    @cached_property
    def scored(self) -> ScoredRun:
        """The records and everything that follows from them, as the harness has it."""
        if self.progress is not None and self.progress.open and self._known is None:
            raise RunError(
                f"{self.progress.open} units are left to other shards",
                file=self.folder,
                remedy="run the other shards, then load this folder again",
            )
        return self._known or score_run(self._files, self._changes)

    @cached_property
    def scorecard(self) -> Scorecard:
        """All scores and slices, readings, and what was left out."""
        if self._known is None and not self._changes and self._files.scores_path.is_file():
            return read_scores(self._files.scores_path)
        return self.scored.scorecard

    @cached_property
    def scores(self) -> Scores:
        """The scores over all units, by name."""
        return Scores(self.scorecard)

    def score(self, name: str, **where: str) -> Score:
        """One score, of a slice where given: `run.score("iou", **{"class": "cat"})`."""
        return self.scorecard.get(name, **where)

    def slices(self, *by: str) -> pl.DataFrame:
        """The scores of slices by these properties, such as "class", as a frame; without a name all slices.

        Its columns are the score, the properties, value, low, high, n, reading and comparable.
        """
        found = [score for score in self.scorecard.scores if score.slice]
        kinds = sorted({tuple(score.slice) for score in found})
        if by:
            found = [score for score in found if set(score.slice) == set(by)]
            if not found:
                known = "; ".join(", ".join(kind) for kind in kinds) or "none"
                raise OptionError(f"this run has no slices by {', '.join(by)}", remedy=f"it has slices by: {known}")
        names = by or tuple(dict.fromkeys(name for score in found for name in score.slice))
        return build_score_frame(found, names)

    @property
    def records(self) -> pl.DataFrame:
        """One row per unit, without pictures."""
        return self.scored.records

    @property
    def failures(self) -> pl.DataFrame:
        """The units that have no record, with their last error."""
        return self.scored.failures

    def rescore(self, *, reading: Mapping[str, str] | None = None, **options: Any) -> Run:
        """The same records under another reading or other options that change only scores; nothing is written."""
        changes: dict[str, Any] = {**self._changes, **options}
        if reading:
            changes["reading"] = {**self._changes.get("reading", {}), **reading}
        return Run(self.folder, scored=score_run(self._files, changes), changes=changes)

    def save_scores(self, out: str | Path | None = None) -> Path:
        """Write the scores to `out`; without it, into the run folder with a new list of failures and a new report.

        The folder keeps the scores of its own options: those of another reading need `out`.
        """
        if out is not None:
            refuse_part_of_run(Path(out))
            write_atomically(Path(out), self.scorecard.to_json())
            return Path(out)
        if self._changes:
            raise OptionError(
                "these scores are of another reading or other options than the run's",
                file=self.folder,
                remedy="name a file for them: run.save_scores(FILE)",
            )
        from hardlook.harness.runs.record_store import write_failures
        from hardlook.report.run_report import write_report

        scored = self.scored
        write_atomically(self._files.scores_path, scored.scorecard.to_json())
        write_failures(self._files, self.manifest["answers"]["fingerprint"])
        write_report(scored)
        return self._files.scores_path

    def report(self, *, examples: int = 6, out: str | Path | None = None) -> Page:
        """Write the report to `out`, or into the run folder, and show it inline."""
        from hardlook.report.run_report import write_report

        path = write_report(self.scored, examples=examples, out=None if out is None else Path(out))
        return Page(path, path.read_text(encoding="utf-8"))

    @cached_property
    def figures(self) -> dict[str, str]:
        """The names of all figures with their titles."""
        from hardlook.report.figures import list_figures

        return {name: chart.title for name, chart in list_figures(self.scored).items()}

    def figure(self, name: str) -> Figure:
        """One chart of the report; `figures` has the names, and a part of one that fits no other is enough."""
        from hardlook.report.figures import find_named, list_figures

        charts = list_figures(self.scored)
        matching = [known for known in charts if name in known]
        name = matching[0] if name not in charts and len(matching) == 1 else name
        return Figure(name, find_named(charts, name, "figure", self.folder))

    @cached_property
    def tables(self) -> dict[str, str]:
        """The names of all tables with their titles."""
        from hardlook.report.figures import list_tables

        return {name: table.title for name, table in list_tables(self.scored).items()}

    def find_table(self, name: str) -> Table:
        """One table of the report, or the numbers behind a chart, with title, columns and rows."""
        from hardlook.report.figures import find_named, list_tables

        return find_named(list_tables(self.scored), name, "table", self.folder)

    def table(self, name: str) -> pl.DataFrame:
        """One table of the report, or the numbers behind a chart, as a frame."""
        found: pl.DataFrame = make_frame(self.find_table(name))
        return found

    def format_table(
        self,
        name: str,
        *,
        format: TextFormat | None = None,
        intervals: IntervalStyle = "brackets",
        out: str | Path | None = None,
    ) -> str:
        """The same table as text for a paper, also written to `out` where given.

        Args:
            name: Its name, of `tables`.
            format: `latex` (needs booktabs), `markdown` or `csv`; None takes that of the file's suffix, else markdown.
            intervals: Written as `brackets`, `plus-minus` or `none` (not in csv).
            out: The file.
        """
        from hardlook.report.text_tables import format_table

        text = format_table(self.find_table(name), choose_table_format(format, out), intervals)
        if out is not None:
            refuse_part_of_run(Path(out))
            write_atomically(Path(out), text)
        return text

    def export(self, out: str | Path | TextIO, *, records: bool = True, records_to: str | Path | None = None) -> int:
        """Write the run as one JSON document to a file or stream, and return the number of its records.

        Args:
            out: The file or stream.
            records: Whether records go with it.
            records_to: Records in this file instead, as NDJSON.
        """
        from hardlook.api.exporting import export_run

        return export_run(self.scored, out, records=records, records_to=records_to)

    def unit(self, name: str) -> UnitView:
        """One unit: its record and its pictures."""
        return UnitView(self, name)

    def __repr__(self) -> str:
        if self.progress is not None and self.progress.open and self._known is None:
            return f"Run of {self.method} on {self.benchmark}: {self.progress.open} units are left to other shards"
        return f"Run of {self.method} on {self.benchmark} in {format_path(self.folder)}\n{self.scores!r}"

    def _repr_html_(self) -> str:
        """The headline scores with their intervals, what failed, and the first chart."""
        from hardlook.report.figures import list_figures

        if self.progress is not None and self.progress.open and self._known is None:
            return f"<p>{html.escape(repr(self))}</p>"
        card = self.scored.benchmark.card
        counts = self.scorecard.units
        about = f"{counts.scored} of {counts.planned} units scored" + (
            f", {counts.failed} failed" if counts.failed else ""
        )
        title = f"<p><b>{html.escape(self.method)}</b> on {html.escape(card.title)}: {about}</p>"
        chart = next((Figure(name, one) for name, one in list_figures(self.scored).items()), None)
        titles = {score.name: score.title for score in card.scores}
        drawn = _draw_scores(list(self.scores.values()), titles)
        return title + drawn + (chart._repr_html_() if chart is not None else "")


class UnitView:
    """One unit of a run: `record` with all its columns, and its `pictures` as arrays with labels."""

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.name = run, name
        self.record: dict[str, Any] = dict(self._find_record())

    def _find_record(self) -> Mapping[str, Any]:
        found = self.run.scored.whole_records([self.name])
        if self.name not in found:
            from hardlook.harness.runs.plan import find_nearest_ids

            near = find_nearest_ids(self.name, self.run.records["unit"].to_list())
            what = f"the run has no record of a unit {self.name!r}"
            raise OptionError(what, file=self.run.folder, remedy=f"the nearest are: {', '.join(near)}")
        return found[self.name]

    @cached_property
    def pictures(self) -> Sequence[Any]:
        """Pictures with their labels; an error where the data cannot be read any more."""
        from hardlook.report.run_report import load_unit_pictures

        found = load_unit_pictures(self.run.scored, [self.name])[self.name]
        if isinstance(found, str):
            raise RunError(f"the pictures cannot be drawn: {found}", unit=self.name, file=self.run.folder)
        return found

    def __repr__(self) -> str:
        return f"unit {self.name} of {self.run.folder}: {self._list_fields()}"

    def _list_fields(self) -> dict[str, Any]:
        light = self.run.scored.benchmark.schema.light
        return {name: value for name, value in self.record.items() if name in light}

    def _repr_html_(self) -> str:
        from hardlook.report.galleries import format_record_fields
        from hardlook.report.pictures import compute_thumbnail_size, encode_thumbnail

        shots = ""
        for picture in self.pictures:
            width, height = compute_thumbnail_size(picture)
            image = f'<img src="{encode_thumbnail(picture)}" width="{width}" height="{height}"/>'
            shots += f'<div style="display:inline-block;margin:4px">{image}<br/>{html.escape(picture.label)}</div>'
        fields = draw_inline_table(("column", "value"), format_record_fields(self._list_fields()))
        return f"<p><b>{html.escape(self.name)}</b></p><div>{shots}</div>{fields}"


def load(folder: str | Path, *, reading: Mapping[str, str] | None = None, **options: Any) -> Run:
    """The run in a folder or at an address; a reading or options that change only scores apply without being written.

    Warns of units without a record, and of records that were made by different versions of the code.
    """
    run = Run(open_run(folder))
    for text in describe_problems(run.folder, run.manifest, run.scorecard.units):
        warnings.warn(f"{format_path(run.folder)}: {text}", RunWarning, stacklevel=2)
    return run.rescore(reading=reading, **options) if reading or options else run


def describe_problems(folder: Path, manifest: dict[str, Any], counts: UnitCounts) -> list[str]:
    """What a reader of a run's scores must know: records of mixed code, and units without a record."""
    mixed = describe_mixed_code(list_sessions(RunFolder(folder), manifest), manifest["answers"]["fingerprint"])
    return [text for text in (mixed, describe_unanswered(counts)) if text]


def describe_unanswered(counts: UnitCounts) -> str:
    """How many units failed or are not evaluated yet, and what to do; empty where every unit is scored.

    >>> describe_unanswered(UnitCounts(planned=24, scored=15, failed=1))
    '15 of 24 units are scored: 1 failed, 8 not answered yet; the same `hardlook run` again resumes'
    >>> describe_unanswered(UnitCounts(24, 24, 0))
    ''
    """
    waiting = counts.planned - counts.scored - counts.failed
    parts = [
        f"{count} {what}" for count, what in ((counts.failed, "failed"), (waiting, "not answered yet")) if count > 0
    ]
    if not parts:
        return ""
    from hardlook.report.formatting import format_count

    scored = f"{counts.scored} of {format_count(counts.planned, 'unit')} are scored"
    return f"{scored}: {', '.join(parts)}; the same `hardlook run` again resumes"


def build_score_frame(scores: Sequence[Score], properties: Sequence[str]) -> pl.DataFrame:
    """Scores as a frame, one row each; `properties` are the names of slice values that get a column."""
    import polars as pl

    rows = [
        (
            score.name,
            *(score.slice.get(name) for name in properties),
            *(score.value, score.low, score.high, score.n, score.reading, score.comparable),
        )
        for score in scores
    ]
    numbers = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
    names = ("score", *properties, "value", "low", "high", "n", "reading", "comparable")
    schema: dict[str, Any] = {}
    for place, name in enumerate(names):
        # A property may have the name of another column, such as `n`.
        is_property = 0 < place <= len(properties)
        own = f"slice {name}" if is_property and name in {"score", *numbers, "reading", "comparable"} else name
        schema[own] = pl.String if is_property else numbers.get(name, pl.String)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.col("value", "low", "high").fill_nan(None))


def _format_score(score: Score) -> str:
    from hardlook.report.formatting import format_number
    from hardlook.report.score_display import choose_score_decimals, format_score_interval

    value = format_number(score.value, choose_score_decimals(score)) if score.value == score.value else "undefined"
    bounds = format_score_interval(score)
    return f"{value}{f' ({bounds})' if bounds else ''}, n = {score.n}"


def _draw_scores(scores: Sequence[Score], titles: Mapping[str, str] | None = None) -> str:
    rows = [
        ((titles or {}).get(score.name, score.name), score.value, score.low, score.high, score.n, score.reading)
        for score in scores
    ]
    return draw_inline_table(("score", "value", "low", "high", "n", "reading"), rows)


class RunList(Sequence[Run]):
    """Runs, each read when it is used; `frame` has one row per run and headline score.

    Runs that have `names`, one each, are found by these too.
    """

    def __init__(self, runs: Sequence[Run], names: Sequence[str] = ()) -> None:
        self._runs, self.names = tuple(runs), tuple(names)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return RunList(self._runs[place], self.names[place])
        if isinstance(place, str) and self.names:
            if place not in self.names:
                raise KeyError(f"no run of {place!r}; there are: {', '.join(self.names)}")
            place = self.names.index(place)
        return self._runs[place]

    def __len__(self) -> int:
        return len(self._runs)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Benchmark, model, folder and headline scores of every run that is scored."""
        import polars as pl

        rows = [
            (run.benchmark, run.model, format_path(run.folder), *row)
            for run in self._runs
            if run.progress is None and (run.folder / "scores.json").is_file()
            for row in build_score_frame(list(run.scores.values()), ()).iter_rows()
        ]
        names = ("benchmark", "model", "folder", "score", "value", "low", "high", "n", "reading", "comparable")
        kinds = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
        return pl.DataFrame(rows, schema={name: kinds.get(name, pl.String) for name in names}, orient="row")

    def report(self, *, examples: int = 6, out: str | Path | None = None) -> Reports:
        """Write the page of each run, and of several an index: to `out`, or into the folder that holds them all."""
        from hardlook.api.reporting import write_reports

        by_folder = {run.folder: run for run in self._runs}
        place = None if out is None else Path(out)
        return write_reports(list(by_folder), lambda folder: by_folder[folder].scored, examples=examples, out=place)

    def __repr__(self) -> str:
        lines = [f"{run.benchmark}: {run.method} in {format_path(run.folder)}" for run in self._runs]
        return "\n".join(lines) or "no runs"

    def _repr_html_(self) -> str:
        rows = [
            (run.benchmark, run.method, format_path(run.folder), str(run.manifest["created"])[:10])
            for run in self._runs
        ]
        return draw_inline_table(("benchmark", "model", "folder", "date"), rows)


def runs(folder: str | Path, *, benchmark: str | None = None) -> RunList:
    """All runs below a folder, of one benchmark where given; a run that cannot be read is a warning."""
    from hardlook.report.leaderboard.runs import find_run_folders

    root = open_run(folder)
    if not root.is_dir():
        raise OptionError(
            "there is no such folder", file=format_path(root), remedy="give the folder that holds the run folders"
        )
    found = []
    for path in find_run_folders(root):
        try:
            run = Run(path)
        except HardlookError as error:
            warnings.warn(f"{path}: {error.what}", RunWarning, stacklevel=2)
            continue
        if benchmark is None or run.benchmark == benchmark:
            found.append(run)
    return RunList(found)
