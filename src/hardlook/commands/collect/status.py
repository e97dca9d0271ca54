"""`hardlook collect status`: how far a study is, and whose a completion code is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.commands.collect.stored_study import Database, StudyFolder, stored_study
from hardlook.commands.printing import print_json

WIDTH = 24
_WANTED = {"clicks": "valid clicks", "review": "reviews", "ratings": "ratings"}


def status(
    study: StudyFolder,
    code: Annotated[str, typer.Option("--code", help="A completion code: tells which participant it belongs to.")] = "",
    database: Database = "",
    as_json: study_flags.Json = False,
) -> None:
    """Say how far a study is: answers by device and display mode, people at work, batches still needed.

    [bold]Examples[/bold]

      hardlook collect status study

      hardlook collect status study --code 7K2M9XQ4RTBC
    """
    from hardlook.collect.results.status import study_status, whose_code

    with stored_study(study, database) as (opened, store):
        if code:
            from hardlook.collect.web.codes import completion_code

            found = whose_code(opened, store, code, completion_code)
            lines = code_words(found, opened.settings.kind)
        else:
            found = study_status(opened, store, time.time())
            lines = status_words(found)
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(lines))


def status_words(status: Mapping[str, Any]) -> list[str]:
    """The status for a terminal: bars by device and display mode, then a few sentences."""
    from hardlook.report.numerals import counted

    people, batches, tasks, needed = (status[name] for name in ("participants", "batches", "tasks", "batches_needed"))
    wanted = _WANTED[status["kind"]]
    shown = [("all", status)]
    devices = status["by_device"]
    if len(devices) > 1:
        shown += list(devices.items())
    if len(status["by_mode"]) > 1:
        shown += [
            (f"{mode}, {device}" if len(devices) > 1 else mode, counts)
            for mode, of_mode in status["by_mode"].items()
            for device, counts in of_mode.items()
        ]
    trained = "" if people["trained"] is None else f"{people['trained']} trained, "
    widest = max(len(name) for name, _ in shown)
    by_device = ", ".join(f"{needed[device]} on {device}" for device in devices) if len(devices) > 1 else ""
    return [
        f"{status['title']}: {status['valid']} of {status['wanted']} {wanted}",
        "",
        *(f"{name:<{widest}}  {bar(one['valid'], one['wanted'])}  {_counts(one)}" for name, one in shown),
        "",
        f"{tasks['done']} of {counted(tasks['all'], 'task')} done; {counted(status['answers'], 'answer')} came in.",
        f"{counted(people['joined'], 'participant')}: {trained}{people['at_work']} at work in the "
        f"last quarter of an hour, {people['finished']} finished.",
        f"Batches: {batches['open']} open, {batches['valid']} valid, {batches['dropped']} dropped, "
        f"{batches['given_up']} given up.",
        _needed(needed["all"], by_device),
    ]


def _needed(batches: int, by_device: str) -> str:
    from hardlook.report.numerals import counted

    if not batches:
        return "No more batches are needed."
    words = f"About {counted(batches, 'more batch', 'more batches')} {'is' if batches == 1 else 'are'} needed"
    return f"{words}: {by_device}." if by_device else f"{words}."


def code_words(found: Mapping[str, Any], kind: str) -> list[str]:
    """Whose a code is, for a terminal."""
    from hardlook.report.numerals import counted

    lines = [
        f"The code is that of participant {found['number']} ({found['device'] or 'no device yet'}).",
        f"{counted(found['answers'], 'answer')} in {counted(found['batches'], 'batch', 'batches')}: "
        f"{found['valid_batches']} valid, {found['dropped_batches']} dropped, {found['given_up_batches']} given up, "
        f"{found['open_batches']} open. {'Nothing was left to do.' if found['finished'] else 'There was more to do.'}",
    ]
    if kind == "clicks" and found["inside"] is not None:
        lines.append(f"{100 * found['inside']:.0f} % of the clicks lie inside.")
    return lines


def bar(done: int, wanted: int, width: int = WIDTH) -> str:
    """A bar of characters; it is full only when all is done.

    >>> bar(1, 2, 8), bar(99, 100, 8), bar(1, 100, 8)
    ('━━━━────', '━━━━━━━─', '────────')
    """
    filled = done * width // wanted if wanted else width
    return "━" * filled + "─" * (width - filled)


def _counts(counts: Mapping[str, int]) -> str:
    share = 100 * counts["valid"] // counts["wanted"] if counts["wanted"] else 100
    pending = f", {counts['pending']} under way" if counts["pending"] else ""
    return f"{counts['valid']} of {counts['wanted']} ({share} %){pending}"
