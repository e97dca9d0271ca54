"""Arguments of the command line: parsers of NAME=VALUE pairs, models, shards and batch sizes, and shared flags.

`shared_flags` are those of `hardlook run` for every benchmark; `build_flags` makes one for each field of its options.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from hardlook.errors import OptionError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from hardlook.harness.benchmark import Benchmark
    from hardlook.harness.options import BenchmarkOptions
    from hardlook.models.named_model import NamedModel


def parse_pairs(texts: list[str] | None, flag: str) -> dict[str, str]:
    """NAME=VALUE texts as a dict.

    >>> parse_pairs(["voc=/data/VOC2012"], "--data")
    {'voc': '/data/VOC2012'}
    """
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise OptionError(f"{flag} {text}: expected NAME=VALUE", remedy=f"for example {flag} name=value")
        if name in found:
            raise OptionError(f"{flag} {name} is given twice")
        found[name] = value
    return found


def parse_paths(texts: list[str] | None, flag: str, *, alone: str = "") -> dict[str, Path]:
    """NAME=PATH texts as a dict of paths; with `alone`, a path without a name gets that name.

    >>> parse_paths(["voc=data/VOC2012"], "--data"), parse_paths(["data/pacs"], "--data", alone="root")
    ({'voc': PosixPath('data/VOC2012')}, {'root': PosixPath('data/pacs')})
    """
    unnamed = [text for text in texts or [] if "=" not in text]
    if alone and len(unnamed) > 1:
        example = f"{flag} images={unnamed[0]} {flag} masks={unnamed[1]}"
        remedy = f"name each, such as {example}; docs/datasets.md lists the names"
        raise OptionError(f"{flag} {', '.join(unnamed)}: several paths without a name", remedy=remedy)
    named = [f"{alone}={text}" if alone and "=" not in text else text for text in texts or []]
    return {name: Path(value).expanduser() for name, value in parse_pairs(named, flag).items()}


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """`i/N` as (i, N).

    >>> parse_shard("2/8")
    (2, 8)
    """
    if not text:
        return None
    first, slash, second = text.partition("/")
    if not (slash and first.isdigit() and second.isdigit()):
        raise OptionError(f"--shard {text}: expected i/N", remedy="for example --shard 3/8 for the third of eight")
    return int(first), int(second)


def parse_batch_size(text: str | None) -> int | None:
    """A positive number, or None for `auto`."""
    if text is None or text == "auto":
        return None
    if not text.isdigit() or int(text) < 1:
        raise OptionError(f"--batch-size {text}: expected a whole number from 1, or auto")
    return int(text)


def parse_model_names(text: str | None) -> list[str]:
    """The names in `--model`, separated by commas; none where the flag is not given.

    >>> parse_model_names("ridge, dn4")
    ['ridge', 'dn4']
    """
    names = [word.strip() for word in (text or "").split(",") if word.strip()]
    if text is not None and not names:
        raise OptionError("--model names no model", remedy="`hardlook models` lists them")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise OptionError(
            f"--model names {', '.join(repeated)} more than once",
            remedy="name each model once; for other arguments run it again with another --out",
        )
    return names


Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="voc=DIR, or images=DIR with masks=DIR or binary=DIR; repeatable.", show_default=False),
]

Labels = Annotated[
    Path | None, typer.Option("--labels", help="Class names for images and masks, one per line, class number 1 first.")
]

Split = Annotated[
    str | None, typer.Option("--split", help="A list of the VOC devkit, such as train; all images without it.")
]

ModelArgs = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for that model; repeatable.")]
Run = Annotated[Path | None, typer.Option("--run", help="Folder of a finished `hardlook run toss`.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is drawn.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]

OFFLINE_HELP = "Download no weights; HARDLOOK_OFFLINE=1 does the same."


def _forbid_downloads(context: typer.Context, offline: bool) -> bool:
    """Forbid downloads until the command ends, so that it need not pass the flag on."""
    from hardlook.models.families.downloads import forbid_downloads

    if offline:
        context.with_resource(forbid_downloads())
    return offline


Offline = Annotated[bool, typer.Option("--offline", help=OFFLINE_HELP, callback=_forbid_downloads)]


def build_named_model(name: str, role: str, args: Sequence[str] | None, flag: str) -> NamedModel:
    """Build the model `name` for a role, with the KEY=VALUE arguments of `flag`."""
    from hardlook.models.named_model import build_named

    return build_named(name, role, parse_pairs(list(args or ()), flag))


def build_named_models(
    names: str, role: str, args: Sequence[str] | None, flag: str, *, registered: Callable[[str], str] = str
) -> dict[str, NamedModel]:
    """Build the models `names`, separated by commas, by name; `registered` gives the name in the registry.

    Arguments are KEY=VALUE for all of them or NAME.KEY=VALUE for one. All are checked before the first is built.
    """
    from hardlook.api.several_models import check_models, split_model_arguments
    from hardlook.models.named_model import build_named

    arguments = split_model_arguments(parse_model_names(names), parse_pairs(list(args or ()), flag))
    check_models(role, {registered(name): given for name, given in arguments.items()})
    return {name: build_named(registered(name), role, given) for name, given in arguments.items()}


def _flags(panel: str) -> Callable[..., Any]:
    return lambda name, text, **more: typer.Option(name, help=text, rich_help_panel=panel, **more)


_model_flag, _data_flag, _run_flag = _flags("The model"), _flags("The data"), _flags("The run")
_MODEL_HELP = "Name, entry point or package.module:attribute; several with commas run one after the other."
_MODEL_ARG_HELP = "An argument of the model, NAME.KEY=VALUE for one of several; {fold} is each fold; repeatable."
_OUT_HELP = "Run folder; the same command again resumes it. With --show: the page's path."
_TIMEOUT_HELP = "Seconds after which a unit fails; its worker is replaced. Inline, the model then runs in a child."
_CHECKPOINTS_HELP = "A folder of published checkpoints, in place of --model: each file runs in a folder of its name."
_MEASURE_COST_HELP = "With --checkpoints: measure after each run, once, what its checkpoint costs."
_UNIT_HELP = "Evaluate only this unit and print its record; makes no run; repeatable."


def shared_flags(
    *,
    out: Annotated[Path | None, typer.Option("--out", help=_OUT_HELP)] = None,
    unit: Annotated[list[str] | None, typer.Option("--unit", metavar="ID", help=_UNIT_HELP)] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw the units of --unit on a page.")] = False,
    model: Annotated[
        str | None, _model_flag("--model", _MODEL_HELP, metavar="NAME", autocompletion=complete_models)
    ] = None,
    model_arg: Annotated[list[str] | None, _model_flag("--model-arg", _MODEL_ARG_HELP, metavar="KEY=VALUE")] = None,
    weights: Annotated[Path | None, _model_flag("--weights", "A weights file of your own.")] = None,
    device: Annotated[str | None, _model_flag("--device", "cpu, cuda, cuda:1...", metavar="DEVICE")] = None,
    offline: Annotated[bool, _model_flag("--offline", OFFLINE_HELP)] = False,
    data: Annotated[
        list[str] | None, _data_flag("--data", "A dataset of your own; repeatable.", metavar="NAME=PATH")
    ] = None,
    gt: Annotated[Path | None, _data_flag("--gt", "Ground truth of stored predictions.")] = None,
    pred: Annotated[Path | None, _data_flag("--pred", "Stored predictions, in place of a model.")] = None,
    full_fingerprint: Annotated[
        bool, _data_flag("--full-fingerprint", "Hash all files anew, without the cache.")
    ] = False,
    reading: Annotated[
        list[str] | None,
        _run_flag("--reading", "Which reading, where a paper's text and numbers differ.", metavar="NAME=VALUE"),
    ] = None,
    seed: Annotated[int | None, _run_flag("--seed", "Seed of everything that is drawn.")] = None,
    engine: Annotated[
        str, _run_flag("--engine", "Where units are evaluated.", metavar="inline|processes|ray")
    ] = "inline",
    workers: Annotated[int, _run_flag("--workers", "Processes or Ray actors.", min=1)] = 2,
    address: Annotated[
        str,
        _run_flag("--address", "An existing Ray cluster; RAY_ADDRESS if omitted, else a local one.", metavar="ADDRESS"),
    ] = "",
    gpus: Annotated[float, _run_flag("--gpus", "GPUs that a Ray actor takes.", min=0)] = 0.0,
    prefetch: Annotated[
        int | None, _run_flag("--prefetch", "Inline: processes that read files ahead (2 on a GPU).", min=0)
    ] = None,
    shard: Annotated[
        str | None, _run_flag("--shard", "This process's part of a run shared by N.", metavar="I/N")
    ] = None,
    batch_size: Annotated[str, _run_flag("--batch-size", "Units per batch.", metavar="N|auto")] = "auto",
    threads: Annotated[int, _run_flag("--threads", "Threads of each worker.", min=1)] = 1,
    unit_timeout: Annotated[
        float | None, _run_flag("--unit-timeout", _TIMEOUT_HELP, min=0.001, metavar="SECONDS")
    ] = None,
    on_error: Annotated[
        str, _run_flag("--on-error", "Record a failed unit and continue, or stop.", metavar="record|stop")
    ] = "record",
    max_failures: Annotated[
        float, _run_flag("--max-failures", "Share of failed units above which it stops.", min=0, max=1, metavar="SHARE")
    ] = 0.01,
    new: Annotated[bool, _run_flag("--new", "Set an earlier run in this folder aside and start again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores.json instead of a table.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every score and every slice.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """The options that all benchmarks share; only its signature is used."""


def checkpoint_flags(
    *,
    checkpoints: Annotated[Path | None, _model_flag("--checkpoints", _CHECKPOINTS_HELP, metavar="DIR")] = None,
    measure_cost: Annotated[bool, _model_flag("--measure-cost/--no-measure-cost", _MEASURE_COST_HELP)] = True,
) -> None:
    """The options of benchmarks for interactive segmenters; only its signature is used."""


def build_flags(options: type[BenchmarkOptions], panel: str) -> list[inspect.Parameter]:
    """One keyword parameter per field that the benchmark adds, None by default, for typer to read."""
    return [_parameter(name, field, panel) for name, field in _own_fields(options).items()]


def collect_options(benchmark: Benchmark, values: dict[str, Any]) -> dict[str, Any]:
    """The benchmark's options that the flags set."""
    given = {name: values[name] for name in _own_fields(benchmark.options) if values.get(name) is not None}
    given["data"] = parse_paths(values["data"], "--data", alone="root")
    given["reading"] = parse_pairs(values["reading"], "--reading")
    given.update({key: values[key] for key in ("gt", "pred", "seed") if values[key] is not None})
    return given


