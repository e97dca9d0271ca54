"""The flags that studies and builders share: data, labels, seed, output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="voc=DIR, or images=DIR with masks=DIR or binary=DIR; repeatable.", show_default=False),
]
Labels = Annotated[
    Path | None, typer.Option("--labels", help="Class names for images and masks, one a line, class number 1 first.")
]
Split = Annotated[
    str | None, typer.Option("--split", help="A list of the VOC devkit, such as train; all images without it.")
]
ModelArgs = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for that model; repeatable.")]
Run = Annotated[Path | None, typer.Option("--run", help="Folder of a finished `hardlook run toss`.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is drawn.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
