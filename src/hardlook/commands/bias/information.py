"""`hardlook bias information`: which attribute of an image says most about one-shot success."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.commands.bias import inputs
from hardlook.commands.printing import print_json
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.bias.information import InformationStudy


def information(
    attributes: Annotated[Path, typer.Option("--attributes", help="attributes.csv or the published test_stats.csv.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for information.html and information.json.")],
    run: study_flags.Run = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
) -> None:
    """Mutual information (nats) of size, centredness, salience, blobs, distractors and supervised IoU with success.

    Success is a one-shot IoU above .5 of a class in an image: from the table's column oss_perf, or from --run.

    [bold]Example[/bold]

      hardlook bias information --attributes attributes.csv --run runs/toss --out information
    """
    from hardlook.bias.attribute_file import attribute_frame
    from hardlook.bias.information import attribute_information, with_run
    from hardlook.errors import DataError

    table, who = attribute_frame(attributes), f"the one-shot model of {attributes.name}"
    if run:
        answers, model = inputs.read_run(run)
        table, who = with_run(table, answers), f"{model} on {answers.pairs}"
    try:
        study = attribute_information(table, seed=seed)
    except DataError as error:
        raise error.at(file=attributes) from None
    document = write_information(study, who, out, {"attributes": str(attributes), "run": str(run or ""), "seed": seed})
    if as_json:
        print_json(document)
    else:
        typer.echo(f"{document['in_words']}\n\npage: {out / 'information.html'}")


def write_information(study: InformationStudy, who: str, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    from hardlook.commands.bias.information_page import information_document, information_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    document = information_document(study, who, given)
    page = render_study(
        information_sections(study, document["in_words"]),
        title="Which attribute matters",
        summary="How much each attribute of a class in an image says about whether one-shot segmentation finds it. "
        "Information is in nats: 0 says nothing, ln 2 = .693 tells an even outcome fully.",
        provenance=document,
    )
    write_whole(out / "information.json", json_text(document))
    write_whole(out / "information.html", page)
    return document
