"""The flags of `hardlook run`: those that all benchmarks share, and those made from a benchmark's options.

Each field of a benchmark's pydantic model becomes `--its-name` with the field's description as help.
"""

from __future__ import annotations

import inspect
import types
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from hardlook.cli import arguments
from hardlook.harness.options import BenchmarkOptions

if TYPE_CHECKING:
    from hardlook.harness.benchmark import Benchmark


_MODEL, _DATA, _RUN = "The model", "The data", "The run"


def shared_flags(
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Run folder; the same command again resumes it. With --show: the page's path."),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option("--unit", help="Evaluate only this unit and print its record; makes no run; repeatable."),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw the units of --unit on a page.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Name, entry point or package.module:attribute; several with commas run one after the other.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    model_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--model-arg",
            help="KEY=VALUE for the model, NAME.KEY=VALUE for one of several; repeatable.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", help="A weights file of your own.", rich_help_panel=_MODEL)
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1...", rich_help_panel=_MODEL)] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="NAME=PATH; repeatable.", rich_help_panel=_DATA)
    ] = None,
    gt: Annotated[
        Path | None, typer.Option("--gt", help="Ground truth of stored predictions.", rich_help_panel=_DATA)
    ] = None,
    pred: Annotated[
        Path | None, typer.Option("--pred", help="Stored predictions, in place of a model.", rich_help_panel=_DATA)
    ] = None,
    full_fingerprint: Annotated[
        bool, typer.Option("--full-fingerprint", help="Hash all data, not samples of it.", rich_help_panel=_DATA)
    ] = False,
    reading: Annotated[
        list[str] | None,
        typer.Option("--reading", help="NAME=VALUE, where a paper's text and numbers differ.", rich_help_panel=_RUN),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of everything that is drawn.", rich_help_panel=_RUN)
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="inline, processes or ray.", rich_help_panel=_RUN)] = "inline",
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="Processes or Ray actors.", rich_help_panel=_RUN)
    ] = 2,
    address: Annotated[
        str, typer.Option("--address", help="An existing Ray cluster; none starts a local one.", rich_help_panel=_RUN)
    ] = "",
    gpus: Annotated[
        float, typer.Option("--gpus", min=0, help="GPUs that a Ray actor takes.", rich_help_panel=_RUN)
    ] = 0.0,
    prefetch: Annotated[
        int | None,
        typer.Option(
            "--prefetch", min=0, help="Inline: processes that read files ahead (2 on a GPU).", rich_help_panel=_RUN
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", help="i/N: this process's part of a run shared by N.", rich_help_panel=_RUN),
    ] = None,
    batch_size: Annotated[
        str, typer.Option("--batch-size", help="Units per batch, or auto.", rich_help_panel=_RUN)
    ] = "auto",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of each worker.", rich_help_panel=_RUN)] = 1,
    on_error: Annotated[
        str, typer.Option("--on-error", help="record a failed unit and continue, or stop.", rich_help_panel=_RUN)
    ] = "record",
    max_failures: Annotated[
        float,
        typer.Option(
            "--max-failures", min=0, max=1, help="Share of failed units above which it stops.", rich_help_panel=_RUN
        ),
    ] = 0.01,
    new: Annotated[
        bool,
        typer.Option("--new", help="Set an earlier run in this folder aside and start again.", rich_help_panel=_RUN),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores.json instead of a table.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every score and every slice.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """The options that all benchmarks share; only its signature is used."""


def build_flags(options: type[BenchmarkOptions], panel: str) -> list[inspect.Parameter]:
    """One keyword parameter per field that the benchmark adds, None by default, for typer to read."""
    return [_parameter(name, field, panel) for name, field in _own_fields(options).items()]


def collect_options(benchmark: Benchmark, values: dict[str, Any]) -> dict[str, Any]:
    """The benchmark's options that the flags set."""
    given = {name: values[name] for name in _own_fields(benchmark.options) if values.get(name) is not None}
    given["data"] = arguments.parse_paths(values["data"], "--data", alone="root")
    given["reading"] = arguments.parse_pairs(values["reading"], "--reading")
    given.update({key: values[key] for key in ("gt", "pred", "seed") if values[key] is not None})
    return given


def _own_fields(options: type[BenchmarkOptions]) -> dict[str, FieldInfo]:
    return {name: field for name, field in options.model_fields.items() if name not in BenchmarkOptions.model_fields}


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
