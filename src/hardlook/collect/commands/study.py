"""`hardlook collect`: rehearse, serve, invite to, watch and export a study; `hardlook collect init` makes one."""

from __future__ import annotations

import json
import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from hardlook.cli import arguments
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_json, print_output
from hardlook.collect.commands import init
from hardlook.errors import OptionError
from hardlook.extras import require

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store
    from hardlook.collect.study.folder import Study
    from hardlook.metrics.click_sets import WassersteinReading

app = App(
    no_args_is_help=True,
    help=(
        "Clicks, reviews and ratings from people: make a study, serve its pages, export the answers.\n\n"
        "Examples:\n\n"
        "  hardlook collect init clicks study --data grabcut=GrabCut\n\n"
        "  hardlook collect rehearse study\n\n"
        "  hardlook collect serve study\n\n"
        "  hardlook collect status study\n\n"
        "  hardlook collect export study --out collected"
    ),
)

app.add_typer(init.app, name="init")

StudyFolder = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A study folder, made by hardlook collect init.", show_default=False)
]

Database = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="HARDLOOK_DATABASE",
        help="postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE; answers.sqlite in the study folder if omitted. "
        "Set HARDLOOK_DATABASE in the environment to keep the password off the command line.",
    ),
]


@app.command("rehearse")
def rehearse(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder; nothing is written into it.")],
    participants: Annotated[int, typer.Option(min=1, max=1000, help="Simulated people, all at once.")] = 20,
    batches: Annotated[
        int | None, typer.Option(min=1, help="Batches per participant; all there are if omitted.")
    ] = None,
    clicks: Annotated[str, typer.Option("--clicks", help="The click model that draws their clicks.")] = "distance",
    careless: Annotated[
        float, typer.Option(min=0, max=1, help="Share of clicks that go anywhere in the image.")
    ] = 0.05,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Show each phase for its full time; otherwise for no time.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for an export of their answers, as `collect export` writes it.")
    ] = None,
    database: Annotated[str | None, typer.Option(help="An empty database to use; a temporary file if omitted.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulated answers.")] = 0,
    as_json: arguments.Json = False,
) -> None:
    """Rehearse a study: simulated people use the real server, and every answer is checked.

    It shows whether the study works, how quickly the server stores answers, and what an export will look like.

    Examples:
      hardlook collect rehearse study

      hardlook collect rehearse study --participants 200 --batches 2 --out rehearsed
    """
    require("sqlalchemy", extra="web")
    require("httpx", extra="web")
    from rich.console import Console
    from rich.progress import Progress

    from hardlook.collect.rehearsal.rehearse import describe_rehearsal
    from hardlook.collect.rehearsal.rehearse import rehearse as run_rehearsal
    from hardlook.collect.results.export import export_study
    from hardlook.collect.store.store import Store
    from hardlook.collect.study.folder import check_complete, open_study

    opened = open_study(study)
    check_complete(opened)
    with tempfile.TemporaryDirectory() as folder:
        address = database or f"sqlite:///{Path(folder) / 'rehearsal.sqlite'}"
        with Store.open(address) as store, Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("answers", total=None)
            rehearsal = run_rehearsal(
                opened,
                store,
                participants=participants,
                batches=batches,
                real_time=real_time,
                clicks=clicks,
                careless=careless,
                seed=seed,
                on_answers=lambda number: progress.update(bar, completed=number, description=f"{number:,} answers"),
            )
            if out is not None:
                export_study(rehearsal.study, store, out)
    document = {"schema": "hardlook.rehearsal/1", "study": str(study), **rehearsal.as_dict()}
    if as_json:
        print_json(document)
    else:
        typer.echo(describe_rehearsal(document))
        if out is not None:
            typer.echo(f"export: {out} (simulated people: nothing to publish)")
    if not rehearsal.audit.clean:
        raise typer.Exit(1)


