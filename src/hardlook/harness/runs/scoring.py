"""Compute scores from records, without the model: at the end of a run and any time later."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.cloud.data_copies import fetch_options
from hardlook.errors import HardlookError, OptionError, RunError
from hardlook.harness.added_tallies import TallyAdder
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.checked_json import format_checked_json
from hardlook.harness.options import BenchmarkOptions, fields_that_change, parse_options
from hardlook.harness.records import Record
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder, suggest_repair, write_atomically
from hardlook.harness.runs.ordered_records import OrderedRecords, copy_rows
from hardlook.harness.runs.record_store import (
    find_contradicting_units,
    has_checksum,
    keep_first_records,
    list_parts,
    read_all_records,
    read_failures,
    read_records,
)
from hardlook.harness.runs.relative_paths import DIRECTORY, explain_missing_path, locate_options
from hardlook.harness.scorecard import LeftOut, Score, Scorecard, UnitCounts, merge_readings
from hardlook.harness.sections import Section
from hardlook.harness.tally import score_tally
from hardlook.reading import reading

if TYPE_CHECKING:
    import polars as pl


EXAMPLES = 5

MOST_IN_MEMORY = 1_000_000
"""A run of more units is read in chunks, where its benchmark is additive."""

MOST_CHECKED = 100_000
"""Up to so many records, a benchmark that says it is additive is checked."""

SAMPLED = 100_000
"""So many of its records, evenly spaced, are shown in its report."""

WITH = " with "
"""Between the name of a model and that of one that it works with."""


@dataclass(frozen=True)
class ScoredRun:
    """A run read from its folder: its manifest, records, failures and scorecard.

    `source` has the records without pictures, one row per unit in the order of the units: a table, or what reads them
    in chunks where they are too many for one.
    """

    folder: RunFolder
    manifest: dict[str, Any]
    benchmark: Benchmark
    options: BenchmarkOptions
    source: pl.DataFrame | OrderedRecords
    failures: pl.DataFrame
    scorecard: Scorecard
    known_units: Sequence[Unit] | None = field(default=None, repr=False, compare=False)
    """The units, where they have been listed already."""

    @property
    def method(self) -> str:
        """The model and those that it works with, such as an encoder, as tables and charts name them."""
        return name_method(self.manifest, self.options)

    @cached_property
    def records(self) -> pl.DataFrame:
        """All records as one table, whatever memory that takes."""
        import polars as pl

        return pl.concat(self.iterate_records()) if isinstance(self.source, OrderedRecords) else self.source

    @property
    def is_chunked(self) -> bool:
        """Whether there are too many records for one table: `iterate_records` reads them in bounded memory."""
        return isinstance(self.source, OrderedRecords)

    def iterate_records(self) -> Iterator[pl.DataFrame]:
        """The records in chunks, in the order of the units; all at once where they are few."""
        if isinstance(self.source, OrderedRecords):
            yield from self.source.iterate(self.benchmark.schema.light)
        else:
            yield self.source

    @cached_property
    def shown_records(self) -> pl.DataFrame:
        """The records that a report shows: all, or every k-th where there are too many for one table."""
        import polars as pl

        if not self.is_chunked:
            return self.records
        every = [rows for _, rows in pick_every(self.iterate_records(), self.sampling_step)]
        return pl.concat(every)

    @property
    def sampling_step(self) -> int:
        """Of how many units one is in the report."""
        return math.ceil(self.scorecard.units.scored / SAMPLED) if self.is_chunked else 1

    def find_records(self, units: Collection[str], columns: Sequence[str] = ()) -> dict[str, Record]:
        """The records of some units with these columns, by default all but pictures."""
        chosen = columns or self.benchmark.schema.light
        if isinstance(self.source, OrderedRecords):
            rows = self.source.find(chosen, units)
        elif not columns:
            rows = self.source.filter(self.source["unit"].is_in(list(units)))
        else:
            answers = self.manifest["answers"]["fingerprint"]
            rows = read_records(self.folder, self.benchmark.schema, answers, chosen, list(units))
        return {row["unit"]: row for row in rows.iter_rows(named=True)}

    def build_sections(self) -> Sequence[Section]:
        """The sections of the run's report, where the model is named with those that it works with.

        Those that are made from every k-th record say so.
        """
        sections = self.benchmark.report(self.shown_records, replace(self.scorecard, model=self.method))
        if self.sampling_step == 1:
            return sections
        note = f"What is made from single units here is made from one unit in {self.sampling_step:,}."
        return [replace(section, text=f"{section.text} {note}".strip()) for section in sections]

    def list_units(self) -> Sequence[Unit]:
        """The units of the run, listed again where they are not known."""
        if self.known_units is not None:
            return self.known_units
        return list_stored_units(self.benchmark, self.manifest, self.options)

    def whole_records(self, units: Collection[str]) -> dict[str, Record]:
        """The records of some units with all columns, pictures included."""
        return self.find_records(units, ["unit", *(column.name for column in self.benchmark.schema.columns)])


def pick_every(chunks: Iterable[pl.DataFrame], step: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Each chunk, and of its rows those whose number, counted over all chunks from 0, is a multiple of `step`."""
    seen = 0
    for chunk in chunks:
        yield chunk, copy_rows(chunk.gather_every(step, -seen % step))
        seen += len(chunk)


