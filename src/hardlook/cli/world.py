"""`hardlook world make`: the planted world as files, in the layouts that real datasets use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_output
from hardlook.report.json_values import dump_json
from hardlook.world.layouts import make_world

app = App(no_args_is_help=True, help="The planted world: scenes with known truth.")


@app.callback()
def about() -> None:
    """The planted world: scenes with known truth."""


@app.command("make")
def make(
    directory: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    layout: Annotated[str, typer.Option("--layout", help="voc, concept-context, coco-panoptic, isegm or fss.")] = "voc",
    scenes: Annotated[int, typer.Option("--scenes", min=1, help="How many pictures.")] = 96,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the scenes.")] = 0,
    width: Annotated[int, typer.Option("--width", min=64, help="Pixels.")] = 160,
    height: Annotated[int, typer.Option("--height", min=48, help="Pixels.")] = 120,
    correlation: Annotated[
        float,
        typer.Option("--correlation", min=0, max=1, help="Share of scenes moved to their concept's favourite context."),
    ] = 0.0,
    image_format: Annotated[
        str, typer.Option("--image-format", help="png, or jpg (which planted models cannot read).")
    ] = "png",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a world made before.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Write scenes with semantic, instance and panoptic masks, concepts and contexts.

    Examples:
      hardlook world make world-voc --layout voc --scenes 48

      hardlook world make world-coco --layout coco-panoptic --width 320 --height 240
    """
    make_world(
        directory,
        layout=layout,
        scenes=scenes,
        seed=seed,
        width=width,
        height=height,
        correlation=correlation,
        image_format=image_format,
        overwrite=overwrite,
    )
    files = sum(1 for path in directory.rglob("*") if path.is_file())
    facts = {"directory": str(directory), "layout": layout, "scenes": scenes, "files": files}
    summary = f"{scenes} scenes in the layout {layout}: {directory} ({files} files)"
    print_output(dump_json(facts) if as_json else summary)