@app.command("serve")
def serve(
    study: StudyFolder,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; anything but this machine's own is open to others.")
    ] = "127.0.0.1",
    database: Database = "",
    public_url: Annotated[
        str, typer.Option("--public-url", help="The https address that participants type, if a proxy serves it.")
    ] = "",
    trusted_proxy: Annotated[
        str, typer.Option("--trusted-proxy", help="That proxy's own address; only its forwarding headers are trusted.")
    ] = "",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the participants' page in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the addresses as JSON.")] = False,
) -> None:
    """Serve a study to its participants, and a dashboard to its researchers.

    It needs the extra `web`: pip install "hardlook[web]". Answers go to a SQLite file in the study folder, or to the
    database that is named. Several servers may share one database.

    Examples:
      hardlook collect serve study --open

      hardlook collect serve study --port 8080 --public-url https://study.example.org --trusted-proxy 127.0.0.1

      hardlook collect serve study --database postgresql://me@localhost/clicks
    """
    for module in ("starlette", "uvicorn", "sqlalchemy"):
        require(module, extra="web")

    from hardlook.collect.study.folder import check_complete
    from hardlook.collect.web.app import make_app
    from hardlook.collect.web.guard import PublicAddress
    from hardlook.collect.web.sessions import RESEARCH_HOME, derive_research_key
    from hardlook.serving import LOOPBACK, listen, server_url
    from hardlook.serving import serve as serve_app

    public = PublicAddress(host, public_url, trusted_proxy)
    with _open_stored_study(study, database) as (opened, store):
        check_complete(opened)
        key = derive_research_key(opened.secret)
        app = make_app(opened, store, public, research_key=key)
        listening = listen(host, port)
        local = server_url(host, listening)
        address = f"{public.origin}/" if public.url else local
        research = f"{address.rstrip('/')}{RESEARCH_HOME}/key/{key}"
        if host not in LOOPBACK and not public.secure:
            warning = (
                f"warning: {host} can be reached from other machines, and the connection is not encrypted: answers "
                "and cookies can be read on the way; put a proxy with https before it and pass --public-url"
            )
            typer.echo(warning, err=True)
        if public.url and not trusted_proxy:
            warning = "all who come through the proxy count as one address and share its limits"
            typer.echo(f"warning: without --trusted-proxy {warning}", err=True)
        if as_json:
            print_output(json.dumps({"address": address, "researchers": research, "listening": local}))
        else:
            invite = shlex.join(["hardlook", "collect", "invite", str(study), "--base-url", address.rstrip("/")])
            alone = "" if opened.settings.open_link else f"  (by invitation: {invite})"
            if (ids := opened.settings.id_parameters) and not opened.settings.open_link:
                alone = f"?{ids[0]}=...  (the platform fills in the id; others by {invite})"
            typer.echo(f"participants  {address}{alone}\nresearchers   {research}\n(Ctrl-C to stop)")
        serve_app(app, listening, address if open_browser else "")


@app.command("invite")
def invite(
    study: StudyFolder,
    count: Annotated[int, typer.Option("--count", min=1, max=100_000, help="How many links.")] = 20,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Days until the links expire.")] = 30,
    base_url: Annotated[str, typer.Option(help="The address that participants type.")] = "http://127.0.0.1:8000",
    as_json: Annotated[bool, typer.Option("--json", help="Print the links as JSON.")] = False,
) -> None:
    """Make invitation links, one per line, each for one participant.

    A link opened twice is the same participant. Nothing is stored before a person joins. Only people with a link can
    join, unless the study has an open link or a platform.

    Examples:
      hardlook collect invite study --count 50 --base-url https://study.example.org

      hardlook collect invite study --days 7 > links.txt
    """
    from hardlook.collect.study.folder import open_study
    from hardlook.collect.web.guard import PublicAddress
    from hardlook.collect.web.tokens import make_invitation_links

    secret, now = open_study(study).secret, time.time()
    links = make_invitation_links(secret, PublicAddress(url=base_url).origin, count=count, expires=now + days * 86_400)
    print_output(json.dumps({"days": days, "links": links}) if as_json else "\n".join(links))


