"""`hardlook run BENCHMARK ... --unit ID --show`: answer some units, print their records, and draw them on a page."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import typer

from hardlook.commands.run.one_unit_page import Answer, document_of, fields_of, write_page
from hardlook.contract.benchmark import Benchmark, JudgesUnits, NeedsGettingReady, Unit
from hardlook.contract.options import BenchmarkOptions, parse_options
from hardlook.contract.records import Record
from hardlook.errors import OptionError

STORED = "stored predictions"
_FEW = 20_000


def answer_units(name: str, benchmark: Benchmark, values: dict[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Answer the units of `--unit` by every model, print and show them; whether one failed."""
    from hardlook.commands.printing import print_json
    from hardlook.commands.run.command import given_options
    from hardlook.runs.scoring import check_readings

    options = parse_options(benchmark.options, given_options(benchmark, values))
    check_readings(benchmark, options)
    if options.pred is not None and values["model"]:
        raise OptionError("--model and --pred are both given", remedy="score stored predictions, or run a model")
    units = wanted_units(benchmark, options, values["unit"])
    models = {"": {}} if options.pred is not None else dict(arguments)
    answers = [
        answer
        for model, given in models.items()
        for answer in _answered(name, benchmark, options, units, model, given, values)
    ]
    page = write_page(benchmark, answers, values["out"]) if values["show"] else None
    if values["as_json"]:
        print_json(document_of(benchmark, answers, page))
    else:
        _print_answers(benchmark, answers)
        if page:
            typer.echo(f"\npage: {page}")
    return any(answer.error for answer in answers)


def wanted_units(benchmark: Benchmark, options: BenchmarkOptions, ids: Sequence[str]) -> list[Unit]:
    """The units with these ids, in their order; an error names the nearest where there is no such unit."""
    from hardlook.runs.plan import list_units

    known = {unit.id: unit for unit in list_units(benchmark, options)}
    for wanted in ids:
        if wanted not in known:
            near = nearest(wanted, list(known))
            raise OptionError(
                f"--unit {wanted}: this is none of the {len(known)} units",
                remedy=f"the nearest are: {', '.join(near)}",
            )
    return [known[wanted] for wanted in dict.fromkeys(ids)]


def nearest(wanted: str, ids: Sequence[str], most: int = 5) -> list[str]:
    """The ids most like one that is not there; of very many only those that begin alike are looked at.

    >>> nearest("scene-01", ["street-12", "scene-0001"])[0]
    'scene-0001'
    """
    some, start = list(ids), len(wanted)
    while len(some) > _FEW and start > 0:
        alike = [one for one in ids if one.startswith(wanted[:start])]
        some, start = alike or some, start - 1
        if alike:
            break
    return difflib.get_close_matches(wanted, some[:_FEW], n=most, cutoff=0) or some[:most]


def _answered(
    name: str,
    benchmark: Benchmark,
    options: BenchmarkOptions,
    units: Sequence[Unit],
    model: str,
    given: Mapping[str, Any],
    values: Mapping[str, Any],
) -> list[Answer]:
    """The answers of one model, in the order of the units."""
    from hardlook.runs.batches import lay_out
    from hardlook.runs.evaluation import evaluate_batch
    from hardlook.runs.progress import progress_for
    from hardlook.runs.worker import Job, open_worker

    card = benchmark.card
    if not model and options.pred is None:
        raise OptionError(
            f"{name} needs a model", remedy=f"give --model; `hardlook models --role {card.role}` lists some"
        )
    here = open_worker(Job(name, model, dict(given), values["threads"]))
    if isinstance(benchmark, NeedsGettingReady):
        benchmark.get_ready(units, here.model, None if values["quiet"] else progress_for)
    records: dict[str, Record] = {}
    errors: dict[str, str] = {}
    for batch in lay_out(units, card.batch_size, whole_groups=card.whole_groups):
        outcome = evaluate_batch(benchmark, batch, here.model)
        records.update({str(record["unit"]): record for record in outcome.records})
        errors.update({failure.unit: failure.error for failure in outcome.failures})
    shown = model or STORED
    return [
        _judged(benchmark, options, Answer(shown, unit, records[unit.id]))
        if unit.id in records
        else Answer(shown, unit, error=errors[unit.id])
        for unit in units
    ]


def _judged(benchmark: Benchmark, options: BenchmarkOptions, answer: Answer) -> Answer:
    """The answer with its qualities and caption, where the benchmark judges single units."""
    if not isinstance(benchmark, JudgesUnits):
        return answer
    light = {name: answer.record[name] for name in benchmark.schema.light}
    frame = benchmark.schema.frame([answer.record]).select(benchmark.schema.light)
    row = benchmark.qualities(frame, options).row(0, named=True)
    qualities = {quality.name: float(row[quality.name]) for quality in benchmark.card.qualities}
    return replace(answer, qualities=qualities, caption=benchmark.caption(light))


def _print_answers(benchmark: Benchmark, answers: Sequence[Answer]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Printed

    console = Console()
    for answer in answers:
        printed = Printed(title=escape(f"{answer.unit.id} by {answer.model}"), title_justify="left", show_header=False)
        printed.add_column(style="dim")
        printed.add_column(overflow="fold")
        for name, text in fields_of(benchmark, answer).items():
            printed.add_row(escape(name), escape(text))
        if answer.error:
            printed.add_row("error", escape(answer.error))
        console.print(printed)
        if answer.caption:
            console.print(escape(answer.caption))