def list_stored_units(
    benchmark: Benchmark, manifest: Mapping[str, Any], options: BenchmarkOptions | None = None
) -> Sequence[Unit]:
    """The units of a stored run, listed again; of a joined run those of its parts, each with its own options."""
    if joined := manifest.get("joined"):
        parts = [fetch_options(parse_options(benchmark.options, row["options"])) for row in joined]
        return [unit for part in parts for unit in benchmark.list_units(part)]
    stored = options or parse_options(benchmark.options, locate_options(manifest, benchmark.options))
    return benchmark.list_units(fetch_options(stored))


def score_run(folder: RunFolder, changes: dict[str, Any] | None = None) -> ScoredRun:
    """Compute the scores of a run; `changes` are options that change nothing but scores, such as readings."""
    manifest = folder.read_manifest()
    with reading(folder.manifest_path, "the run's benchmark cannot be loaded", remedy=suggest_repair(folder.path)):
        benchmark = find_benchmark(manifest["benchmark"]["name"])
    if benchmark.card.version != manifest["benchmark"]["version"]:
        raise RunError(
            f"the run was made by version {manifest['benchmark']['version']} of {benchmark.card.name}, "
            f"this is version {benchmark.card.version}",
            file=folder.path,
            remedy="score it with the hardlook version in run.json, or run it again",
        )
    with reading(folder.manifest_path, "the run's options cannot be used", remedy=suggest_repair(folder.path)):
        check_readings(benchmark, parse_options(benchmark.options, manifest["options"]))
    options = _change_options(benchmark, locate_options(manifest, benchmark.options), changes or {})
    check_readings(benchmark, options)
    answers = manifest["answers"]["fingerprint"]
    source: pl.DataFrame | OrderedRecords
    contradicting: list[str] = []
    if benchmark.additive and manifest["units"] > MOST_IN_MEMORY:
        source = OrderedRecords(folder, benchmark.schema, answers)
        others, is_empty = source.others, not source.stored
    else:
        every, others = read_all_records(folder, benchmark.schema, answers, benchmark.schema.light)
        source = keep_first_records(every)
        contradicting = find_contradicting_units(every) if len(source) < len(every) else []
        is_empty = source.is_empty()
        del every
    failures = read_failures(folder, answers)
    if others:
        raise RunError(
            f"{sum(others.values())} records here were made with another version of the benchmark, another model or "
            "other data than run.json says",
            file=next(iter(others)),
            remedy=suggest_repair(folder.path),
        )
    if is_empty and len(failures):
        raise RunError(
            f"every unit failed; the first: {failures['error'][0]}",
            file=folder.failures_path,
            unit=failures["unit"][0],
            remedy="fix the cause and repeat the `hardlook run` of this folder; until then leave the folder out",
        )
    if is_empty:
        raise RunError("the run has no records yet", file=folder.path, remedy="finish the run first")
    with _explained_errors(options, folder):
        if isinstance(source, OrderedRecords):
            chunks = source.iterate(benchmark.schema.light, contradicting)
            scorecard, answered = _score_chunks(benchmark, chunks, options)
        else:
            scorecard, answered = benchmark.score(source, options), len(source)
            if benchmark.additive and 1 < answered <= MOST_CHECKED:
                _check_additive(benchmark, source, options, scorecard)
    unscored = manifest["units"] - answered
    scorecard = replace(
        scorecard,
        model=get_model_name(manifest),
        scores=tuple(_mark_incomplete(score, unscored) for score in scorecard.scores),
        readings=merge_readings(benchmark.readings(options), scorecard.readings),
        left_out=(
            *(LeftOut(**{**row, "examples": tuple(row["examples"])}) for row in manifest.get("left_out", [])),
            *scorecard.left_out,
            *_list_unscored(unscored, failures, contradicting),
        ),
        units=UnitCounts(manifest["units"], answered, len(failures)),
    )
    return ScoredRun(folder, manifest, benchmark, options, source, failures, scorecard)