@app.command("status")
def status(
    study: StudyFolder,
    code: Annotated[str, typer.Option("--code", help="A completion code: print which participant it belongs to.")] = "",
    database: Database = "",
    as_json: arguments.Json = False,
) -> None:
    """Print the progress of a study: answers by device and display mode, active people, batches still needed.

    Examples:
      hardlook collect status study

      hardlook collect status study --code 7K2M9XQ4RTBC
    """
    from hardlook.collect.results import status as progress

    with _open_stored_study(study, database) as (opened, store):
        if code:
            found = progress.find_participant_by_code(opened, store, code)
            lines = progress.describe_participant(found, opened.settings.kind)
        else:
            found = progress.build_status(opened, store, time.time())
            lines = progress.describe_status(found)
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(lines))


@app.command("backup")
def backup(
    study: StudyFolder,
    out: Annotated[
        Path | None, typer.Option("--out", help="The new folder; STUDY-backup-DATE beside the study if omitted.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Whether images, masks and targets are copied too.")
    ] = True,
    database: Database = "",
    as_json: arguments.Json = False,
) -> None:
    """Copy a study with its answers of this moment, also while it is served; the copy can be served in its place.

    The answers are copied to a SQLite file, from PostgreSQL too. The copy holds the study's secret: keep it private.

    Examples:
      hardlook collect backup study

      hardlook collect backup study --out backups/monday --no-pictures
    """
    require("sqlalchemy", extra="web")
    from hardlook.collect.results.study_backup import back_up_study
    from hardlook.report.formatting import format_count

    out = out or study.resolve().with_name(f"{study.resolve().name}-backup-{time.strftime('%Y%m%d-%H%M%S')}")
    with _open_stored_study(study, database) as (opened, store):
        answers = back_up_study(opened, store, out, pictures=pictures)
    if as_json:
        print_json({"folder": str(out), "answers": answers})
    else:
        typer.echo(f"{format_count(answers, 'answer')}: {out}")


