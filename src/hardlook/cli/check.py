"""`hardlook check ROLE MODEL`: does a model keep its role's contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hardlook.cli import grammar
from hardlook.cli.printing import print_json


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("check")(check)


def check(
    role: Annotated[str, typer.Argument(help="A role, such as semantic-segmenter.")],
    model: Annotated[str, typer.Argument(help="Name, entry point or package.module:attribute.")],
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for the model; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Try a model: shapes, ranges, determinism, batch against one by one, inputs left alone, devices.

    Exit 1 when something is wrong, with what was expected, what came, and where.

    [bold]Example[/bold]

      hardlook check semantic-segmenter my_package.models:MySegmenter
    """
    from hardlook.errors import OptionError
    from hardlook.models.conformance import check_named
    from hardlook.models.roles import ROLES

    if role not in ROLES:
        raise OptionError(f"{role}: there is no such role", remedy=f"one of {', '.join(ROLES)}")
    args = grammar.pairs(model_arg, "--model-arg")
    findings = check_named(model, role, args)
    wrong = [finding for finding in findings if not finding.passed]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{'ok   ' if finding.passed else 'WRONG'} {finding.check}: {finding.message}")
        typer.echo(f"\n{model}: {len(findings) - len(wrong)} of {len(findings)} checks pass")
    if wrong:
        raise typer.Exit(1)
