"""`hardlook collect init`: make a study folder for clicks, reviews or ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from pydantic import ValidationError

from hardlook.cli import arguments
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_json
from hardlook.collect.study.settings import ANY_DEVICE, StudySettings, describe_validation_error
from hardlook.errors import DataError, OptionError
from hardlook.reading import read_bytes

if TYPE_CHECKING:
    from hardlook.similarity.label_synsets import UnknownPolicy

app = App(
    no_args_is_help=True,
    help=(
        "Make a study folder.\n\n"
        "Examples:\n\n"
        "  hardlook collect init clicks study --data grabcut=GrabCut\n\n"
        "  hardlook collect init review study --data candidates=FOLDER\n\n"
        "  hardlook collect init ratings study --labels voc20 --measures path,wup"
    ),
)

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder, new or empty.")]
Title = Annotated[str, typer.Option("--title", help="Shown on every page.")]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, max=100, help="Tasks per batch.")]
MostBatches = Annotated[int, typer.Option("--most-batches", min=1, help="Batches per participant at most.")]
Training = Annotated[int, typer.Option("--training", min=0, max=20, help="Tasks of the training round.")]
Scenes = Annotated[int, typer.Option("--scenes", min=1, help="Scenes of the planted world, without --data.")]
Languages = Annotated[
    list[str] | None,
    typer.Option(
        "--language", help="Languages to choose from, the first by default; repeatable; en and de if omitted."
    ),
]
Consent = Annotated[
    list[str] | None,
    typer.Option("--consent", help="[LANGUAGE=]FILE with a consent text; repeatable.", show_default=False),
]
Instructions = Annotated[
    list[str] | None,
    typer.Option("--instructions", help="[LANGUAGE=]FILE added to the instructions; repeatable.", show_default=False),
]
Contact = Annotated[str, typer.Option("--contact", help="Contact for questions of participants.")]
OpenLink = Annotated[
    bool,
    typer.Option(
        "--open-link/--invited-only",
        help="Whether anybody who has the address may join, or only people with a link of `hardlook collect invite`.",
    ),
]
PlatformName = Annotated[
    Literal["prolific", "mturk", "sona"] | None,
    typer.Option("--platform", help="Where people come from; their ids are stored, and joining needs no invitation."),
]
CompletionUrl = Annotated[
    str,
    typer.Option(
        "--completion-url",
        help="Where the last page leads; {code} and ids such as {survey_code} are filled in.",
    ),
]
FrameOrigins = Annotated[
    list[str] | None,
    typer.Option(
        "--frame-origin",
        help="A site whose pages may show the participants' pages in a frame, as https://worker.mturk.com; repeatable.",
        show_default=False,
    ),
]
Pay = Annotated[str, typer.Option("--pay", help="The pay, shown before the consent.")]
Minutes = Annotated[
    float | None, typer.Option("--minutes", min=0.1, help="Minutes of a batch, shown before the consent.")
]
AttentionChecks = Annotated[
    int, typer.Option("--attention-checks", min=0, max=5, help="Tasks with a known answer, added to each batch.")
]


@app.command("clicks")
def clicks(
    study: StudyFolder,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="grabcut=DIR, voc=DIR, instances=JSON with images=DIR, any NAME=DIR; repeatable."),
    ] = None,
    at_most: Annotated[int | None, typer.Option(min=1, help="Draw at most this many objects per dataset.")] = None,
    min_area: Annotated[int, typer.Option(min=0, help="Leave out objects of fewer pixels.")] = 0,
    split: Annotated[str | None, typer.Option(help="Which list of a VOC devkit, if it has several.")] = None,
    scenes: Scenes = 24,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="text, cut-out, shifted, silhouette or highlighted; repeatable; cut-out if omitted."),
    ] = None,
    descriptions: Annotated[
        Path | None, typer.Option(help="For the text mode: a csv file with full_stem and description.")
    ] = None,
    title: Title = "Click on the object",
    target_clicks: Annotated[int, typer.Option(min=1, help="Valid clicks wanted per task, mode and device.")] = 25,
    devices: Annotated[str, typer.Option(help="pc, mobile, or both with a comma.")] = "pc,mobile",
    batch_size: BatchSize = 10,
    most_batches: MostBatches = 20,
    radius: Annotated[float, typer.Option(min=0, help="Pixels beside the mask within which a click is valid.")] = 5.0,
    image_seconds: Annotated[float, typer.Option(min=0, max=60, help="How long the image is shown first.")] = 1.5,
    target_seconds: Annotated[float, typer.Option(min=0, max=60, help="How long the target is shown.")] = 2.0,
    text_seconds: Annotated[float, typer.Option(min=0, max=60, help="How long a text target is shown.")] = 2.5,
    again_seconds: Annotated[
        float, typer.Option(min=0, max=60, help="How long the image is shown again before clicks count.")
    ] = 1.5,
    training: Training = 3,
    language: Languages = None,
    consent: Consent = None,
    instructions: Instructions = None,
    contact: Contact = "",
    open_link: OpenLink = False,
    platform: PlatformName = None,
    completion_url: CompletionUrl = "",
    frame_origin: FrameOrigins = None,
    pay: Pay = "",
    minutes: Minutes = None,
    attention_checks: AttentionChecks = 0,
    round_: Annotated[int, typer.Option("--round", min=1, max=2, help="1: objects; 2: errors of predictions.")] = 1,
    masks: Annotated[
        list[Path] | None,
        typer.Option(help="Round 2: finished `hardlook run rclicks` folders, or a folder of masks; repeatable."),
    ] = None,
    limit: Annotated[float, typer.Option(min=0, max=1, help="Round 2: correct masks with an IoU up to this.")] = 0.95,
    errors: Annotated[
        Literal["largest", "both"], typer.Option(help="Round 2: the largest error, or both fn and fp.")
    ] = "largest",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out and count objects that cannot be read.")
    ] = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Make a study of clicks: one timed click on each object that is shown.

    Without --data the objects are those of the planted world. An interrupted command can be run again. All other
    settings are in the study's study.json, which may be edited before it is served.

    Examples:
      hardlook collect init clicks study --data grabcut=GrabCut --mode cut-out --mode text --descriptions words.csv

      hardlook collect init clicks study --data instances=mine.json --data images=photos --at-most 200 --min-area 900

      hardlook collect init clicks study --data grabcut=GrabCut --round 2 --masks runs/sam --masks runs/ritm
    """
    from hardlook.collect.study.clicks import ClickStudyPlan, describe_study, make_planned_study, summarise_study
    from hardlook.harness.runs.progress import open_progress

    settings = read_settings(
        "clicks",
        language,
        consent,
        instructions,
        title=title,
        modes=tuple(mode or ("cut-out",)),
        timings={"image": image_seconds, "target": target_seconds, "target_text": text_seconds, "again": again_seconds},
        batch_size=batch_size,
        click_radius=radius,
        target_answers=target_clicks,
        devices=tuple(part.strip() for part in devices.split(",")),
        most_batches=most_batches,
        training_tasks=training,
        open_link=open_link,
        platform=platform or "",
        completion_url=completion_url,
        frame_origins=tuple(frame_origin or ()),
        pay=pay,
        minutes=minutes,
        attention_checks=attention_checks,
        contact=contact,
    )
    plan = ClickStudyPlan(
        data=arguments.parse_paths(data, "--data"),
        at_most=at_most,
        min_area=min_area,
        split=split,
        scenes=scenes,
        seed=seed,
        descriptions=descriptions,
        skip_broken=skip_broken,
        round=round_,
        masks=tuple(masks or ()),
        limit=limit,
        errors=errors,
    )
    with open_progress(quiet) as progress:
        document = summarise_study(make_planned_study(study, plan, settings, progress))
    _print(document, lambda document: describe_study(document, planted=not data), as_json)


