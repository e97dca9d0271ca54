"""The reference of all commands, from their own help."""

import click
import typer

from hardlook.cli.app import COMMANDS, load_command
from hardlook.cli.help_pages import App
from hardlook.cli.run import build_command
from hardlook.harness.registry import BUILT_IN, find_benchmark


def write_command_reference():
    """A page with the help of every command."""
    lines = ["# Commands", "", "Every command with its options, as `--help` prints it.", ""]
    for name in COMMANDS:
        lines += _describe(f"hardlook {name}", load_command(name))
    for name in sorted(BUILT_IN):
        app = App(pretty_exceptions_enable=False)
        app.command()(build_command(name, find_benchmark(name)))
        lines += _describe(f"hardlook run {name}", typer.main.get_command(app))
    return "\n".join(lines) + "\n"


def _describe(path, command):
    """The help of a command and of those below it."""
    inner = getattr(command, "commands", None)
    context = click.Context(command, info_name=path)
    lines = [f"## `{path}`", "", "```text", command.get_help(context).strip(), "```", ""]
    for name, one in sorted((inner or {}).items()):
        lines += _describe(f"{path} {name}", one)
    return lines