def _own_fields(options: type[BenchmarkOptions]) -> dict[str, FieldInfo]:
    from hardlook.harness.options import BenchmarkOptions

    return {name: field for name, field in options.model_fields.items() if name not in BenchmarkOptions.model_fields}


def _parameter(name: str, field: FieldInfo, panel: str) -> inspect.Parameter:
    inner = _inner(field.annotation)
    kind: Any = inner if inner in (bool, int, float, str, Path) else str
    choices = "|".join(map(str, get_args(inner))) if get_origin(inner) is Literal else None
    several = isinstance(field.default, list | tuple)
    shown = ",".join(map(str, field.default)) if several else str(field.default)
    if kind is bool:
        default = " (on by default)" if field.default else ""
    else:
        default = f" (default {shown})" if field.default is not None and shown else ""
    flag = "--" + name.replace("_", "-")
    declaration = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    flag_option = typer.Option(
        declaration,
        help=f"{field.description}{default}",
        metavar=choices,
        rich_help_panel=panel,
        show_default=False,
        autocompletion=_complete_words(get_args(inner)) if choices else None,
    )
    annotation: Any = Annotated[(kind | None, flag_option)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _complete_words(words: tuple[Any, ...]) -> Callable[[str], list[str]]:
    return lambda incomplete: [str(word) for word in words if str(word).startswith(incomplete)]


def complete_models(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the models that the benchmark can run and that begin like this, for shells that complete them."""
    from hardlook.harness.registry import find_benchmark, list_benchmarks
    from hardlook.models.registry import list_models

    benchmark = ctx.command_path.split()[-1]
    role = find_benchmark(benchmark).card.role if benchmark in list_benchmarks() else None
    return sorted(card.name for card in list_models(role=role) if card.name.startswith(incomplete))


def _inner(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return rest[0] if len(rest) == 1 else str
    return annotation
