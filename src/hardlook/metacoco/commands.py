"""`hardlook data`: commands that inspect, measure and make datasets of concepts in contexts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli import arguments
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_output
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.progress import open_progress
from hardlook.metacoco.contexts.text_cosines import CONCEPT_PROMPT, CONTEXT_PROMPT
from hardlook.models.preprocessing import PREPROCESSINGS
from hardlook.report.json_values import dump_json

app = App(
    no_args_is_help=True,
    help=(
        "Datasets of concepts in contexts: what they hold, and which few-shot tasks they allow.\n\n"
        "Examples:\n\n"
        "  hardlook data inspect --data DIR --out inspection\n\n"
        "  hardlook data spuriousness --data DIR --encoder efficientnet-lite0 --out spuriousness\n\n"
        "  hardlook data plant-contexts --data CLASS_FOLDERS --contexts snow,dusk --out planted\n\n"
        "  hardlook data contexts-from-voc --data VOCdevkit --out voc-contexts"
    ),
)

_Data = Annotated[Path, typer.Option("--data", help="A folder (split/)concept/context/image, or a manifest.")]


@app.command("inspect")
def inspect(
    data: _Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for inspection.html, inspection.json and splits.csv.")],
    split_rule: Annotated[
        str | None, typer.Option("--split-rule", help="size (as in the paper), seed, or a CSV file concept,split.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of --split-rule seed.")] = 0,
    modes: Annotated[str, typer.Option("--modes", help="Kinds of tasks.")] = "blind,iid,ood,swapped,shared",
    ways: Annotated[str, typer.Option("--ways", help="Classes per task.")] = "5,10",
    shots: Annotated[str, typer.Option("--shots", help="Supports per class.")] = "5",
    queries: Annotated[int, typer.Option("--queries", min=1, help="Queries per class.")] = 15,
    against: Annotated[
        str | None, typer.Option("--against", help="published: compare with the counts that the paper prints.")
    ] = None,
    decode: Annotated[
        bool, typer.Option("--decode", help="Decode all images: find corrupt ones and near-duplicates, with pictures.")
    ] = False,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """List classes, contexts, duplicates by content, concepts in two splits, and which classes can form tasks.

    Examples:
      hardlook data inspect --data pacs --split-rule size --shots 1,5 --decode --out inspection

      hardlook data inspect --data MetaCoCo --against published --out inspection
    """
    from hardlook.data.concept_context import open_dataset
    from hardlook.metacoco.contexts.inspection import TaskKinds, inspect_dataset, parse_numbers, write_inspection

    if against not in (None, "published"):
        raise OptionError(f"--against {against}: there are only the published counts", remedy="--against published")
    names = tuple(dict.fromkeys(word.strip() for word in modes.split(",")))
    kinds = TaskKinds(names, parse_numbers(ways, "--ways"), parse_numbers(shots, "--shots"), queries)
    dataset = open_dataset(data, rule=split_rule, seed=seed)
    with open_progress(quiet) as start:
        found = inspect_dataset(dataset, kinds, against_published=bool(against), decode=decode, progress=start)
    document = write_inspection(found, out)
    words = [*document["in_words"], "", f"page: {out / 'inspection.html'}"]
    print_output(dump_json(document) if as_json else "\n".join(words))


@app.command("spuriousness")
def spuriousness(
    data: _Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for spuriousness.html and spuriousness.json.")],
    split: Annotated[str | None, typer.Option("--split", help="One split only, such as train.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="An encoder whose features are probed for concept and context.")
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
    concept_prompt: Annotated[str, typer.Option("--concept-prompt", help="The text for a concept.")] = CONCEPT_PROMPT,
    context_prompt: Annotated[str, typer.Option("--context-prompt", help="The text for a context.")] = CONTEXT_PROMPT,
    preprocessing: Annotated[
        str,
        typer.Option("--preprocessing", help="encoder: images as they are; paper: resized to 96, cropped to 84."),
    ] = "encoder",
    offline: arguments.Offline = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Measure how well context predicts the concept: by labels, by frozen features, by an image-text encoder.

    Examples:
      hardlook data spuriousness --data pacs --encoder efficientnet-lite0 --out spuriousness

      hardlook data spuriousness --data pacs --image-text clip --model-arg path=FOLDER --out spuriousness
    """
    from hardlook.data.concept_context import list_images
    from hardlook.metacoco.contexts.spuriousness import measure_spuriousness, write_spuriousness
    from hardlook.threads import pin_threads

    if preprocessing not in PREPROCESSINGS:
        raise OptionError(f"--preprocessing {preprocessing}", remedy=f"one of {', '.join(PREPROCESSINGS)}")
    rows = list_images(data, split=split)
    probed = arguments.build_named_model(encoder, "encoder", encoder_arg, "--encoder-arg") if encoder else None
    paired = (
        arguments.build_named_model(image_text, "image-text-encoder", model_arg, "--model-arg") if image_text else None
    )
    # After the models have loaded their libraries; one thread also gives sums one order.
    pin_threads(1)
    try:
        with open_progress(quiet) as start:
            found = measure_spuriousness(
                rows,
                seed=seed,
                encoder=probed,
                image_text=paired,
                concept_prompt=concept_prompt,
                context_prompt=context_prompt,
                preprocessing=preprocessing,
                progress=start,
            )
    except DataError as error:
        raise error.at(file=data) from None
    given = {
        "data": str(data),
        "split": split,
        "encoder": probed.facts() if probed else None,
        "image_text": paired.facts() if paired else None,
        "prompts": {"concept": concept_prompt, "context": context_prompt} if paired else None,
        "seed": seed,
        **({"preprocessing": preprocessing} if preprocessing != "encoder" else {}),
    }
    document = write_spuriousness(found, out, given)
    words = [*document["in_words"], f"page: {out / 'spuriousness.html'}"]
    print_output(dump_json(document) if as_json else "\n\n".join(words))


