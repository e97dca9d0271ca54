"""`hardlook data`: datasets of concepts in contexts, looked at before anything runs on them.

`hardlook data contexts-from-voc`: VOC's images by main object and by the company it keeps.

`hardlook data inspect`: what a concept x context dataset holds, and what can be asked of it.

`hardlook data plant-contexts`: a concept x context dataset from any class folders.

`hardlook data spuriousness`: how far context gives the concept away in a dataset.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hardlook.cli import grammar
from hardlook.cli.printing import print_json
from hardlook.errors import OptionError
from hardlook.harness.runs.progress import open_progress
from hardlook.metacoco.contexts.inspection import TaskSettings, inspect_dataset, parse_numbers, write_inspection
from hardlook.metacoco.contexts.planting import describe_planted, planted_document
from hardlook.metacoco.contexts.spuriousness_report import (
    Findings,
    _means,
    _measure_cosines,
    _probe,
    write_spuriousness,
)
from hardlook.metacoco.contexts.text_cosines import CONCEPT_PROMPT, CONTEXT_PROMPT
from hardlook.report.json_values import dump_json


def contexts_from_voc(
    data: Annotated[Path, typer.Option("--data", help="A VOC devkit with class masks.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for concept/context/image and manifest.csv.")],
    split: Annotated[str | None, typer.Option("--split", help="One list of the devkit; all lists without it.")] = None,
    smallest: Annotated[
        float, typer.Option("--smallest", min=0, max=1, help="Classes below this share of the image do not count.")
    ] = 0.0,
    files: Annotated[str, typer.Option("--files", help="copy, or link (symbolic links to the devkit).")] = "copy",
    as_json: grammar.Json = False,
    quiet: grammar.Quiet = False,
) -> None:
    """Concept: the class with most pixels. Context: the other class with most pixels, or `alone`.

    [bold]Example[/bold]

      hardlook data contexts-from-voc --data VOCdevkit --smallest .01 --files link --out voc-contexts
    """
    from hardlook.metacoco.contexts.voc_contexts import cooccurrence_rows, write_cooccurrences

    if files not in ("copy", "link"):
        raise OptionError(f"--files {files}", remedy="copy or link")
    with open_progress(quiet) as start:
        rows, of_no_class = cooccurrence_rows(data, split=split, smallest=smallest, progress=start)
    written = write_cooccurrences(rows, out, "link" if files == "link" else "copy")
    pairs = Counter((row.concept, row.context) for row in rows)
    document = {
        "schema": "hardlook.contexts-from-voc/1",
        "folder": str(out),
        "images": len(rows),
        "written": written,
        "concepts": len({row.concept for row in rows}),
        "contexts": len({row.context for row in rows}),
        "without_class": list(of_no_class),
        "pairs": [{"concept": a, "context": b, "images": n} for (a, b), n in sorted(pairs.items())],
    }
    if as_json:
        print_json(document)
        return
    lines = [
        f"{len(rows)} images of {document['concepts']} concepts in {document['contexts']} contexts, {written} new",
        *(f"  {a} with {b}: {n}" if b != "alone" else f"  {a} alone: {n}" for (a, b), n in pairs.most_common(8)),
    ]
    if of_no_class:
        lines.append(f"left out: {len(of_no_class)} images without a class")
    typer.echo("\n".join([*lines, f"folder: {out}"]))


if TYPE_CHECKING:
    pass

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
    settings = TaskSettings(asked, parse_numbers(ways, "--ways"), parse_numbers(shots, "--shots"), queries)
    dataset = open_dataset(data, rule=split_rule, seed=seed)
    document = write_inspection(inspect_dataset(dataset, settings, against_published=bool(against)), out)
    if as_json:
        print_json(document)
    else:
        typer.echo("\n".join([*document["in_words"], "", f"page: {out / 'inspection.html'}"]))


if TYPE_CHECKING:
    pass

CONTEXTS = "snow,dusk,fog,autumn,sketch,grey,blur"


def plant(
    data: Annotated[Path, typer.Option("--data", help="A folder with one folder of images a class.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for split/concept/context/image; resumes.")],
    contexts: Annotated[
        str, typer.Option("--contexts", help="Names, with commas; also plain, and with --masks grass and water.")
    ] = CONTEXTS,
    correlation: Annotated[
        float, typer.Option("--correlation", min=0, max=1, help="Share of a training concept in its favourite context.")
    ] = 0.8,
    strength: Annotated[
        float, typer.Option("--strength", min=0, max=1, help="0 leaves images as they are, 1 is the full look.")
    ] = 1.0,
    masks: Annotated[
        Path | None, typer.Option("--masks", help="Masks of the objects, class/stem.png, white on black.")
    ] = None,
    split_by: Annotated[
        str, typer.Option("--split-by", help="concept: splits share no concept; image: train and test share all.")
    ] = "concept",
    fewest: Annotated[int, typer.Option("--fewest", min=1, help="Leave out classes with fewer images.")] = 1,
    image_format: Annotated[str, typer.Option("--image-format", help="jpg (quality 95) or png.")] = "jpg",
    seed: grammar.Seed = 0,
    as_json: grammar.Json = False,
    quiet: grammar.Quiet = False,
) -> None:
    """Show every image of a class-folder dataset in a context, with a dial for how context follows concept.

    In training a share --correlation of each concept's images is in its favourite context, the rest is even; test and
    validation are even. The same seed gives the same bytes; a stopped command goes on when it is called again.

    [bold]Examples[/bold]

      hardlook data plant-contexts --data caltech101 --contexts snow,dusk,fog --correlation .8 --out planted

      hardlook data plant-contexts --data photos --masks masks --contexts grass,water --out planted
    """
    from hardlook.metacoco.contexts.planting import Planting, plant_contexts

    planting = Planting(
        contexts=tuple(name.strip() for name in contexts.split(",") if name.strip()),
        correlation=correlation,
        strength=strength,
        split_by=split_by,  # type: ignore[arg-type]  # Planting checks it and names the two
        fewest=fewest,
        image_format=image_format,
        seed=seed,
    )
    with open_progress(quiet) as start:
        made = plant_contexts(data, out, planting, masks=masks, progress=start)
    document = planted_document(made, out)
    typer.echo(dump_json(document) if as_json else describe_planted(document))


if TYPE_CHECKING:
    pass


def spuriousness(
    data: Annotated[Path, typer.Option("--data", help="A folder [split/]concept/context/image, or a manifest.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for spuriousness.html and spuriousness.json.")],
    split: Annotated[str | None, typer.Option("--split", help="One split only, such as train.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="An encoder whose vectors are probed for concept and context.")
    ] = None,
    encoder_arg: Annotated[
        list[str] | None, typer.Option("--encoder-arg", help="KEY=VALUE for the encoder; repeatable.")
    ] = None,
    image_text: Annotated[
        str | None, typer.Option("--image-text", help="An image-text encoder, such as clip, for M_ce and M_te.")
    ] = None,
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for the image-text encoder; repeatable.")
    ] = None,
    concept_prompt: Annotated[str, typer.Option("--concept-prompt", help="The text of a concept.")] = CONCEPT_PROMPT,
    context_prompt: Annotated[str, typer.Option("--context-prompt", help="The text of a context.")] = CONTEXT_PROMPT,
    seed: grammar.Seed = 0,
    as_json: grammar.Json = False,
    quiet: grammar.Quiet = False,
) -> None:
    """What context says of the concept, by the labels alone, by frozen features, and by an image-text encoder.

    [bold]Examples[/bold]

      hardlook data spuriousness --data pacs --encoder efficientnet-lite0 --out spuriousness

      hardlook data spuriousness --data pacs --image-text clip --model-arg path=FOLDER --out spuriousness
    """
    from hardlook.data.concept_context import list_images
    from hardlook.errors import DataError
    from hardlook.harness.runs.evaluation import pin_threads
    from hardlook.metacoco.contexts.spuriousness import label_study

    rows = list_images(data, split=split)
    concepts, contexts = [row.concept for row in rows], [row.context for row in rows]
    probed = grammar.named_model(encoder, "encoder", encoder_arg, "--encoder-arg") if encoder else None
    paired = grammar.named_model(image_text, "image-text-encoder", model_arg, "--model-arg") if image_text else None
    # After the models have brought their libraries; one thread also gives sums one order.
    pin_threads(1)
    try:
        labels = label_study(concepts, contexts, seed=seed)
    except DataError as error:
        raise error.at(file=data) from None
    with open_progress(quiet) as start:
        read = _probe(probed, rows, start, seed) if probed else ()
        cosines = _measure_cosines(paired, rows, start, concept_prompt, context_prompt) if paired else None
    findings = Findings(labels, read, cosines, _means(cosines, seed))
    given = {
        "data": str(data),
        "split": split,
        "encoder": probed.facts() if probed else None,
        "image_text": paired.facts() if paired else None,
        "prompts": {"concept": concept_prompt, "context": context_prompt} if paired else None,
        "seed": seed,
    }
    document = write_spuriousness(findings, out, given)
    if as_json:
        print_json(document)
    else:
        typer.echo("\n\n".join([*document["in_words"], f"page: {out / 'spuriousness.html'}"]))


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Datasets of concepts in contexts: what is in them, and what can be asked of them.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook data inspect --data DIR --out inspection\n\n"
        "  hardlook data spuriousness --data DIR --encoder efficientnet-lite0 --out spuriousness\n\n"
        "  hardlook data plant-contexts --data CLASS_FOLDERS --contexts snow,dusk --out planted\n\n"
        "  hardlook data contexts-from-voc --data VOCdevkit --out voc-contexts"
    ),
)

app.command("inspect")(inspect)

app.command("spuriousness")(spuriousness)

app.command("plant-contexts")(plant)

app.command("contexts-from-voc")(contexts_from_voc)
