"""`hardlook run BENCHMARK ... --unit ID --show`: answer some units, print their records, and draw them on a page.

The answers to a few units as a document and as a page: pictures of all models, records side by side.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from hardlook.errors import HardlookError, OptionError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.options import BenchmarkOptions, parse_options
from hardlook.harness.records import Record
from hardlook.harness.sections import Example, Gallery, Picture, Section, Table

SCHEMA = "hardlook.units/1"


@dataclass(frozen=True)
class Answer:
    """What one model answered to one unit: its whole record, or the error."""

    model: str
    unit: Unit
    record: Record = field(default_factory=dict)
    qualities: Mapping[str, float] = field(default_factory=dict)
    caption: str = ""
    error: str = ""


def fields_of(benchmark: Benchmark, answer: Answer) -> dict[str, str]:
    """Qualities and record as names and texts."""
    from hardlook.report.galleries import format_record_fields

    titles = {quality.name: quality.title for quality in benchmark.card.qualities}
    judged = {titles[name]: value for name, value in answer.qualities.items()}
    light = {name: answer.record[name] for name in benchmark.schema.light if name in answer.record and name != "unit"}
    return dict(format_record_fields({**judged, **light}))


def document_of(benchmark: Benchmark, answers: Sequence[Answer], page: Path | None) -> dict[str, Any]:
    """The answers as `--json` prints them."""
    light = benchmark.schema.light
    return {
        "schema": SCHEMA,
        "benchmark": {"name": benchmark.card.name, "version": benchmark.card.version},
        "answers": [
            {
                "unit": answer.unit.id,
                "model": answer.model,
                "record": {name: answer.record[name] for name in light if name in answer.record},
                "qualities": dict(answer.qualities),
                "caption": answer.caption,
                "error": answer.error or None,
            }
            for answer in answers
        ],
        "page": str(page) if page else None,
    }


def write_page(benchmark: Benchmark, answers: Sequence[Answer], out: Path | None) -> Path:
    """One section a unit: the pictures of all models, then their records side by side."""
    import tempfile

    from hardlook.harness.runs.folder import write_whole
    from hardlook.report.page import render_study

    by_unit: dict[str, list[Answer]] = {}
    for answer in answers:
        by_unit.setdefault(answer.unit.id, []).append(answer)
    models = ", ".join(dict.fromkeys(answer.model for answer in answers))
    page = render_study(
        [_section(benchmark, unit, own) for unit, own in by_unit.items()],
        title=f"{benchmark.card.title}: {', '.join(by_unit) if len(by_unit) < 4 else f'{len(by_unit)} units'}",
        summary=f"Answered by {models}. {benchmark.card.summary}",
        provenance=document_of(benchmark, answers, None),
        pictures={unit: _pictures(benchmark, own) for unit, own in by_unit.items()},
    )
    folder = out or Path(tempfile.mkdtemp(prefix="hardlook-"))
    path = folder if folder.suffix == ".html" else folder / "units.html"
    write_whole(path, page)
    return path


def _section(benchmark: Benchmark, unit: str, answers: Sequence[Answer]) -> Section:
    captions = [f"{answer.model}: {answer.error or answer.caption}" for answer in answers]
    if len(answers) == 1:
        captions = [answers[0].error or answers[0].caption]
    fields = [fields_of(benchmark, answer) for answer in answers]
    names = dict.fromkeys(name for one in fields for name in one)
    table = Table(
        "Record",
        "Everything that scores are made from; long lists and texts are cut.",
        ("field", *(answer.model for answer in answers)),
        tuple((name, *(one.get(name, "") for one in fields)) for name in names),
    )
    gallery = Gallery("Pictures", "", (Example(unit, " ".join(filter(None, captions))),))
    return Section(unit, "", (gallery, table))


def _pictures(benchmark: Benchmark, answers: Sequence[Answer]) -> Sequence[Picture] | str:
    """The pictures of all models' answers, each that is the same for all only once."""
    found: list[Picture] = []
    for answer in answers:
        if not answer.record:
            continue
        try:
            own = benchmark.pictures(answer.unit, answer.record)
        except (HardlookError, OSError) as error:
            return str(error)
        for picture in own:
            if not any(_alike(picture, other) for other in found):
                label = f"{picture.label} ({answer.model})" if found and len(answers) > 1 else picture.label
                found.append(replace(picture, label=label))
    return found or "there is no answer to draw"


def _alike(one: Picture, other: Picture) -> bool:
    arrays = ((one.image, other.image), (one.mask, other.mask), (one.label_map, other.label_map))
    same = all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in arrays)
    return same and one.label == other.label and list(one.points) == list(other.points)


STORED = "stored predictions"

_FEW = 20_000


def evaluate_named_units(name: str, benchmark: Benchmark, values: dict[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Answer the units of `--unit` by every model, print and show them; whether one failed."""
    from hardlook.cli.printing import print_json
    from hardlook.cli.run_flags import given_options
    from hardlook.harness.runs.scoring import check_readings

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
    from hardlook.harness.runs.plan import list_units

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
    from hardlook.harness.runs.evaluation import Job, evaluate_batch, open_worker
    from hardlook.harness.runs.plan import make_batches
    from hardlook.harness.runs.progress import progress_for

    card = benchmark.card
    if not model and options.pred is None:
        raise OptionError(
            f"{name} needs a model", remedy=f"give --model; `hardlook models --role {card.role}` lists some"
        )
    here = open_worker(Job(name, model, dict(given), values["threads"]))
    if benchmark.setup is not None:
        benchmark.setup(units, here.model, None if values["quiet"] else progress_for)
    records: dict[str, Record] = {}
    errors: dict[str, str] = {}
    for batch in make_batches(units, card.batch_size, whole_groups=card.whole_groups):
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
    if benchmark.qualities is None:
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
