"""`hardlook models` lists models by role; `hardlook check ROLE MODEL` checks whether a model keeps its contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hardlook.api.listing import check as check_model
from hardlook.cli.arguments import OFFLINE_HELP, parse_pairs
from hardlook.cli.printing import print_json
from hardlook.models.families import PREFIXES
from hardlook.models.listing import list_trainable
from hardlook.models.listing import models as find_models
from hardlook.models.registry import MARKS, ModelCard
from hardlook.models.roles import ROLES


def models(
    pattern: Annotated[str, typer.Argument(help="Names to list, with * and ?.")] = "*",
    role: Annotated[str | None, typer.Option("--role", help="Only models of this role.")] = None,
    family: Annotated[
        str | None, typer.Option("--family", help="Names of a library's models.", metavar="|".join(PREFIXES))
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List models with role, marks, licence and what to install.

    Examples:
      hardlook models

      hardlook models "planted-*" --role semantic-segmenter

      hardlook models --family timm "resnet50*"
    """
    cards = find_models(pattern, role=role, family=family)
    trainable = [] if family is not None else [card for card in list_trainable(pattern) if role in (None, *card.roles)]
    known = {card.name for card in cards}
    if as_json:
        print_json([asdict(card) for card in [*cards, *(one for one in trainable if one.name not in known)]])
        return
    if family is not None:
        _print_names(cards, pattern)
        return

    console = Console()
    width = max((len(card.name) for card in [*cards, *trainable]), default=0)
    headings = {
        heading: [card for card in cards if heading in (card.roles or ("any role",))]
        for heading in (*ROLES, "any role")
    }
    for kind in ("few-shot-learner", "one-shot-segmenter", "promptable-segmenter"):
        headings[f"{kind}, to train: hardlook train NAME"] = [card for card in trainable if kind in card.roles]
    for heading, listed in headings.items():
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
        table.add_column(min_width=width, no_wrap=True)
        table.add_column(overflow="fold")
        for card in listed:
            needed = [f'pip install "hardlook[{card.extra}]"'] if card.extra else []
            needed += [f"hardlook weights install {name}" for name in card.weights]
            terms = [", ".join(card.marks)] if card.marks else []
            terms += [card.licence or "licence not stated", *needed]
            text = f"cannot be used: {card.problem}" if card.problem else card.summary
            table.add_row(escape(card.name), f"{escape(text)} [dim]({escape('; '.join(terms))})[/dim]")
        if listed:
            console.print(f"[bold]{heading}[/bold]")
            console.print(table)
    if marks := [mark for mark in MARKS if any(mark in card.marks for card in [*cards, *trainable])]:
        console.print("[dim]marks: " + escape("; ".join(f"{mark}: {MARKS[mark]}" for mark in marks)) + "[/dim]")
    if not cards and not trainable:
        typer.echo(f"no model matches {pattern!r}")
    typer.echo(f"models of other libraries: {', '.join(PREFIXES)} (hardlook models --family {next(iter(PREFIXES))})")


def _print_names(cards: Sequence[ModelCard], pattern: str) -> None:
    """Print a family's names, with their roles where these differ."""
    width = max((len(card.name) for card in cards), default=0)
    same = len({card.roles for card in cards}) < 2
    for card in cards:
        what = f"cannot be used: {card.problem}" if card.problem else "" if same else ", ".join(card.roles)
        typer.echo(f"{card.name:{width}}  {what}".rstrip())
    if not cards:
        typer.echo(f"no model matches {pattern!r}")


def check(
    role: Annotated[str, typer.Argument(help="A role, such as semantic-segmenter.")],
    model: Annotated[str, typer.Argument(help="Name, entry point or package.module:attribute.")],
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for the model; repeatable.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help=OFFLINE_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Try a model: shapes, ranges, determinism, batch against one by one, inputs left alone, devices.

    Exit 1 when something is wrong, with what was expected, what was returned, and where.

    Example:
      hardlook check semantic-segmenter my_package.models:MySegmenter
    """
    result = check_model(model, role, model_args=parse_pairs(model_arg, "--model-arg"), offline=offline)
    if as_json:
        print_json([asdict(finding) for finding in result])
    else:
        for finding in result:
            typer.echo(f"{'ok   ' if finding.passed else 'WRONG'} {finding.check}: {finding.message}")
        typer.echo(f"\n{model}: {len(result) - len(result.wrong)} of {len(result)} checks pass")
    if not result.passed:
        raise typer.Exit(1)
