"""What the commands of TOSS have in common: parsing paths, building models, and ending after failures."""

from __future__ import annotations

from pathlib import Path

import typer

from hardlook.cli import arguments
from hardlook.errors import OptionError
from hardlook.models.named_model import NamedModel

FINISHED_WITH_FAILURES = 3


def parse_paths(data: list[str] | None, images: Path | None = None, masks: Path | None = None) -> dict[str, Path]:
    """The named paths; `--images` and `--masks` are short for the `--data` of these names."""
    paths = arguments.parse_paths(data, "--data")
    for name, path in (("images", images), ("masks", masks)):
        if path is not None and name in paths:
            raise OptionError(f"--{name} and --data {name}= are both given", remedy="give one of them")
        if path is not None:
            paths[name] = path
    return paths


def build_model(name: str | None, role: str, args: list[str] | None, flag: str) -> NamedModel | None:
    """The model for a role with the arguments of `flag`, or None without a name."""
    return arguments.build_named_model(name, role, args, flag) if name else None


def exit_after_failures(message: str) -> None:
    """Print what failed and exit with code 3; an empty message means that nothing did."""
    if message:
        typer.echo(message, err=True)
        raise typer.Exit(FINISHED_WITH_FAILURES)
