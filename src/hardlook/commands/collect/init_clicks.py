"""`hardlook collect init clicks`: a study folder from objects, or from the errors of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.commands import grammar, study_flags

Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="grabcut=DIR, voc=DIR, instances=JSON with images=DIR, any NAME=DIR; repeatable."),
]
Modes = Annotated[
    list[str] | None,
    typer.Option(
        "--mode", help="text, cut-out, shifted, silhouette or highlighted; repeatable; cut-out alone without it."
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Option(help="A text file, or LANGUAGE=FILE; repeatable.", show_default=False),
]
Masks = Annotated[
    list[Path] | None,
    typer.Option("--masks", help="Round 2: finished `hardlook run rclicks` folders, or a folder of masks; repeatable."),
]


def clicks(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder, new or empty.")],
    data: Data = None,
    at_most: Annotated[int | None, typer.Option(min=1, help="Draw so many objects of each dataset.")] = None,
    min_area: Annotated[int, typer.Option(min=0, help="Leave out objects of fewer pixels.")] = 0,
    split: Annotated[str | None, typer.Option(help="Which list of a VOC devkit, where it has several.")] = None,
    scenes: Annotated[int, typer.Option(min=1, help="Scenes of the planted world, without --data.")] = 24,
    mode: Modes = None,
    descriptions: Annotated[
        Path | None, typer.Option(help="Words for the text mode: a csv file with full_stem and description.")
    ] = None,
    title: Annotated[str, typer.Option(help="Shown on every page.")] = "Click on the object",
    target_clicks: Annotated[int, typer.Option(min=1, help="Valid clicks wanted of each task, mode and device.")] = 25,
    devices: Annotated[str, typer.Option(help="pc, mobile, or both with a comma.")] = "pc,mobile",
    batch_size: Annotated[int, typer.Option(min=1, max=100, help="Tasks of a batch.")] = 10,
    most_batches: Annotated[int, typer.Option(min=1, help="Batches of one participant at most.")] = 20,
    radius: Annotated[float, typer.Option(min=0, help="Pixels beside the mask within which a click is valid.")] = 5.0,
    image_seconds: Annotated[float, typer.Option(min=0, max=60, help="The image alone.")] = 1.5,
    target_seconds: Annotated[float, typer.Option(min=0, max=60, help="The target as a picture.")] = 2.0,
    text_seconds: Annotated[float, typer.Option(min=0, max=60, help="The target in words.")] = 2.5,
    again_seconds: Annotated[float, typer.Option(min=0, max=60, help="The image again, before clicks count.")] = 1.5,
    training: Annotated[int, typer.Option(min=0, max=20, help="Tasks of the training round.")] = 3,
    language: Annotated[
        list[str] | None,
        typer.Option(help="Languages to choose from, the first by default; repeatable; en and de without it."),
    ] = None,
    consent: Words = None,
    instructions: Words = None,
    contact: Annotated[str, typer.Option(help="Whom participants may ask.")] = "",
    invited_only: Annotated[bool, typer.Option("--invited-only", help="Only people with an invitation.")] = False,
    round_: Annotated[int, typer.Option("--round", min=1, max=2, help="1: objects; 2: errors of predictions.")] = 1,
    masks: Masks = None,
    limit: Annotated[float, typer.Option(min=0, max=1, help="Round 2: the best IoU that is still corrected.")] = 0.95,
    errors: Annotated[str, typer.Option(help="Round 2: largest, or both fn and fp.")] = "largest",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out and count objects that cannot be read.")
    ] = False,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Make a study of clicks: one timed click on each object that is shown.

    Without --data the objects are those of the planted world. A stopped command is given again as it was. Everything
    else about a study is in its study.json, which may be edited before it is served.

    [bold]Examples[/bold]

      hardlook collect init clicks study --data grabcut=GrabCut --mode cut-out --mode text --descriptions words.csv

      hardlook collect init clicks study --data instances=mine.json --data images=photos --at-most 200 --min-area 900

      hardlook collect init clicks study --data grabcut=GrabCut --round 2 --masks runs/sam --masks runs/ritm
    """
    from hardlook.commands.build.inputs import showing_progress
    from hardlook.commands.collect.making_clicks import Asked, document_of, in_words, make
    from hardlook.commands.collect.study_settings import settings_of, texts_of
    from hardlook.commands.printing import print_json

    languages = tuple(language or ("en", "de"))
    timings = {"image": image_seconds, "target": target_seconds, "target_text": text_seconds, "again": again_seconds}
    settings = settings_of(
        {
            "kind": "clicks",
            "title": title,
            "modes": tuple(mode or ("cut-out",)),
            "timings": timings,
            "batch_size": batch_size,
            "click_radius": radius,
            "target_answers": target_clicks,
            "devices": tuple(part.strip() for part in devices.split(",")),
            "most_batches": most_batches,
            "training_tasks": training,
            "open_link": not invited_only,
            "languages": languages,
            "consent": texts_of(consent, "--consent", languages),
            "instructions": texts_of(instructions, "--instructions", languages),
            "contact": contact,
        }
    )
    asked = Asked(
        grammar.paths(data, "--data"), at_most, min_area, split, scenes, seed, descriptions, skip_broken,
        round_, tuple(masks or ()), limit, errors,
    )  # fmt: skip
    with showing_progress(quiet) as start:
        document = document_of(make(study, asked, settings, start))
    if as_json:
        print_json(document)
    else:
        typer.echo(in_words(document, planted=not data))
