"""`hardlook collect invite STUDY`: links, each for one participant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def invite(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study folder, made by hardlook collect init.")],
    count: Annotated[int, typer.Option("--count", min=1, max=100_000, help="How many links.")] = 20,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="For how many days one can join by them.")] = 30,
    base_url: Annotated[
        str, typer.Option("--base-url", help="The address that participants type.")
    ] = "http://127.0.0.1:8000",
    as_json: Annotated[bool, typer.Option("--json", help="Print the links as JSON.")] = False,
) -> None:
    """Make links that let one participant in each, one a line.

    A link opened twice is the same participant. Nothing is stored before somebody joins. Set `open_link` to false in
    the study's study.json, so that nobody joins without a link.

    [bold]Examples[/bold]

      hardlook collect invite study --count 50 --base-url https://study.example.org

      hardlook collect invite study --days 7 > links.txt
    """
    import json
    import time

    from hardlook.collect.study.folder import open_study
    from hardlook.collect.web.invitations import invitation_links
    from hardlook.collect.web.public_address import PublicAddress

    secret, now = open_study(study).secret, time.time()
    links = invitation_links(secret, PublicAddress(url=base_url).origin, count=count, expires=now + days * 86_400)
    typer.echo(json.dumps({"days": days, "links": links}) if as_json else "\n".join(links))
