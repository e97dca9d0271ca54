"""`hardlook collect init ratings`: label pairs and pictures that people rate from 1 to 10."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from hardlook.commands import grammar, study_flags
from hardlook.commands.printing import print_json

if TYPE_CHECKING:
    from hardlook.collect.study.folder import Study
    from hardlook.labels.unknown import Unknown


def ratings(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder, new or empty.")],
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="A name from `hardlook labels list`, or a file; voc20, or none with --run."),
    ] = None,
    measures: Annotated[
        str, typer.Option("--measures", help="Names from `hardlook similarity measures`, with commas.")
    ] = "path,wup,lin,lesk",
    source: Annotated[
        list[str] | None, typer.Option("--source", help="MEASURE=PATH of vectors or a model folder; repeatable.")
    ] = None,
    variant: Annotated[
        str, typer.Option("--variant", help="Senses of a shipped set: corrected or published.")
    ] = "corrected",
    unknown: Annotated[
        str, typer.Option("--unknown", help="Labels a measure does not know: hypernym, zero, error or random.")
    ] = "hypernym",
    pairs: Annotated[int, typer.Option("--pairs", min=0, help="Pairs of labels, the same for all measures.")] = 40,
    run: Annotated[
        Path | None, typer.Option("--run", help="Folder of a finished `hardlook run open-miou`, for pictures.")
    ] = None,
    pictures: Annotated[int, typer.Option("--pictures", min=0, help="Pictures of that run.")] = 20,
    question: Annotated[
        Literal["fit", "likeness"],
        typer.Option("--question", help="fit: does the shown value fit? likeness: how alike, no value shown?"),
    ] = "fit",
    raters: Annotated[int, typer.Option("--raters", min=1, help="Ratings wanted of each value that is shown.")] = 10,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, max=100, help="Ratings of a batch.")] = 10,
    most_batches: Annotated[
        int, typer.Option("--most-batches", min=1, help="Batches of one participant at most.")
    ] = 20,
    title: Annotated[str, typer.Option("--title", help="Shown on every page.")] = "How alike?",
    language: Annotated[
        list[str] | None,
        typer.Option(help="Languages to choose from, the first by default; repeatable; en and de without it."),
    ] = None,
    consent: Annotated[
        list[str] | None, typer.Option("--consent", help="[LANGUAGE=]FILE with a text of consent; repeatable.")
    ] = None,
    instructions: Annotated[
        list[str] | None, typer.Option("--instructions", help="[LANGUAGE=]FILE to add to instructions; repeatable.")
    ] = None,
    contact: Annotated[str, typer.Option("--contact", help="Whom participants may ask.")] = "",
    invited_only: Annotated[bool, typer.Option("--invited-only", help="Only by `hardlook collect invite`.")] = False,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
) -> None:
    """Make a study of similarity ratings: people say how well measures tell how alike labels are.

    Pairs and pictures are drawn so that the values of every measure are spread. With --question fit each participant
    sees a pair under one measure only, so N measures need N times as many people as --raters.

    [bold]Examples[/bold]

      hardlook collect init ratings study

      hardlook collect init ratings study --labels coco80 --measures path,wup --pairs 60 --raters 12

      hardlook collect init ratings study --run runs/open --pictures 30 --question likeness
    """
    from hardlook.collect.study.rating_study import RatingPlan, rating_study
    from hardlook.collect.study.settings import ANY_DEVICE
    from hardlook.commands.collect.study_settings import settings_of, texts_of

    languages = tuple(language or ("en", "de"))
    plan = RatingPlan(
        labels=labels,
        variant=variant,
        measures=tuple(_words(measures)),
        sources=grammar.paths(source, "--source"),
        unknown=cast("Unknown", unknown),
        pairs=pairs,
        run=run,
        pictures=pictures,
        seed=seed,
    )
    settings = settings_of(
        {
            "kind": "ratings",
            "title": title,
            "devices": (ANY_DEVICE,),
            "question": question,
            "target_answers": raters,
            "batch_size": batch_size,
            "most_batches": most_batches,
            "training_tasks": 2,
            "languages": languages,
            "consent": texts_of(consent, "--consent", languages),
            "instructions": texts_of(instructions, "--instructions", languages),
            "contact": contact,
            "open_link": not invited_only,
        }
    )
    made = rating_study(study, plan, settings)
    document = describe(made)
    if as_json:
        print_json(document)
        return
    for line in _lines(document):
        typer.echo(line)


def describe(study: Study) -> dict[str, Any]:
    """What the command prints with `--json`."""
    made, settings = study.made, study.settings
    return {
        "study": str(study.path),
        "question": settings.question,
        "measures": list(made["measures"]),
        "pairs": made["pairs"],
        "pictures": made["pictures"],
        "tasks": len(study.items),
        "raters": settings.target_answers,
        "ratings_wanted": len(study.items) * settings.target_answers,
        "participants_needed": _participants(study),
        "treated": {name: measure["treated"] for name, measure in made["measures"].items()},
        "left_out": made["left_out"],
    }


def _participants(study: Study) -> int:
    """The fewest people: nobody rates a subject twice, nor more than the batches allow."""
    settings = study.settings
    subjects = len({item.subject for item in study.items})
    a_person = min(subjects, settings.batch_size * settings.most_batches)
    return -(-len(study.items) * settings.target_answers // a_person)


def _lines(document: dict[str, Any]) -> list[str]:
    lines = [f"A study of ratings in {document['study']}: {document['tasks']} tasks, question {document['question']}."]
    for name in ("pairs", "pictures"):
        found = document[name]
        if found["drawn"]:
            lines.append(f"  {name}: {found['drawn']} of {found['of']}, under {', '.join(document['measures'])}")
    lines.append(
        f"  wanted: {document['ratings_wanted']} ratings, {document['raters']} of each task, by "
        f"{document['participants_needed']} people at least"
    )
    for name, treated in document["treated"].items():
        if treated:
            label, how = next(iter(treated.items()))
            lines.append(f"  {name}: {len(treated)} labels were not simply looked up, such as {label} ({how})")
    lines += [f"  left out: {row['count']} {row['what']}: {row['why']}" for row in document["left_out"]]
    return [*lines, f"Next: hardlook collect serve {document['study']}"]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
