"""The answers to a few units as a document and as a page: pictures of all models, records side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.contract.benchmark import Benchmark, Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Example, Gallery, Picture, Section, Table
from hardlook.errors import HardlookError

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
    from hardlook.report.unit_records import record_fields

    titles = {quality.name: quality.title for quality in benchmark.card.qualities}
    judged = {titles[name]: value for name, value in answer.qualities.items()}
    light = {name: answer.record[name] for name in benchmark.schema.light if name in answer.record and name != "unit"}
    return dict(record_fields({**judged, **light}))


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

    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

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
