"""`hardlook collect init review`: candidate images that people accept or decline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import grammar, study_flags
from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.collect.study.folder import Study

NAME = "candidates"
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data", help="candidates=DIR with \\[split/]concept/context/image, or a manifest.", show_default=False
    ),
]
Words = Annotated[list[str] | None, typer.Option(help="A text file, or LANGUAGE=FILE; repeatable.", show_default=False)]


def review(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder, new or empty.")],
    data: Data = None,
    at_most: Annotated[int | None, typer.Option(min=1, help="Draw so many candidates.")] = None,
    scenes: Annotated[int, typer.Option(min=1, help="Scenes of the planted world, without --data.")] = 24,
    title: Annotated[str, typer.Option(help="Shown on every page.")] = "Does the image show it?",
    reviewers: Annotated[int, typer.Option(min=1, help="People who judge each candidate; all must accept it.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, max=100, help="Candidates of a batch.")] = 10,
    most_batches: Annotated[int, typer.Option(min=1, help="Batches of one participant at most.")] = 20,
    training: Annotated[int, typer.Option(min=0, max=20, help="Tasks of the training round.")] = 3,
    language: Annotated[
        list[str] | None, typer.Option(help="Languages to choose from, the first by default; repeatable. \\[en, de]")
    ] = None,
    consent: Words = None,
    instructions: Words = None,
    contact: Annotated[str, typer.Option(help="Whom participants may ask.")] = "",
    invited_only: Annotated[bool, typer.Option("--invited-only", help="Only people with an invitation.")] = False,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Make a review: people say of each image whether it shows its concept in its context.

    Two people judge each candidate, and it is kept when both accept, as MetaCoCo's images were chosen. Without --data
    the candidates are scenes of the planted world, of which every fourth is wrongly described.

    [bold]Examples[/bold]

      hardlook collect init review study --data candidates=FOLDER

      hardlook collect init review study --data candidates=found/manifest.csv --reviewers 3 --at-most 500
    """
    from hardlook.collect.study.review_tasks import review_study
    from hardlook.collect.study.settings import ANY_DEVICE
    from hardlook.commands.build.inputs import showing_progress
    from hardlook.commands.collect.study_settings import settings_of, texts_of
    from hardlook.commands.printing import print_json

    languages = tuple(language or ("en", "de"))
    settings = settings_of(
        {
            "kind": "review",
            "title": title,
            "devices": (ANY_DEVICE,),
            "target_answers": reviewers,
            "batch_size": batch_size,
            "most_batches": most_batches,
            "training_tasks": training,
            "open_link": not invited_only,
            "languages": languages,
            "consent": texts_of(consent, "--consent", languages),
            "instructions": texts_of(instructions, "--instructions", languages),
            "contact": contact,
        }
    )
    with showing_progress(quiet) as start:
        made = review_study(
            study, candidates_of(data), settings, at_most=at_most, scenes=scenes, seed=seed, progress=start
        )
    document = document_of(made)
    if as_json:
        print_json(document)
    else:
        typer.echo(in_words(document))


def candidates_of(data: list[str] | None) -> Path | None:
    """The folder or manifest of `--data`, None for the planted world.

    >>> candidates_of(["candidates=found"]), candidates_of(None)
    (PosixPath('found'), None)
    """
    given = grammar.paths(data, "--data", alone=NAME)
    if set(given) - {NAME}:
        raise OptionError(f"--data {', '.join(sorted(given))}: a review has candidates", remedy="--data candidates=DIR")
    return given.get(NAME)


def document_of(study: Study) -> dict[str, Any]:
    """What was made, as JSON."""
    settings, made, tasks = study.settings, study.made, len(study.items)
    a_person = min(tasks, settings.batch_size * settings.most_batches)
    return {
        "study": str(study.path),
        "kind": settings.kind,
        "tasks": tasks,
        "images": made["images"],
        "training": len(study.training),
        "reviewers": settings.target_answers,
        "reviews_wanted": tasks * settings.target_answers,
        # Nobody judges a claim twice, so there must be as many people as reviews of one claim.
        "participants_needed": max(settings.target_answers, -(-tasks * settings.target_answers // a_person)),
        "left_out": made["left_out"],
        "next": f"hardlook collect serve {study.path}",
    }


def in_words(document: dict[str, Any]) -> str:
    """The same for people."""
    from hardlook.report.numerals import counted

    lines = [
        f"{counted(document['tasks'], 'claim')} about {counted(document['images'], 'image')}; "
        f"{counted(document['reviews_wanted'], 'review')} wanted, {document['reviewers']} of each claim, by "
        f"{counted(document['participants_needed'], 'participant')} or more."
    ]
    lines += [f"Left out: {note['count']} {note['what']} ({note['why']})." for note in document["left_out"]]
    return "\n".join([*lines, f"Next: {document['next']}"])
