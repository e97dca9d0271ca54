"""A benchmark's options as flags of the command line, made from its pydantic model.

Each field becomes `--its-name` with the field's sentence as help; nothing is said twice.
"""

from __future__ import annotations

import inspect
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from hardlook.contract.options import BenchmarkOptions

SHARED = set(BenchmarkOptions.model_fields)


def own_fields(options: type[BenchmarkOptions]) -> dict[str, FieldInfo]:
    """The fields that a benchmark adds to those of all benchmarks."""
    return {name: field for name, field in options.model_fields.items() if name not in SHARED}


def flags(options: type[BenchmarkOptions], panel: str) -> list[inspect.Parameter]:
    """One keyword parameter a field, None by default, for typer to read."""
    return [_parameter(name, field, panel) for name, field in own_fields(options).items()]


def given_values(options: type[BenchmarkOptions], values: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given."""
    return {name: values[name] for name in own_fields(options) if values.get(name) is not None}


def _parameter(name: str, field: FieldInfo, panel: str) -> inspect.Parameter:
    inner = _inner(field.annotation)
    kind: Any = inner if inner in (bool, int, float, str, Path) else str
    choices = f" One of {', '.join(map(str, get_args(inner)))}." if get_origin(inner) is Literal else ""
    default = "" if field.default is None else f" [dim](default {_shown(field.default)})[/dim]"
    flag = "--" + name.replace("_", "-")
    declaration = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    help_text = f"{field.description}{choices}{default}"
    flag_option = typer.Option(declaration, help=help_text, rich_help_panel=panel, show_default=False)
    annotation: Any = Annotated[(kind | None, flag_option)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _inner(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return rest[0] if len(rest) == 1 else str
    return annotation


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
