"""`hardlook collect serve STUDY`: the pages of a study, for participants and for researchers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.commands.collect.stored_study import Database


def serve(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study folder, made by hardlook collect init.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; anything but this machine's own is open to others.")
    ] = "127.0.0.1",
    database: Database = "",
    public_url: Annotated[
        str, typer.Option("--public-url", help="The https address that participants type, where a proxy has it.")
    ] = "",
    trusted_proxy: Annotated[
        str, typer.Option("--trusted-proxy", help="That proxy's own address; only it is believed on who asks.")
    ] = "",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the participants' page in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the addresses as JSON.")] = False,
) -> None:
    r"""Serve a study to its participants, and a dashboard to its researchers.

    It needs the extra `web`: pip install "hardlook\[web]". Answers go to a SQLite file in the study folder, or to the
    database that is named. Several servers may share one database.

    [bold]Examples[/bold]

      hardlook collect serve study --open

      hardlook collect serve study --port 8080 --public-url https://study.example.org --trusted-proxy 127.0.0.1

      hardlook collect serve study --database postgresql://me@localhost/clicks
    """
    import json

    from hardlook.extras import require

    for module in ("starlette", "uvicorn", "sqlalchemy"):
        require(module, extra="web")

    from hardlook.collect.store.store import Store
    from hardlook.collect.study.complete import refuse_incomplete
    from hardlook.collect.study.folder import open_study
    from hardlook.collect.web.app import make_app
    from hardlook.collect.web.gate import HOME, research_key
    from hardlook.collect.web.public_address import PublicAddress
    from hardlook.serving.hosts import LOOPBACK
    from hardlook.serving.listening import address_of, listen
    from hardlook.serving.listening import serve as serve_app

    opened, public = open_study(study), PublicAddress(host, public_url, trusted_proxy)
    refuse_incomplete(opened)
    key = research_key(opened.secret)
    with Store.open(database or opened.database) as store:
        store.prepare(opened.items, opened.settings.devices, opened.fingerprint)
        app = make_app(opened, store, host=host, public_url=public_url, trusted_proxy=trusted_proxy, research_key=key)
        listening = listen(host, port)
        local = address_of(host, listening)
        address = f"{public.origin}/" if public.url else local
        research = f"{address.rstrip('/')}{HOME}/key/{key}"
        if host not in LOOPBACK and not public.secure:
            typer.echo(
                f"warning: {host} can be reached from other machines, and nothing on the way is encrypted: whoever "
                "listens there can read answers and cookies; put a proxy with https before it and give --public-url",
                err=True,
            )
        if public.url and not trusted_proxy:
            typer.echo(
                "warning: without --trusted-proxy all who come through the proxy count as one address, and share its "
                "limits",
                err=True,
            )
        if as_json:
            typer.echo(json.dumps({"address": address, "researchers": research, "listening": local}))
        else:
            alone = "" if opened.settings.open_link else f"  (by invitation: hardlook collect invite {study})"
            typer.echo(f"participants  {address}{alone}\nresearchers   {research}\n(Ctrl-C ends it)")
        serve_app(app, listening, address if open_browser else "")
