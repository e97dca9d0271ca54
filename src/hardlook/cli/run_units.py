"""`hardlook run BENCHMARK ... --unit ID --show`: evaluate a few units, print their records, and draw them on a page."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Printed

from hardlook.api.running import pass_device_to_encoder
from hardlook.cli.arguments import collect_options
from hardlook.cli.printing import print_json
from hardlook.errors import HardlookError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.joined_runs.fold_models import fill_fold, has_fold, list_model_folds
from hardlook.harness.options import BenchmarkOptions, parse_options
from hardlook.harness.records import Record
from hardlook.harness.runs.batches import make_batches
from hardlook.harness.runs.evaluation import Job, build_worker, evaluate_batch
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.launch import choose_model
from hardlook.harness.runs.plan import find_units, list_units
from hardlook.harness.runs.progress import make_progress
from hardlook.harness.runs.scoring import check_readings
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
    unit: Unit
    record: Record = field(default_factory=dict)
    qualities: Mapping[str, float] = field(default_factory=dict)
    caption: str = ""
    error: str = ""


def evaluate_named_units(name: str, benchmark: Benchmark, values: dict[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Evaluate the units of `--unit` with every model, print and show them; return whether one failed."""
    chosen, arguments = collect_options(benchmark, values), dict(arguments)
    for model, given in arguments.items():
        chosen, arguments[model] = pass_device_to_encoder(benchmark, chosen, model, given, values["device"])
    options = parse_options(benchmark.options, chosen, benchmark.card.name)
    check_readings(benchmark, options)
    choose_model(benchmark.card, options, values["model"])
    models = {"": {}} if options.pred is not None else dict(arguments)
    results = [
        result
        for model, given in models.items()
        for own, units in _list_by_fold(benchmark, options, values, given)
        for result in _evaluate_model(name, benchmark, options, units, model, own, values)
    ]
    page = write_page(benchmark, results, values["out"]) if values["show"] else None
    if values["as_json"]:
        print_json(build_document(benchmark, results, page))
    else:
        _print_results(benchmark, results)
        if page:
            typer.echo(f"\npage: {page}")
    return any(result.error for result in results)


def _list_by_fold(
    benchmark: Benchmark, options: BenchmarkOptions, values: dict[str, Any], args: Mapping[str, Any]
) -> list[tuple[dict[str, Any], list[Unit]]]:
    """The units of `--unit` with the arguments of their model, by fold where an argument has `{fold}`."""
    if not has_fold(args):
        return [(dict(args), find_units(list_units(benchmark, options), values["unit"]))]
    given, listed = collect_options(benchmark, values), {}
    for fold in list_model_folds(benchmark, given, args):
        own = parse_options(benchmark.options, {**given, "folds": (fold,)}, benchmark.card.name)
        listed[fold] = {unit.id: unit for unit in list_units(benchmark, own)}
    every = [unit for units in listed.values() for unit in units.values()]
    chosen = {unit.id for unit in find_units(every, values["unit"])}
    return [
        (fill_fold(args, fold), [unit for name, unit in units.items() if name in chosen])
        for fold, units in listed.items()
        if chosen & units.keys()
    ]


def _evaluate_model(
    name: str,
    benchmark: Benchmark,
    options: BenchmarkOptions,
    units: Sequence[Unit],
    model: str,
    given: Mapping[str, Any],
    values: Mapping[str, Any],
) -> list[UnitResult]:
    """Evaluate the units with one model; results in the order of the units."""
    card = benchmark.card
    worker = build_worker(Job(name, model, dict(given), values["threads"]))
    if benchmark.setup is not None:
        benchmark.setup(units, worker.model, None if values["quiet"] else make_progress)
    records: dict[str, Record] = {}
    errors: dict[str, str] = {}
    for batch in make_batches(units, card.batch_size, whole_groups=card.whole_groups):
        outcome = evaluate_batch(benchmark, batch, worker.model)
        records.update({str(record["unit"]): record for record in outcome.records})
        errors.update({failure.unit: failure.error for failure in outcome.failures})
    shown = model or STORED
    return [
        _add_qualities(benchmark, options, UnitResult(shown, unit, records[unit.id]))
        if unit.id in records
        else UnitResult(shown, unit, error=errors[unit.id])
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


def write_page(benchmark: Benchmark, results: Sequence[UnitResult], out: Path | None) -> Path:
    """Write a page with one section per unit: the pictures of all models, then their records side by side."""
    by_unit: dict[str, list[UnitResult]] = {}
    for result in results:
        by_unit.setdefault(result.unit.id, []).append(result)
    models = ", ".join(dict.fromkeys(result.model for result in results))
    page = render_study(
        [_build_section(benchmark, unit, own) for unit, own in by_unit.items()],
        title=f"{benchmark.card.title}: {', '.join(by_unit) if len(by_unit) < 4 else f'{len(by_unit)} units'}",
        summary=f"Evaluated with {models}. {benchmark.card.summary}",
        provenance=build_document(benchmark, results, None),
        pictures={unit: _collect_pictures(benchmark, own) for unit, own in by_unit.items()},
    )
    folder = out or Path(tempfile.mkdtemp(prefix="hardlook-"))
    path = folder if folder.suffix == ".html" else folder / "units.html"
    write_atomically(path, page)
    return path


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


def _print_results(benchmark: Benchmark, results: Sequence[UnitResult]) -> None:
    console = Console()
    for result in results:
        printed = Printed(title=escape(f"{result.unit.id} by {result.model}"), title_justify="left", show_header=False)
        printed.add_column(style="dim")
        printed.add_column(overflow="fold")
        for name, text in format_fields(benchmark, result).items():
            printed.add_row(escape(name), escape(text))
        if result.error:
            printed.add_row("error", escape(result.error))
        console.print(printed)
        if result.caption:
            console.print(escape(result.caption))


def format_fields(benchmark: Benchmark, result: UnitResult) -> dict[str, str]:
    """Qualities and record columns as texts by name."""
    titles = {quality.name: quality.title for quality in benchmark.card.qualities}
    judged = {titles[name]: value for name, value in result.qualities.items()}
    light = {name: result.record[name] for name in benchmark.schema.light if name in result.record and name != "unit"}
    return dict(format_record_fields({**judged, **light}))