@app.command("plant-contexts")
def plant(
    data: Annotated[Path, typer.Option("--data", help="A folder with one folder of images per class.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for split/concept/context/image; resumes.")],
    contexts: Annotated[
        str, typer.Option("--contexts", help="Names, with commas; also plain, and with --masks grass and water.")
    ] = "snow,dusk,fog,autumn,sketch,grey,blur",
    correlation: Annotated[
        float, typer.Option("--correlation", min=0, max=1, help="Share of a training concept in its favourite context.")
    ] = 0.8,
    strength: Annotated[
        float, typer.Option("--strength", min=0, max=1, help="0 leaves images as they are, 1 is the full effect.")
    ] = 1.0,
    masks: Annotated[
        Path | None, typer.Option("--masks", help="Masks of the objects, class/stem.png, white on black.")
    ] = None,
    split_by: Annotated[
        str, typer.Option("--split-by", help="concept: splits share no concept; image: train and test share all.")
    ] = "concept",
    fewest: Annotated[int, typer.Option("--fewest", min=1, help="Leave out classes with fewer images.")] = 1,
    image_format: Annotated[str, typer.Option("--image-format", help="jpg (quality 95) or png.")] = "jpg",
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Put every image of a class-folder dataset into a context, with a chosen correlation of context and concept.

    In training a share --correlation of each concept's images is in its favourite context, the rest is even; test and
    validation are even. The same seed gives the same bytes; a stopped command resumes when it is given again.

    Examples:
      hardlook data plant-contexts --data caltech101 --contexts snow,dusk,fog --correlation .8 --out planted

      hardlook data plant-contexts --data photos --masks masks --contexts grass,water --out planted
    """
    from hardlook.metacoco.contexts.planting import PlantingOptions, build_document, describe_planting, plant_contexts

    options = PlantingOptions(
        contexts=tuple(name.strip() for name in contexts.split(",") if name.strip()),
        correlation=correlation,
        strength=strength,
        split_by=split_by,  # type: ignore[arg-type]  # PlantingOptions checks it and names the two
        fewest=fewest,
        image_format=image_format,
        seed=seed,
    )
    with open_progress(quiet) as start:
        made = plant_contexts(data, out, options, masks=masks, progress=start)
    document = build_document(made, out)
    print_output(dump_json(document) if as_json else describe_planting(document))


@app.command("contexts-from-voc")
def contexts_from_voc(
    data: Annotated[Path, typer.Option("--data", help="A VOC devkit with class masks.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for concept/context/image and manifest.csv.")],
    split: Annotated[str | None, typer.Option("--split", help="One list of the devkit (default: all).")] = None,
    smallest: Annotated[
        float, typer.Option("--smallest", min=0, max=1, help="Ignore classes below this share of the image.")
    ] = 0.0,
    files: Annotated[str, typer.Option("--files", help="copy, or link (symbolic links to the devkit).")] = "copy",
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Make a concept x context dataset of VOC: the largest class is the concept, the second largest the context.

    Example:
      hardlook data contexts-from-voc --data VOCdevkit --smallest .01 --files link --out voc-contexts
    """
    from hardlook.metacoco.contexts.voc_contexts import list_cooccurrences, write_cooccurrences

    if files not in ("copy", "link"):
        raise OptionError(f"--files {files}", remedy="copy or link")
    with open_progress(quiet) as start:
        rows, of_no_class = list_cooccurrences(data, split=split, smallest=smallest, progress=start)
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
    lines = [
        f"{len(rows)} images of {document['concepts']} concepts in {document['contexts']} contexts, {written} new",
        *(f"  {a} with {b}: {n}" if b != "alone" else f"  {a} alone: {n}" for (a, b), n in pairs.most_common(8)),
    ]
    if of_no_class:
        lines.append(f"left out: {len(of_no_class)} images without a class")
    print_output(dump_json(document) if as_json else "\n".join([*lines, f"folder: {out}"]))
