"""`hardlook clicks evaluate`: click models against the clicks that people made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import grammar, study_flags
from hardlook.errors import DataError, OptionError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.clicks.device_comparison import Comparison
    from hardlook.commands.clicks.clicked_sources import ClickedSource
    from hardlook.commands.clicks.evaluation_study import EvaluationStudy
    from hardlook.commands.clicks.judging import NamedClickModel
    from hardlook.contract.scorecard import LeftOut

UserClicks = Annotated[
    Path | None, typer.Option("--user-clicks", help="A clicks.csv; without it simulated people of the planted world.")
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="The datasets clicked on: grabcut=DIR, tetris=DIR, any NAME=DIR; repeatable."),
]
PreviousMasks = Annotated[
    Path | None, typer.Option("--previous-masks", help="Folder of the masks before later rounds, by full stem.")
]
Split = Annotated[str | None, typer.Option("--split", help="Which list of a VOC devkit, where it has several.")]
Scenes = Annotated[int, typer.Option("--scenes", min=2, help="Scenes of the planted world, without --user-clicks.")]


@dataclass(frozen=True)
class Asked:
    """What is judged: sources, comparisons of display modes, what is left out, and a fingerprint of the data."""

    sources: tuple[ClickedSource, ...]
    modes: Mapping[str, Comparison]
    left_out: tuple[LeftOut, ...]
    fingerprint: str
    planted: bool


def evaluate(
    out: Annotated[Path, typer.Option("--out", help="Folder for page.html, table.csv, per_stem.csv; resumes.")],
    models: Annotated[str, typer.Option("--models", "--model", help="Click models, with commas.")] = "uniform,distance",
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for all, NAME.KEY=VALUE for one; repeatable.")
    ] = None,
    user_clicks: UserClicks = None,
    data: Data = None,
    previous_masks: PreviousMasks = None,
    split: Split = None,
    previews: Annotated[
        Path | None, typer.Option("--previews", help="A previews.csv, whose dataset is a display mode.")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Draws from each map.")] = 100,
    scenes: Scenes = 48,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="wd=released|paper, maps=released|paper; repeatable.")
    ] = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Judge click models by people's clicks: KS, PL1, WD, NSS and PDE, by dataset, click type and device.

    A stopped command goes on when it is given again; a model more costs only that model. Exit 3 when a stem could not
    be read.

    [bold]Examples[/bold]

      hardlook clicks evaluate --models uniform,distance,planted-users --out evaluation

      hardlook clicks evaluate --user-clicks clicks.csv --data grabcut=GrabCut --models distance,saliency --out judged

      hardlook clicks evaluate --user-clicks clicks.csv --data tetris=TETRIS --models clickability
      --model-arg clickability.path=clickability.safetensors --out evaluation
    """
    from hardlook.commands.clicks.readings import EVALUATION, chosen_readings
    from hardlook.commands.clicks.unread_stems import SOME_UNREAD

    readings = chosen_readings(reading, EVALUATION)
    named = named_click_models(models, model_arg)
    asked = gather(
        user_clicks, data, previous_masks, previews, split=split, scenes=scenes, seed=seed, wd=readings["wd"]
    )
    study = study_models(named, asked, out, draws=draws, seed=seed, readings=readings, quiet=quiet)
    given = {
        "user_clicks": str(user_clicks) if user_clicks else None,
        "data": dict(grammar.pairs(data, "--data")),
        "previous_masks": str(previous_masks) if previous_masks else None,
        "split": split,
        "previews": str(previews) if previews else None,
        "scenes": scenes if asked.planted else None,
        "draws": draws,
        "seed": seed,
        "readings": readings,
        "data_fingerprint": asked.fingerprint,
    }
    document = write_evaluation(study, out, given)
    words = "\n\n".join([*document["in_words"], f"page: {out / 'page.html'}"])
    typer.echo(json_text(document) if as_json else words)
    if study.judged.unread:
        raise typer.Exit(SOME_UNREAD)


def named_click_models(models: str, model_arg: list[str] | None) -> dict[str, NamedClickModel]:
    """The click models by name; one that cannot be made is refused before anything is read."""
    from hardlook.commands.clicks.judging import NamedClickModel
    from hardlook.commands.run import several_models
    from hardlook.models.click_models import registered_name
    from hardlook.models.identity import identify
    from hardlook.models.registry import build

    names = several_models.model_names(models)
    arguments = several_models.arguments_of(names, grammar.pairs(model_arg, "--model-arg"))
    several_models.check_models("click-model", {registered_name(name): args for name, args in arguments.items()})
    found = {}
    for name, args in arguments.items():
        registered = registered_name(name)
        model = build(registered, "click-model", args)
        found[name] = NamedClickModel(model, identify(model, name=registered, role="click-model", args=args))
    return found