@app.command("review")
def review(
    study: StudyFolder,
    data: Annotated[
        list[str] | None,
        typer.Option(help="candidates=DIR with [split/]concept/context/image, or a manifest.", show_default=False),
    ] = None,
    at_most: Annotated[int | None, typer.Option(min=1, help="Draw at most this many candidates.")] = None,
    scenes: Scenes = 24,
    title: Title = "Does the image show it?",
    reviewers: Annotated[int, typer.Option(min=1, help="People who review each candidate; all must accept it.")] = 2,
    batch_size: BatchSize = 10,
    most_batches: MostBatches = 20,
    training: Training = 3,
    language: Languages = None,
    consent: Consent = None,
    instructions: Instructions = None,
    contact: Contact = "",
    open_link: OpenLink = False,
    platform: PlatformName = None,
    completion_url: CompletionUrl = "",
    frame_origin: FrameOrigins = None,
    pay: Pay = "",
    minutes: Minutes = None,
    attention_checks: AttentionChecks = 0,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Make a review: people say for each image whether it shows its concept in its context.

    Two people review each candidate, and it is kept when both accept, as MetaCoCo's images were selected. Without
    --data the candidates are scenes of the planted world, of which every fourth is wrongly described.

    Examples:
      hardlook collect init review study --data candidates=FOLDER

      hardlook collect init review study --data candidates=found/manifest.csv --reviewers 3 --at-most 500
    """
    from hardlook.collect.study.reviews import CANDIDATES, describe_study, make_review_study, summarise_study
    from hardlook.harness.runs.progress import open_progress

    settings = read_settings(
        "review",
        language,
        consent,
        instructions,
        title=title,
        devices=(ANY_DEVICE,),
        target_answers=reviewers,
        batch_size=batch_size,
        most_batches=most_batches,
        training_tasks=training,
        open_link=open_link,
        platform=platform or "",
        completion_url=completion_url,
        frame_origins=tuple(frame_origin or ()),
        pay=pay,
        minutes=minutes,
        attention_checks=attention_checks,
        contact=contact,
    )
    paths = arguments.parse_paths(data, "--data", alone=CANDIDATES)
    if set(paths) - {CANDIDATES}:
        what = f"--data {', '.join(sorted(paths))}: a review takes candidates only"
        raise OptionError(what, remedy="--data candidates=DIR")
    with open_progress(quiet) as progress:
        made = make_review_study(
            study, paths.get(CANDIDATES), settings, at_most=at_most, scenes=scenes, seed=seed, progress=progress
        )
    _print(summarise_study(made), describe_study, as_json)


@app.command("ratings")
def ratings(
    study: StudyFolder,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="A name from `hardlook labels list`, or a file; default voc20, none with --run."),
    ] = None,
    measures: Annotated[
        str, typer.Option(help="Names from `hardlook similarity measures`, with commas.")
    ] = "path,wup,lin,lesk",
    source: Annotated[
        list[str] | None, typer.Option(help="MEASURE=PATH of vectors or a model folder; repeatable.")
    ] = None,
    variant: Annotated[str, typer.Option(help="Senses of a shipped set: corrected or published.")] = "corrected",
    unknown: Annotated[
        str, typer.Option("--unknown", help="What labels that a measure lacks get: hypernym, zero, error or random.")
    ] = "hypernym",
    pairs: Annotated[int, typer.Option("--pairs", min=0, help="Pairs of labels, the same for all measures.")] = 40,
    run: Annotated[
        Path | None, typer.Option(help="Folder of a finished `hardlook run open-miou`, for pictures.")
    ] = None,
    pictures: Annotated[int, typer.Option("--pictures", min=0, help="Pictures from --run.")] = 20,
    question: Annotated[
        Literal["fit", "likeness"],
        typer.Option("--question", help="fit: does the shown value fit? likeness: how alike, no value shown?"),
    ] = "fit",
    raters: Annotated[int, typer.Option("--raters", min=1, help="Ratings wanted per shown value.")] = 10,
    batch_size: BatchSize = 10,
    most_batches: MostBatches = 20,
    title: Title = "How alike?",
    language: Languages = None,
    consent: Consent = None,
    instructions: Instructions = None,
    contact: Contact = "",
    open_link: OpenLink = False,
    platform: PlatformName = None,
    completion_url: CompletionUrl = "",
    frame_origin: FrameOrigins = None,
    pay: Pay = "",
    minutes: Minutes = None,
    attention_checks: AttentionChecks = 0,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
) -> None:
    """Make a study of similarity ratings: people judge how well similarity measures fit pairs of labels.

    Pairs and pictures are sampled so that the values of every measure are spread. With --question fit each participant
    sees a pair under one measure only, so N measures need N times as many people as --raters.

    Examples:
      hardlook collect init ratings study

      hardlook collect init ratings study --labels coco80 --measures path,wup --pairs 60 --raters 12

      hardlook collect init ratings study --run runs/open --pictures 30 --question likeness
    """
    from hardlook.collect.study.ratings import RatingPlan, describe_study, make_rating_study, summarise_study

    plan = RatingPlan(
        labels=labels,
        variant=variant,
        measures=tuple(word.strip() for word in measures.split(",") if word.strip()),
        sources=arguments.parse_paths(source, "--source"),
        unknown=cast("UnknownPolicy", unknown),
        pairs=pairs,
        run=run,
        pictures=pictures,
        seed=seed,
    )
    settings = read_settings(
        "ratings",
        language,
        consent,
        instructions,
        title=title,
        devices=(ANY_DEVICE,),
        question=question,
        target_answers=raters,
        batch_size=batch_size,
        most_batches=most_batches,
        training_tasks=2,
        open_link=open_link,
        platform=platform or "",
        completion_url=completion_url,
        frame_origins=tuple(frame_origin or ()),
        pay=pay,
        minutes=minutes,
        attention_checks=attention_checks,
        contact=contact,
    )
    _print(summarise_study(make_rating_study(study, plan, settings)), describe_study, as_json)


def read_settings(
    kind: str, language: list[str] | None, consent: list[str] | None, instructions: list[str] | None, **values: Any
) -> StudySettings:
    """The settings of a study from options; an invalid value is an `OptionError` that names its option.

    >>> read_settings("clicks", None, None, None, title="Cups", modes=("cut-out",)).languages
    ('en', 'de')
    """
    languages = tuple(language or ("en", "de"))
    try:
        consents = read_texts(consent, "--consent", languages)
        shown = read_texts(instructions, "--instructions", languages)
        _check_languages(languages, consents)
        read = {"kind": kind, "languages": languages, "consent": consents, "instructions": shown}
        return StudySettings.model_validate({**read, **values})
    except ValidationError as error:
        options = {"modes": "--mode", "devices": "--devices", "languages": "--language", "title": "--title"}
        options |= {"completion_url": "--completion-url", "frame_origins": "--frame-origin"}
        what = describe_validation_error(error)
        field = next(iter(error.errors()[0]["loc"]), what.partition(":")[0])
        raise OptionError(what, remedy=f"change {options.get(str(field), 'this option')}") from error


def _check_languages(languages: Sequence[str], consents: Mapping[str, str]) -> None:
    """Raise an error for a language that neither the pages nor a text of consent are in."""
    from hardlook.collect.web.pages import list_languages

    for language in languages:
        if language not in (*list_languages(), *consents):
            raise OptionError(
                f"--language {language}: the pages do not have it, and there is no text of consent in it",
                remedy=f"choose of {', '.join(list_languages())}, with --language before each; or write that text: "
                f"--consent {language}=FILE",
            )


def read_texts(given: list[str] | None, flag: str, languages: Sequence[str]) -> dict[str, str]:
    """Texts by language from `FILE`, which is in the first of the languages, or `LANGUAGE=FILE`.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "consent.txt"
    >>> _ = path.write_text("I agree.")
    >>> read_texts([str(path)], "--consent", ("en", "de"))
    {'en': 'I agree.'}
    """
    texts = {}
    for language, path in arguments.parse_paths(given, flag, alone=languages[0]).items():
        if language not in languages:
            known = ", ".join(languages)
            raise OptionError(f"{flag} {language}: no language of this study", remedy=f"it has {known}; add --language")
        try:
            texts[language] = read_bytes(path).decode("utf-8-sig").strip()
        except UnicodeDecodeError as error:
            raise DataError("not a text in UTF-8", file=path, remedy="store it as UTF-8") from error
    return texts


def _print(document: dict[str, Any], describe: Callable[[dict[str, Any]], str], as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        typer.echo(describe(document))
