"""`hardlook collect rehearse STUDY`: simulated people take part, before real ones do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.commands import study_flags


def rehearse(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder; nothing is written into it.")],
    participants: Annotated[int, typer.Option("--participants", min=1, max=1000, help="People, all at once.")] = 20,
    batches: Annotated[
        int | None, typer.Option("--batches", min=1, help="Batches of each; as many as there are without it.")
    ] = None,
    clicks: Annotated[str, typer.Option("--clicks", help="The click model that they click by.")] = "distance",
    careless: Annotated[
        float, typer.Option("--careless", min=0, max=1, help="Share of clicks that go anywhere in the image.")
    ] = 0.05,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Show everything as long as the study says; else it takes no time.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for an export of what they did, as `collect export` writes it.")
    ] = None,
    database: Annotated[
        str | None, typer.Option("--database", help="An empty database to try; a file that is deleted without it.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Other people for another number.")] = 0,
    as_json: study_flags.Json = False,
) -> None:
    """Rehearse a study: simulated people go through the real server, and every answer is accounted for.

    It shows whether the study works, how quickly the server stores answers, and what an export will look like.

    [bold]Examples[/bold]

      hardlook collect rehearse study

      hardlook collect rehearse study --participants 200 --batches 2 --out rehearsed
    """
    from hardlook.extras import require

    require("sqlalchemy", extra="web")
    require("httpx", extra="web")
    from rich.console import Console
    from rich.progress import Progress

    from hardlook.collect.rehearsal.rehearse import rehearse as try_out
    from hardlook.collect.results.export import export_study
    from hardlook.collect.store.store import Store
    from hardlook.collect.study.complete import refuse_incomplete
    from hardlook.collect.study.folder import open_study
    from hardlook.export.plain_values import json_text

    opened = open_study(study)
    refuse_incomplete(opened)
    with tempfile.TemporaryDirectory() as folder:
        address = database or f"sqlite:///{Path(folder) / 'rehearsal.sqlite'}"
        with Store.open(address) as store, Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("answers", total=None)
            found = try_out(
                opened,
                store,
                participants=participants,
                batches=batches,
                real_time=real_time,
                clicks=clicks,
                careless=careless,
                seed=seed,
                heard=lambda number: progress.update(bar, completed=number, description=f"{number:,} answers"),
            )
            if out is not None:
                export_study(found.study, store, out)
    document = {"schema": "hardlook.rehearsal/1", "study": str(study), **found.as_dict()}
    typer.echo(json_text(document) if as_json else in_words(document, out))
    if not found.account.clean:
        raise typer.Exit(1)


def in_words(document: dict[str, Any], out: Path | None) -> str:
    """What happened, in a few lines."""
    wrong = ("lost", "changed", "doubled", "twice", "beyond", "miscounted")
    lines = [
        f"{document['participants']:,} simulated people gave {document['acknowledged']:,} answers in "
        f"{document['seconds']:.1f} s ({document['answers_a_second']:.0f} a second); "
        f"{document['finished']:,} were told that they are done",
    ]
    if document["storing_ms"]:
        storing = document["storing_ms"]
        lines.append(f"an answer was stored within {storing['median']:.0f} ms (median), {storing['p99']:.0f} ms (99 %)")
    found = ", ".join(f"{name} {document[name]}" for name in wrong)
    lines.append(f"{document['stored']:,} answers are stored: {found}")
    if out is not None:
        lines.append(f"export: {out} (simulated people: nothing to publish)")
    return "\n".join(lines)
