"""`hardlook data inspect`: what a concept x context dataset holds, and what can be asked of it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands.data.inspection_findings import TaskSettings, inspect_dataset, numbers
from hardlook.commands.printing import print_json
from hardlook.errors import OptionError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.commands.data.inspection_findings import Inspection

_MODES = "blind,iid,ood,swapped,shared"


def inspect(
    data: Annotated[Path, typer.Option("--data", help="A folder (split/)concept/context/image, or a manifest.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for inspection.html, inspection.json and splits.csv.")],
    split_rule: Annotated[
        str | None,
        typer.Option("--split-rule", help="size (as in the paper), seed, or a CSV file concept,split."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of --split-rule seed.")] = 0,
    modes: Annotated[str, typer.Option("--modes", help="Kinds of tasks.")] = _MODES,
    ways: Annotated[str, typer.Option("--ways", help="Classes a task.")] = "5,10",
    shots: Annotated[str, typer.Option("--shots", help="Supports a class.")] = "5",
    queries: Annotated[int, typer.Option("--queries", min=1, help="Queries a class.")] = 15,
    against: Annotated[
        str | None, typer.Option("--against", help="published: compare with the counts that the paper prints.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of text.")] = False,
) -> None:
    """Classes, contexts, duplicates by content, concepts in two splits, and which classes can form tasks, or why not.

    [bold]Examples[/bold]

      hardlook data inspect --data pacs --split-rule size --shots 1,5 --out inspection

      hardlook data inspect --data MetaCoCo --against published --out inspection
    """
    from hardlook.data.concept_context import open_dataset

    if against not in (None, "published"):
        raise OptionError(f"--against {against}: there are only the published counts", remedy="--against published")
    asked = tuple(dict.fromkeys(word.strip() for word in modes.split(",")))
    settings = TaskSettings(asked, numbers(ways, "--ways"), numbers(shots, "--shots"), queries)
    dataset = open_dataset(data, rule=split_rule, seed=seed)
    document = write_inspection(inspect_dataset(dataset, settings, against_published=bool(against)), out)
    if as_json:
        print_json(document)
    else:
        typer.echo("\n".join([*document["in_words"], "", f"page: {out / 'inspection.html'}"]))


def write_inspection(found: Inspection, out: Path) -> dict[str, Any]:
    """Write the page, the numbers and, where every concept has one split, the splits; return the numbers."""
    from hardlook.commands.data.inspection_document import inspection_document
    from hardlook.commands.data.inspection_page import inspection_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    document = inspection_document(found)
    page = render_study(
        inspection_sections(found, document["in_words"]),
        title=f"What is in {found.dataset.source.name}",
        summary="Concepts, contexts and splits, counted from the files, and which few-shot tasks the dataset allows.",
        provenance={name: document[name] for name in ("schema", "hardlook", "data", "split_rule", "asked", "images")},
    )
    write_whole(out / "inspection.json", json_text(document))
    write_whole(out / "inspection.html", page)
    if found.dataset.splits and not found.shared_concepts:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("concept", "split"))
        writer.writerows(sorted({(row.concept, str(row.split)) for row in found.dataset.rows}))
        write_whole(out / "splits.csv", text.getvalue())
    return document