def refuse_without_clicks(options: Mapping[str, Any]) -> None:
    """An `OptionError` that names those of the options, by flag, that are given though no clicks are."""
    given = [flag for flag, value in options.items() if value]
    if given:
        raise OptionError(
            f"{', '.join(given)} without --user-clicks",
            remedy=f"give the clicks, or leave {'it' if len(given) == 1 else 'them'} out for the planted world",
        )


def gather(
    user_clicks: Path | None,
    data: list[str] | None,
    previous_masks: Path | None,
    previews: Path | None,
    *,
    scenes: int,
    seed: int,
    split: str | None = None,
    wd: Any = "released",
) -> Asked:
    """The stems to judge on, from files or from the planted world."""
    from hardlook.commands.clicks.clicked_sources import planted_sources
    from hardlook.commands.clicks.display_modes import compare_modes
    from hardlook.commands.clicks.joined_clicks import join_clicks, join_previews
    from hardlook.contract.scorecard import LeftOut
    from hardlook.data.click_file import read_clicks
    from hardlook.data.object_instances import list_instances
    from hardlook.data.previous_masks import PreviousMasks as Masks
    from hardlook.fingerprint import of_data, of_value

    if user_clicks is None:
        refuse_without_clicks(
            {"--data": data, "--previous-masks": previous_masks, "--split": split, "--previews": previews}
        )
        return Asked(planted_sources(seed, scenes), {}, (), of_value(["planted", seed, scenes]), planted=True)
    paths = grammar.paths(data, "--data")
    files = {"--user-clicks": user_clicks, "--previous-masks": previous_masks, "--previews": previews, **paths}
    there = {name: path for name, path in files.items() if path is not None}
    for name, path in there.items():
        if not path.exists():
            raise DataError(f"there is no such {'file' if path.suffix else 'folder'} ({name})", file=path)
    table = read_clicks(user_clicks)
    listed = list_instances(paths, split=split)
    masks = Masks(previous_masks) if previous_masks else None
    joined = join_clicks(table, listed.instances, masks, file=user_clicks)
    unlisted = [LeftOut(**asdict(note)) for note in listed.left_out]
    sources, notes, modes = list(joined.sources), [*unlisted, *joined.left_out], {}
    if previews:
        shown = join_previews(read_clicks(previews), listed.instances, file=previews)
        modes = compare_modes(shown.sources, file=previews, reading=wd)
        sources += shown.sources
        notes += shown.left_out
    printed = of_value({name: of_data(path) for name, path in there.items()})
    return Asked(tuple(sources), modes, tuple(notes), printed, planted=False)


def study_models(
    models: Mapping[str, NamedClickModel],
    asked: Asked,
    out: Path,
    *,
    draws: int,
    seed: int,
    readings: Mapping[str, Any],
    quiet: bool,
) -> EvaluationStudy:
    """Judge every model on every stem, with a bar."""
    from hardlook.clicks.evaluation import Readings
    from hardlook.commands.build.inputs import showing_progress
    from hardlook.commands.clicks.answer_file import AnswerFile
    from hardlook.commands.clicks.evaluation_study import EvaluationStudy
    from hardlook.commands.clicks.judging import Judging, judge
    from hardlook.runs.worker import pin_threads

    # After the models have brought their libraries; one thread also gives sums one order.
    pin_threads(1)
    judging = Judging(draws, seed, Readings(**readings), asked.fingerprint)
    with showing_progress(quiet) as start:
        judged = judge(asked.sources, models, judging, AnswerFile(out / "answers.jsonl"), start(len(asked.sources), 0))
    if not all(judged.whole(name) for name in models):
        key, why = judged.unread[0]
        raise DataError(f"no stem could be read; the first: {why}", unit=key, remedy="check --data")
    return EvaluationStudy(models, asked.sources, judging, judged, asked.modes, asked.left_out, asked.planted)


def write_evaluation(study: EvaluationStudy, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write tables, numbers and the page; return the numbers."""
    from hardlook.commands.clicks.evaluation_page import evaluation_sections, in_words
    from hardlook.commands.clicks.evaluation_pictures import evaluation_pictures
    from hardlook.commands.clicks.evaluation_tables import evaluation_document, slice_table, stem_table
    from hardlook.contract.sections import Gallery
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    words = in_words(study)
    document = evaluation_document(study, given, words)
    sections = evaluation_sections(study, words, given["readings"])
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    page = render_study(
        sections,
        title="Click models against people's clicks",
        summary="How well click models say where people click to point at an object or to correct a segmentation.",
        provenance={name: document[name] for name in ("schema", "hardlook", *given, "models")},
        pictures=evaluation_pictures(galleries, study.sources, study.models, study.judging),
    )
    write_whole(out / "table.csv", slice_table(study))
    write_whole(out / "per_stem.csv", stem_table(study))
    write_whole(out / "evaluation.json", json_text(document))
    write_whole(out / "page.html", page)
    return document