@app.command("delete")
def delete(
    study: StudyFolder,
    number: Annotated[str, typer.Option("--number", help="Their number in the dashboard and in exported files.")] = "",
    code: Annotated[str, typer.Option("--code", help="Their completion code.")] = "",
    id: Annotated[str, typer.Option("--id", help="The reference on their page about what is stored.")] = "",
    link: Annotated[str, typer.Option("--link", help="The invitation link that they joined by.")] = "",
    platform_id: Annotated[str, typer.Option("--platform-id", help="Their id on Prolific, MTurk or SONA.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: Database = "",
    as_json: arguments.Json = False,
) -> None:
    """Delete all that is stored about a participant, on their request; their tasks go to others.

    Give one of the options that identify them. Exported files and backups that were made before still have them.

    Examples:
      hardlook collect delete study --code 7K2M9XQ4RTBC

      hardlook collect delete study --number 17 --yes
    """
    from hardlook.collect.results.status import Identifier, describe_participant, find_participant

    given: dict[Identifier, str] = {"number": number, "code": code, "id": id, "link": link, "platform-id": platform_id}
    chosen = [(by, value) for by, value in given.items() if value]
    if len(chosen) != 1:
        names = ", ".join(f"--{by}" for by in given)
        what = "several options name the participant" if chosen else "no option names the participant"
        raise OptionError(what, remedy=f"give one of {names}")
    with _open_stored_study(study, database) as (opened, store):
        found = find_participant(opened, store, *chosen[0])
        lines = describe_participant(found, opened.settings.kind)[1:]
        typer.echo("\n".join([f"Participant {found['number']}:", *lines]), err=as_json)
        if not yes and not typer.confirm("Delete all that is stored about them?", err=as_json):
            raise typer.Exit(1)
        deleted = store.delete_participant(found["participant"])
    if as_json:
        print_json({"deleted": deleted})
    else:
        typer.echo(f"Participant {deleted} is deleted.")


@app.command("payments")
def payments(
    study: StudyFolder,
    out: Annotated[
        Path | None, typer.Option("--out", help="The csv file to write; payments.csv in the study folder if omitted.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="JSON of exclusion rules, in place of those set on the dashboard.")
    ] = None,
    database: Database = "",
    as_json: arguments.Json = False,
) -> None:
    """Write one row per participant with platform ids, completion code, duration and validity, to pay by.

    It links people's ids to the numbers in the export, so keep it to yourself.

    Examples:
      hardlook collect payments study

      hardlook collect payments study --out to-pay.csv --rules rules.json
    """
    require("sqlalchemy", extra="web")
    from hardlook.collect.results.exclusion_rules import read_rules
    from hardlook.collect.results.payments import build_payments, describe_payments
    from hardlook.harness.runs.folder import write_atomically

    out = out or study / "payments.csv"
    chosen = read_rules(rules) if rules else None
    with _open_stored_study(study, database) as (opened, store):
        opened.refuse_own_file(out)
        table = build_payments(opened, store, chosen)
    write_atomically(out, table.write_csv())
    if as_json:
        print_json({"schema": "hardlook.payments/1", "out": str(out), "participants": table.to_dicts()})
    else:
        typer.echo(f"{describe_payments(table)}: {out}")


@app.command("export")
def export(
    study: StudyFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the files, report.json and page.html; STUDY/export if omitted."),
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="Only clicks of this display mode in clicks.csv; all if omitted.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="JSON of exclusion rules, in place of those set on the dashboard.")
    ] = None,
    all_clicks: Annotated[
        bool, typer.Option("--all-clicks", help="Invalid clicks too, of participants that no rule excludes.")
    ] = False,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="wd=released|paper; repeatable.", show_default=False)
    ] = None,
    database: Database = "",
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Write the collected answers: clicks.csv in RClicks' columns, reviews or ratings, and a quality report.

    Validity is computed from the masks. Rules are least_inside, least_reaction_ms, most_early_share, most_late_ms,
    most_dropped_batches, most_quick_batches, most_failed_checks, most_pointer_conflicts, least_answers and
    participants; an empty object excludes no participant.

    Examples:
      hardlook collect export study

      hardlook collect export study --out collected --mode cut-out --rules rules.json

      hardlook collect export study --out collected --database postgresql://someone@localhost/study
    """
    from hardlook.collect.results.exclusion_rules import read_rules
    from hardlook.collect.results.export import export_study
    from hardlook.harness.runs.progress import open_progress
    from hardlook.rclicks.user_clicks.readings import EVALUATION, choose_readings

    out = out or study / "export"
    chosen = read_rules(rules) if rules else None
    readings = choose_readings(arguments.parse_pairs(reading, "--reading"), {"wd": EVALUATION["wd"]})
    with _open_stored_study(study, database) as (opened, store), open_progress(quiet) as start:
        # Only clicks are validated task by task; all else is too quick for a progress bar.
        tasks = sum(not task.training for task in opened.tasks) if opened.settings.kind == "clicks" else 0
        advance = start(tasks, 0)
        report = export_study(
            opened,
            store,
            out,
            chosen,
            mode=mode,
            all_clicks=all_clicks,
            wd=cast("WassersteinReading", readings["wd"]),
            advance=lambda done: advance(done, 0),
        )
    if as_json:
        print_json({**report, "out": str(out)})
    else:
        typer.echo("\n\n".join([*report["in_words"], f"page: {out / 'page.html'}"]))


@contextmanager
def _open_stored_study(folder: Path, database: str = "") -> Iterator[tuple[Study, Store]]:
    """The study of a folder and its answers; a database of another study is a `DataError`."""
    require("sqlalchemy", extra="web")
    from hardlook.collect.store.store import Store
    from hardlook.collect.study.folder import open_study

    study = open_study(folder)
    with Store.open(database or study.database) as store:
        # Also if the study was never served: there are no answers then, which is no error.
        store.prepare(study.stored_items, study.settings.devices, study.fingerprint)
        yield study, store