def _score_chunks(
    benchmark: Benchmark, chunks: Iterable[pl.DataFrame], options: BenchmarkOptions
) -> tuple[Scorecard, int]:
    """The scores of an additive benchmark from the tallies of each chunk, and the number of records."""
    assert benchmark.tallies is not None
    adder, answered = TallyAdder(), 0
    for chunk in chunks:
        adder.add(benchmark.tallies(chunk, options))
        answered += len(chunk)
    draws: Any = options
    scores = [score for tally in adder.tallies() for score in score_tally(tally, draws)]
    return Scorecard(benchmark.card.name, benchmark.card.version, "", tuple(scores)), answered


def _check_additive(
    benchmark: Benchmark, records: pl.DataFrame, options: BenchmarkOptions, scorecard: Scorecard
) -> None:
    """Raise an error where scores from the tallies of two halves differ: a run of millions of units would show it."""
    half = len(records) // 2
    added, _ = _score_chunks(benchmark, (records[:half], records[half:]), options)
    for one, other in zip_longest(scorecard.scores, added.scores):
        # By their texts, in which NaN equals NaN.
        if repr(one) != repr(other):
            name = (one or other).name
            raise HardlookError(
                f"the benchmark {benchmark.card.name!r} is said to be additive, but its score {name!r} is not that of "
                "the tallies of two halves of the records",
                remedy="leave `additive` out of its definition, or compute its scores from its tallies alone",
            )


@contextlib.contextmanager
def _explained_errors(options: BenchmarkOptions, folder: RunFolder) -> Iterator[None]:
    """Errors of a benchmark's scoring with what may have caused them."""
    try:
        yield
    except HardlookError as error:
        raise explain_missing_path(error, options) from error
    except Exception as error:
        # Damage that a checksum would have shown; with checksums this is a bug, and its traceback is needed.
        files = [folder.manifest_path, *list_parts(folder.records_path)]
        if not (unchecked := [file for file in files if not has_checksum(file)]):
            raise
        raise RunError(
            f"no scores can be computed from these records ({type(error).__name__}: {error})",
            file=unchecked[0],
            remedy="the file has no checksum and may be damaged: restore it from a copy, or run it again with --new",
        ) from error


def check_readings(benchmark: Benchmark, options: BenchmarkOptions) -> None:
    """Raise an error for a reading that the benchmark does not have, before anything is evaluated."""
    readings = benchmark.readings(options)
    # A reading that is an option of its own was fixed when the units were evaluated.
    fixed = {name.replace("_", "-") for name in type(options).model_fields}
    known = {reading.name for reading in readings if reading.choices and reading.name not in fixed}
    unknown = sorted(set(options.reading) - known)
    if unknown and unknown[0] in {reading.name for reading in readings}:
        raise OptionError(
            f"--reading {unknown[0]}: it changes more than the scores, or has an option of its own",
            remedy=f"`hardlook run {benchmark.card.name}` sets it by --{unknown[0]}",
        )
    if unknown:
        raise OptionError(
            f"--reading {unknown[0]}: {benchmark.card.name} has no such reading",
            remedy=f"it has: {', '.join(sorted(known)) or 'none'}",
        )


