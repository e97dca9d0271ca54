"""`hl.run(..., unit=ID)`: evaluate a few units without a run folder, with whole records, pictures and a page.

>>> from hardlook.api.running import run
>>> (one,) = run("closed-miou", model="planted-segmenter", scenes=4, unit="scene-0002", progress=False)
>>> one.unit.id, one.qualities
('scene-0002', {'image-miou': 1.0})
"""

from __future__ import annotations

import html
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hardlook.api.inline import Page, embed_page
from hardlook.cloud.data_copies import fetch_options
from hardlook.errors import HardlookError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.joined_runs.fold_models import fill_fold, has_fold, list_model_folds
from hardlook.harness.options import BenchmarkOptions, parse_options
from hardlook.harness.records import Record
from hardlook.harness.registry import add, find_benchmark
from hardlook.harness.runs.batches import make_batches
from hardlook.harness.runs.evaluation import build_worker, evaluate_batch
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.launch import make_job
from hardlook.harness.runs.plan import find_units, list_units
from hardlook.harness.runs.scoring import WITH, check_readings
from hardlook.harness.sections import Example, Gallery, Picture, Section, Table
from hardlook.report.compare.units import is_same_picture
from hardlook.report.galleries import format_record_fields
from hardlook.report.page import render_study

SCHEMA = "hardlook.units/1"
STORED = "stored predictions"


@dataclass(frozen=True)
class UnitResult:
    """The result of one model on one unit: its whole record with qualities and caption, or the error."""

    model: str
    unit: Unit = field(repr=False)
    record: Record = field(default_factory=dict, repr=False)
    qualities: Mapping[str, float] = field(default_factory=dict)
    caption: str = ""
    error: str = ""


class UnitResults(Sequence[UnitResult]):
    """The results of units, one per model and unit; a notebook shows them with their pictures."""

    def __init__(self, benchmark: Benchmark, results: Sequence[UnitResult]) -> None:
        self.benchmark = benchmark
        self._results = tuple(results)

    def __getitem__(self, place: Any) -> Any:
        return UnitResults(self.benchmark, self._results[place]) if isinstance(place, slice) else self._results[place]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def failed(self) -> list[UnitResult]:
        """The results that are errors."""
        return [result for result in self._results if result.error]

    def page(self, out: str | Path | None = None) -> Page:
        """Write a page with pictures and records: to `out`, a file or a folder, or to a new temporary folder."""
        folder = Path(tempfile.mkdtemp(prefix="hardlook-")) if out is None else Path(out)
        path = folder if folder.suffix == ".html" else folder / "units.html"
        text = render_page(self.benchmark, self._results)
        write_atomically(path, text)
        return Page(path, text)

    def __add__(self, other: UnitResults) -> UnitResults:
        return UnitResults(self.benchmark, [*self, *other])

    def __repr__(self) -> str:
        return "\n".join(f"{one.unit.id} by {one.model}: {one.error or one.caption}" for one in self) or "no units"

    def _repr_html_(self) -> str:
        if not len(self):
            return f"<p>{html.escape(repr(self))}</p>"
        return embed_page(render_page(self.benchmark, self._results))


def evaluate_single_units(
    benchmark: str | Benchmark,
    units: str | Sequence[str],
    *,
    model: Any,
    model_args: Mapping[str, Any],
    given: Mapping[str, Any],
    threads: int,
    show_progress: Callable[[int, int], Any] | None,
) -> UnitResults:
    """Evaluate the units of these ids with one model, or with its stored predictions; nothing is written.

    The arguments are those of `launch`; results are in the order of the ids, by fold where an argument has `{fold}`.
    """
    ids = [units] if isinstance(units, str) else list(units)
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else add(benchmark)
    options = fetch_options(parse_options(found.options, dict(given), found.card.name), show_progress)
    check_readings(found, options)
    job = make_job(benchmark, found, options, model, model_args, threads)
    others = options.list_other_models(job.model).values() if job.model else ()
    name, results = WITH.join([job.model or STORED, *others]), []
    for own, chosen in _list_by_fold(found, options, ids, given, job.model_args):
        worker = build_worker(replace(job, model_args=own))
        if found.setup is not None:
            found.setup(chosen, worker.model, show_progress)
        results += _evaluate(found, options, chosen, worker.model, name)
    return UnitResults(found, results)


def _list_by_fold(
    benchmark: Benchmark,
    options: BenchmarkOptions,
    ids: Sequence[str],
    given: Mapping[str, Any],
    args: Mapping[str, Any],
) -> list[tuple[dict[str, Any], list[Unit]]]:
    """The units of these ids with the arguments of their model, by fold where an argument has `{fold}`."""
    if not has_fold(args):
        return [(dict(args), find_units(list_units(benchmark, options), ids))]
    listed = {}
    for fold in list_model_folds(benchmark, given, args):
        own = fetch_options(parse_options(benchmark.options, {**given, "folds": (fold,)}, benchmark.card.name))
        listed[fold] = {unit.id: unit for unit in list_units(benchmark, own)}
    every = [unit for units in listed.values() for unit in units.values()]
    chosen = {unit.id for unit in find_units(every, ids)}
    return [
        (fill_fold(args, fold), [unit for name, unit in units.items() if name in chosen])
        for fold, units in listed.items()
        if chosen & units.keys()
    ]


