"""`hardlook models`: what can be judged, by role."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("models")(models)


def models(
    pattern: Annotated[str, typer.Argument(help="Names to list, with * and ?.")] = "*",
    role: Annotated[str | None, typer.Option("--role", help="Only models of this role.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List models with role, licence and what to install.

    [bold]Examples[/bold]

      hardlook models

      hardlook models "planted-*" --role semantic-segmenter
    """
    from hardlook.errors import OptionError
    from hardlook.models.registry import list_models
    from hardlook.models.roles import ROLES

    if role is not None and role not in ROLES:
        raise OptionError(f"--role {role}: there is no such role", remedy=f"one of {', '.join(ROLES)}")
    cards = list_models(pattern, role)
    if as_json:
        typer.echo(json.dumps([asdict(card) for card in cards], indent=1))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("name", "role", "what it is", "licence", "to install", box=None, header_style="bold", pad_edge=False)
    for card in cards:
        needed = [f'pip install "hardlook[{card.extra}]"'] if card.extra else []
        needed += [f"hardlook weights install {name}" for name in card.weights]
        row = (
            card.name,
            ", ".join(card.roles),
            card.problem or card.summary,
            card.licence,
            "\n".join(needed) or "nothing",
        )
        table.add_row(*map(escape, row))
    Console().print(table)
    if not cards:
        typer.echo(f"no model matches {pattern!r}")