def save_score_options(folder: RunFolder, options: BenchmarkOptions) -> None:
    """Write the score options of the latest command to `run.json`: those that `scores.json` is computed with."""
    latest = options.model_dump(mode="json", include=fields_that_change(type(options), "scores"))
    with folder.locked():
        manifest = folder.read_manifest()
        if {**manifest["options"], **latest} != manifest["options"]:
            manifest["options"].update(latest)
            manifest[DIRECTORY] = str(Path.cwd())
            write_atomically(folder.manifest_path, format_checked_json(manifest))


def _change_options(benchmark: Benchmark, stored: dict[str, Any], changes: dict[str, Any]) -> BenchmarkOptions:
    free = fields_that_change(benchmark.options, "scores")
    unknown = sorted(set(changes) - set(benchmark.options.model_fields))
    if unknown:
        raise OptionError(
            f"{', '.join(unknown)}: {benchmark.card.name} has no such option",
            remedy=f"a stored run can change: {', '.join(sorted(free))}",
        )
    fixed = sorted(set(changes) - free)
    if fixed:
        raise OptionError(
            f"{', '.join(fixed)}: this changes the units or their records, not only the scores",
            remedy=f"run again with it; a stored run can change: {', '.join(sorted(free))}",
        )
    if "reading" in changes:
        changes = {**changes, "reading": {**stored.get("reading", {}), **changes["reading"]}}
    return parse_options(benchmark.options, {**stored, **changes}, benchmark.card.name)


def _mark_incomplete(score: Score, unscored: int) -> Score:
    """A score without all its units is not comparable, whatever the benchmark says about the whole."""
    if not unscored or not score.comparable.lower().startswith("comparable"):
        return score
    return replace(score, comparable=f"not comparable: {unscored} units have no answer")


def _list_unscored(unscored: int, failures: pl.DataFrame, contradicting: Sequence[str]) -> list[LeftOut]:
    notes = []
    if len(failures):
        names = tuple(failures["unit"].head(EXAMPLES).to_list())
        notes.append(LeftOut("units that failed", len(failures), "see failures.parquet for each error", names))
    unanswered = unscored - len(failures)
    if unanswered > 0:
        notes.append(LeftOut("units not answered yet", unanswered, "the run is not finished"))
    if contradicting:
        why = "two processes answered them differently (the model is not deterministic); the first answer counts"
        notes.append(LeftOut("second answers", len(contradicting), why, tuple(contradicting[:EXAMPLES])))
    return notes


def read_run_records(folder: Path, benchmark: str) -> tuple[dict[str, Any], pl.DataFrame]:
    """The content of run.json and the records without pictures; a run of another benchmark is a `RunError`."""
    run = RunFolder(folder)
    manifest = run.read_manifest()
    name = manifest["benchmark"]["name"]
    if name != benchmark:
        remedy = f"give the folder of a `hardlook run {benchmark}`"
        raise RunError(f"this is a run of {name}", file=folder, remedy=remedy)
    schema = find_benchmark(name).schema
    return manifest, read_records(run, schema, manifest["answers"]["fingerprint"], schema.light)


def get_model_name(manifest: Mapping[str, Any]) -> str:
    """The name of a run's model.

    >>> get_model_name({"model": None})
    'stored predictions'
    """
    return str(manifest["model"]["name"]) if manifest["model"] else "stored predictions"


def name_method(manifest: Mapping[str, Any], options: BenchmarkOptions) -> str:
    """The name of a run's model and of those that it works with, such as `ridge with clip (size=84)`.

    >>> name_method({"model": None}, BenchmarkOptions())
    'stored predictions'
    """
    model = get_model_name(manifest)
    return WITH.join([model, *(options.list_other_models(model).values() if manifest["model"] else ())])


def name_stored_method(manifest: Mapping[str, Any], benchmark: Benchmark) -> str:
    """The same from the options in `run.json`; the model alone where they cannot be used any more."""
    try:
        return name_method(manifest, parse_options(benchmark.options, dict(manifest["options"])))
    except (HardlookError, TypeError, ValueError):
        return get_model_name(manifest)