def _evaluate(
    benchmark: Benchmark, options: BenchmarkOptions, units: Sequence[Unit], model: Any, name: str
) -> list[UnitResult]:
    """Evaluate the units with one model; results in the order of the units."""
    card = benchmark.card
    records: dict[str, Record] = {}
    errors: dict[str, str] = {}
    for batch in make_batches(units, card.batch_size, whole_groups=card.whole_groups):
        outcome = evaluate_batch(benchmark, batch, model)
        records.update({str(record["unit"]): record for record in outcome.records})
        errors.update({failure.unit: failure.error for failure in outcome.failures})
    return [
        _add_qualities(benchmark, options, UnitResult(name, unit, records[unit.id]))
        if unit.id in records
        else UnitResult(name, unit, error=errors[unit.id])
        for unit in units
    ]


def _add_qualities(benchmark: Benchmark, options: BenchmarkOptions, result: UnitResult) -> UnitResult:
    """The result with its qualities and caption, where the benchmark has any for single units."""
    if benchmark.qualities is None:
        return result
    light = {name: result.record[name] for name in benchmark.schema.light}
    frame = benchmark.schema.frame([result.record]).select(benchmark.schema.light)
    row = benchmark.qualities(frame, options).row(0, named=True)
    qualities = {quality.name: float(row[quality.name]) for quality in benchmark.card.qualities}
    return replace(result, qualities=qualities, caption=benchmark.caption(light) if benchmark.caption else "")


def build_document(benchmark: Benchmark, results: Sequence[UnitResult], page: Path | None) -> dict[str, Any]:
    """The document that `--json` prints."""
    light = benchmark.schema.light
    return {
        "schema": SCHEMA,
        "benchmark": {"name": benchmark.card.name, "version": benchmark.card.version},
        "answers": [
            {
                "unit": result.unit.id,
                "model": result.model,
                "record": {name: result.record[name] for name in light if name in result.record},
                "qualities": dict(result.qualities),
                "caption": result.caption,
                "error": result.error or None,
            }
            for result in results
        ],
        "page": str(page) if page else None,
    }


def render_page(benchmark: Benchmark, results: Sequence[UnitResult]) -> str:
    """A page with one section per unit: the pictures of all models, then their records side by side."""
    by_unit: dict[str, list[UnitResult]] = {}
    for result in results:
        by_unit.setdefault(result.unit.id, []).append(result)
    models = ", ".join(dict.fromkeys(result.model for result in results))
    return render_study(
        [_build_section(benchmark, unit, own) for unit, own in by_unit.items()],
        title=f"{benchmark.card.title}: {', '.join(by_unit) if len(by_unit) < 4 else f'{len(by_unit)} units'}",
        summary=f"Evaluated with {models}. {benchmark.card.summary}",
        provenance=build_document(benchmark, results, None),
        pictures={unit: _collect_pictures(benchmark, own) for unit, own in by_unit.items()},
    )


def _build_section(benchmark: Benchmark, unit: str, results: Sequence[UnitResult]) -> Section:
    captions = [f"{result.model}: {result.error or result.caption}" for result in results]
    if len(results) == 1:
        captions = [results[0].error or results[0].caption]
    fields = [format_fields(benchmark, result) for result in results]
    names = dict.fromkeys(name for one in fields for name in one)
    table = Table(
        "Record",
        "Everything that scores are made from; long lists and texts are cut.",
        ("field", *(result.model for result in results)),
        tuple((name, *(one.get(name, "") for one in fields)) for name in names),
    )
    gallery = Gallery("Pictures", "", (Example(unit, " ".join(filter(None, captions))),))
    return Section(unit, "", (gallery, table))


def _collect_pictures(benchmark: Benchmark, results: Sequence[UnitResult]) -> Sequence[Picture] | str:
    """The pictures of all models; a picture that several models share is shown once."""
    found: list[Picture] = []
    for result in results:
        if not result.record:
            continue
        try:
            own = benchmark.pictures(result.unit, result.record)
        except (HardlookError, OSError) as error:
            return str(error)
        for picture in own:
            if not any(is_same_picture(picture, other) for other in found):
                label = f"{picture.label} ({result.model})" if found and len(results) > 1 else picture.label
                found.append(replace(picture, label=label))
    return found or "there is no record to draw"


def format_fields(benchmark: Benchmark, result: UnitResult) -> dict[str, str]:
    """Qualities and record columns as texts by name."""
    titles = {quality.name: quality.title for quality in benchmark.card.qualities}
    judged = {titles[name]: value for name, value in result.qualities.items()}
    light = {name: result.record[name] for name in benchmark.schema.light if name in result.record and name != "unit"}
    return dict(format_record_fields({**judged, **light}))
