"""The pages of `--help`: plain text that fits 80 columns, with whole option names and types in words.

Every command of hardlook is made by an `App`, so that all help pages are laid out alike. The indented lines below
`Examples:` in a docstring are commands that can be copied.
"""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

Function = TypeVar("Function", bound=Callable[..., Any])

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}

_WIDEST, _NARROWEST, _NAME_COLUMN = 100, 60, 24
_TYPE_WORDS = {"str": "TEXT", "int": "N", "float": "NUMBER", "path": "PATH", "file": "PATH", "directory": "PATH"}


class HelpCommand(TyperCommand):
    """A command whose help is a page of plain text."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page to the formatter."""
        formatter.write(format_page(self, ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the command's name, in the messages of errors as on the page."""
        return list_usage_words(self, ctx)


class HelpGroup(TyperGroup):
    """A group of commands whose help is a page of plain text."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page to the formatter."""
        formatter.write(format_page(self, ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the command's name, in the messages of errors as on the page."""
        return list_usage_words(self, ctx)


class App(typer.Typer):
    """A typer app whose commands have the help pages of this module, under `-h` and `--help`."""

    def __init__(self, **settings: Any) -> None:
        defaults = {"cls": HelpGroup, "add_completion": False, "rich_markup_mode": None, "context_settings": HELP_FLAGS}
        super().__init__(**{**defaults, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a function as a command."""
        return super().command(name, **{"cls": HelpCommand, "context_settings": HELP_FLAGS, **settings})


def find_width() -> int:
    """The characters of a line of a help page: those of the terminal less one, within bounds."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST) - 1)


def format_page(command: TyperCommand | TyperGroup, context: Any, width: int | None = None) -> str:
    """The help page of a command: usage, text, examples, arguments, options by panel, commands of a group."""
    width = width or find_width()
    usage = " ".join(["Usage:", context.command_path, *list_usage_words(command, context)])
    blocks = [_wrap(usage, width, "", "    ")]
    blocks += format_text(inspect.cleandoc(command.help or ""), width)
    for panel, parameters in _panels(command, context).items():
        blocks.append(format_rows(panel, [describe_parameter(one) for one in parameters], width))
    if isinstance(command, TyperGroup):
        named = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
        lines = [(name, one.get_short_help_str(1000)) for name, one in named if one is not None and not one.hidden]
        blocks.append(format_rows("Commands", lines, width))
    return "\n\n".join(block for block in blocks if block) + "\n"


def list_usage_words(command: TyperCommand | TyperGroup, context: Any) -> list[str]:
    """What follows a command's name: options, its arguments, in brackets if not required, and a group's commands."""
    arguments = [one for one in command.get_params(context) if isinstance(one, TyperArgument) and not one.hidden]
    names = [
        name if one.required else f"[{name}]"
        for one, (name, _) in zip(arguments, map(describe_parameter, arguments), strict=True)
    ]
    return ["[OPTIONS]", *names, *(["COMMAND [ARGS]..."] if isinstance(command, TyperGroup) else [])]


def format_text(text: str, width: int) -> list[str]:
    """The paragraphs of a help text: prose wrapped, commands below `Examples:` and `Preset NAME` one per line.

    Long commands are broken with a backslash, so that they can be copied.
    """
    paragraphs: list[str] = []
    examples = False
    for paragraph in text.split("\n\n"):
        heading, _, rest = paragraph.partition("\n")
        if heading in ("Example:", "Examples:") or heading.startswith("Preset "):
            examples = True
            paragraphs.append("\n".join([_wrap(heading, width, "", "    "), *_break_commands(rest, width)]))
        elif examples and paragraph.startswith("  "):
            paragraphs[-1] = "\n".join([paragraphs[-1], *_break_commands(paragraph, width)])
        else:
            examples = False
            paragraphs.append(_wrap(" ".join(paragraph.split()), width, "", ""))
    return paragraphs


def format_rows(heading: str, rows: list[tuple[str, str]], width: int) -> str:
    """A heading with one entry per row; a name that is too long for its column has a line of its own."""
    if not rows:
        return ""
    column = min(_NAME_COLUMN, max(len(name) for name, _ in rows) + 2)
    lines = [heading]
    for name, text in rows:
        indent = " " * (column + 2)
        if len(name) + 2 <= column:
            lines.append(_wrap(text, width, f"  {name:{column}}", indent) or f"  {name}")
        else:
            lines += [f"  {name}", *([_wrap(text, width, indent, indent)] if text else [])]
    return "\n".join(lines)


def describe_parameter(parameter: TyperOption | TyperArgument) -> tuple[str, str]:
    """An option's or argument's names with the kind of its value, and its text with range and default."""
    if isinstance(parameter, TyperArgument):
        name = parameter.metavar or str(parameter.name).upper()
        name += "..." if parameter.nargs != 1 else ""
    else:
        on, off = ", ".join(sorted(parameter.opts, key=len, reverse=True)), ", ".join(parameter.secondary_opts)
        name = f"{on} / {off}" if off else on
        if not parameter.is_flag:
            name += f" {parameter.metavar or _type_word(parameter)}"
    notes = [note for note in (_describe_range(parameter), _describe_default(parameter)) if note]
    text = " ".join((parameter.help or "").split())
    return name, f"{text} ({'; '.join(notes)})" if notes else text


def _panels(command: TyperCommand | TyperGroup, context: Any) -> dict[str, list[Any]]:
    """The parameters by the heading under which they are listed."""
    panels: dict[str, list[Any]] = {}
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False):
            continue
        usual = "Arguments" if isinstance(parameter, TyperArgument) else "Options"
        panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(parameter)
    return panels


def _type_word(parameter: TyperOption) -> str:
    descriptor = parameter.type_descriptor
    if descriptor.choices is not None:
        return "|".join(map(str, descriptor.choices))
    kind = descriptor.path_type if descriptor.is_path else parameter.bare_type()
    inner = re.sub(r"^list\[(.*)\]$", r"\1", str(kind)).lower()
    return _TYPE_WORDS.get(inner, inner.upper())


def _describe_range(parameter: Any) -> str:
    low, high = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}" if high is not None else ""


def _describe_default(parameter: Any) -> str:
    if parameter.required:
        return "" if isinstance(parameter, TyperArgument) else "required"
    default = parameter.default
    if callable(default) or not parameter.show_default:
        return ""
    if isinstance(parameter, TyperOption) and parameter.is_flag:
        return "on by default" if default and parameter.secondary_opts else ""
    if isinstance(default, list | tuple):
        default = ",".join(map(str, default))
    return "" if default is None or default == "" else f"default {default}"


def _break_commands(text: str, width: int) -> list[str]:
    """One command per line of a text; a long one over several lines, each but the last with a backslash."""
    whole = re.sub(r"\s*\n\s*-", " -", text.strip())  # a line that begins with an option continues the command
    # An option and its value stay together.
    joined = [re.sub(r"( -\S+) (?=[^-\s])", "\\1\N{NO-BREAK SPACE}", line.strip()) for line in whole.splitlines()]
    layout: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    lines = [
        textwrap.wrap(line, width - 2, initial_indent="  ", subsequent_indent="      ", **layout) for line in joined
    ]
    return [" \\\n".join(line).replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _wrap(text: str, width: int, first: str, rest: str) -> str:
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
