"""Help pages of every command at 80 columns, and what shells complete."""

import re

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from hardlook.cli.app import COMMANDS, app, load_command
from hardlook.cli.help_pages import App, describe_parameter, format_page, format_rows, format_text
from hardlook.cli.run import _build_app
from hardlook.harness.registry import list_benchmarks


def list_commands():
    """Every command with its words: those of `COMMANDS`, of their groups, and of every benchmark."""
    root = typer.main.get_command(app)
    parent = root.make_context("hardlook", ["models"])
    commands = [(root, parent)]
    for name in COMMANDS:
        commands += list_commands_below(load_command(name), name, parent)
    for benchmark in list_benchmarks():
        command = typer.main.get_command(_build_app(benchmark))
        commands.append((command, command.context_class(command, info_name=f"run {benchmark}", parent=parent)))
    return commands


def list_commands_below(command, name, parent):
    """A command and, of a group, all below it."""
    context = command.context_class(command, info_name=name, parent=parent)
    commands = [(command, context)]
    if isinstance(command, TyperGroup):
        for below in command.list_commands(context):
            commands += list_commands_below(command.get_command(context, below), below, context)
    return commands


COMMANDS_WITH_CONTEXTS = list_commands()


@pytest.mark.parametrize(("command", "context"), COMMANDS_WITH_CONTEXTS, ids=lambda one: getattr(one, "info_name", ""))
def test_a_page_fits_80_columns_and_shows_whole_names_and_no_types_of_python(command, context):
    page = format_page(command, context, 79)
    assert max(map(len, page.splitlines())) <= 80
    for parameter in command.get_params(context):
        for name in (*parameter.opts, *parameter.secondary_opts):
            if name.startswith("-") and not getattr(parameter, "hidden", False):
                assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page), name
    assert not re.search(r"list\[|<\w+>|int range|\[/?(bold|dim)|…|\(default \)|default None|default True", page)
    assert not re.search(r"\\\[", page), "brackets are text here"
    # What an error prints is the page's own first line.
    assert page.startswith(" ".join(context.get_usage().split())[:70])
    assert "Usage: hardlook" in page


@pytest.mark.parametrize(("command", "context"), COMMANDS_WITH_CONTEXTS, ids=lambda one: getattr(one, "info_name", ""))
def test_every_command_prints_its_page(command, context, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command.get_help(context) == format_page(command, context, 79).rstrip()


def page_of(function):
    """The help page of a function as the only command of an app."""
    single = App()
    single.command("paint")(function)
    command = typer.main.get_command(single)
    return format_page(command, command.context_class(command, info_name="paint", **command.context_settings), 60)


def test_a_page_says_kinds_ranges_and_defaults_in_words():
    def paint(
        wall: str = typer.Argument(metavar="WALL", help="The wall."),
        coats: int = typer.Option(2, min=1, help="Coats."),
        share: float = typer.Option(0.5, min=0, max=1, help="Share."),
        name: str = typer.Option("", help="Its name."),
        dry: bool = typer.Option(True, "--dry/--wet", help="Wait between coats."),
        colour: list[str] = typer.Option([], help="Colours; repeatable."),
    ):
        """Paint a wall.

        Examples:
          paint north --colour red --colour green --colour blue --share .25

          paint south
        """

    assert page_of(paint) == (
        "Usage: paint [OPTIONS] WALL\n\n"
        "Paint a wall.\n\n"
        "Examples:\n"
        "  paint north --colour red --colour green --colour blue \\\n"
        "      --share .25\n"
        "  paint south\n\n"
        "Arguments\n"
        "  WALL  The wall.\n\n"
        "Options\n"
        "  --coats N       Coats. (at least 1; default 2)\n"
        "  --share NUMBER  Share. (0 to 1; default 0.5)\n"
        "  --name TEXT     Its name.\n"
        "  --dry / --wet   Wait between coats. (on by default)\n"
        "  --colour TEXT   Colours; repeatable.\n"
        "  --help, -h      Show this message and exit.\n"
    )


def test_a_long_name_has_a_line_of_its_own():
    rows = [("--a-name-longer-than-its-column N", "What it does."), ("--b", "")]
    assert format_rows("Options", rows, 60) == (
        "Options\n  --a-name-longer-than-its-column N\n" + " " * 26 + "What it does.\n  --b"
    )


def test_a_required_option_says_so():
    def paint(out: str = typer.Option(help="Where.", metavar="PATH")):
        """Paint."""

    single = App()
    single.command("paint")(paint)
    [parameter, *_] = typer.main.get_command(single).params
    assert describe_parameter(parameter) == ("--out PATH", "Where. (required)")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hardlook ru", ["run"]),
        ("hardlook run open-", ["open-ap", "open-miou", "open-pq"]),
        ("hardlook run toss --resampl", ["--resamples"]),
        ("hardlook run toss --model planted-", ["planted-one-shot"]),
        ("hardlook run metacoco --model planted-", ["planted-learner"]),
        ("hardlook run closed-miou --interval p", ["percentile"]),
        ("hardlook clicks tr", ["train"]),
        ("hardlook compare --inter", ["--interval"]),
    ],
)
def test_shells_complete(hardlook, monkeypatch, words, expected):
    monkeypatch.setenv("_HARDLOOK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert hardlook().out.split() == expected


def test_the_list_of_benchmarks_and_the_headings_of_presets_fit_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = CliRunner().invoke(app, ["run", "--help"]).output
    assert max(map(len, page.splitlines())) <= 80 and all(f"  {name} " in page for name in list_benchmarks())
    heading = "Preset wide (Table 8, " + "AP50 of masks of base and novel classes, " * 3 + "generalised):"
    [paragraph] = format_text(f"{heading}\n  hardlook run open-ap --preset wide", 79)
    assert max(map(len, paragraph.splitlines())) <= 79 and "\n    " in paragraph
    assert paragraph.endswith("\n  hardlook run open-ap --preset wide")
