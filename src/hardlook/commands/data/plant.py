"""`hardlook data plant-contexts`: a concept x context dataset from any class folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands.build import inputs
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.contexts.planting import Planted

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
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Show every image of a class-folder dataset in a context, with a dial for how context follows concept.

    In training a share --correlation of each concept's images is in its favourite context, the rest is even; test and
    validation are even. The same seed gives the same bytes; a stopped command goes on when it is called again.

    [bold]Examples[/bold]

      hardlook data plant-contexts --data caltech101 --contexts snow,dusk,fog --correlation .8 --out planted

      hardlook data plant-contexts --data photos --masks masks --contexts grass,water --out planted
    """
    from hardlook.contexts.planting import Planting, plant_contexts

    planting = Planting(
        contexts=tuple(name.strip() for name in contexts.split(",") if name.strip()),
        correlation=correlation,
        strength=strength,
        split_by=split_by,  # type: ignore[arg-type]  # Planting checks it and names the two
        fewest=fewest,
        image_format=image_format,
        seed=seed,
    )
    with inputs.showing_progress(quiet) as start:
        made = plant_contexts(data, out, planting, masks=masks, progress=start)
    document = planted_document(made, out)
    typer.echo(json_text(document) if as_json else planted_in_words(document))


def planted_document(made: Planted, out: Path) -> dict[str, Any]:
    """What lies in the folder now."""
    splits: dict[str, dict[str, int]] = {}
    for split in sorted({one.split for one in made.rows}):
        rows = [one for one in made.rows if one.split == split]
        splits[split] = {
            "images": len(rows),
            "concepts": len({one.concept for one in rows}),
            "pairs": len({(one.concept, one.context) for one in rows}),
        }
    return {
        "schema": "hardlook.planted-contexts/1",
        "folder": str(out),
        "images": made.images,
        "written": made.written,
        "contexts": list(made.planting.contexts),
        "correlation": made.planting.correlation,
        "splits": splits,
        "small_concepts": list(made.small_concepts),
        "images_without_mask": made.without_mask,
    }


def planted_in_words(document: dict[str, Any]) -> str:
    """The same for people."""
    lines = [
        f"{document['images']} images in {len(document['contexts'])} contexts, {document['written']} of them new",
        *(
            f"  {name}: {one['images']} images of {one['concepts']} concepts, {one['pairs']} pairs with a context"
            for name, one in document["splits"].items()
        ),
    ]
    if small := document["small_concepts"]:
        lines.append(f"left out: {len(small)} concepts with too few images ({', '.join(small[:5])})")
    if document["images_without_mask"]:
        lines.append(f"left out: {document['images_without_mask']} images without a mask")
    return "\n".join([*lines, f"folder: {document['folder']}"])
