"""`hardlook export pairs`: the images and masks of every pair, for models that do not run in Python."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.cli.arguments import build_flags, collect_options
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_json
from hardlook.cli.run import RAW_ARGUMENTS
from hardlook.errors import OptionError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.options import fields_that_change, parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.progress import make_progress
from hardlook.harness.runs.rerun_command import build_rerun_command
from hardlook.toss.commands.inputs import exit_after_failures
from hardlook.toss.pair_export import export_pairs as write_pairs

__all__ = ["RAW_ARGUMENTS", "export_pairs"]

BENCHMARKS = ("toss", "bias-support", "bias-saliency")

# Options that change neither images nor masks.
_UNUSED = {"keep_predictions"}
_UNUSED_IN_TOSS = {"saliency", "saliency_args", "encoder", "encoder_args"}


def export_pairs(context: typer.Context) -> None:
    """Write the images and masks of every one-shot pair, for models that do not run in Python."""
    words = list(context.args)
    name = words.pop(0) if words and not words[0].startswith("-") else BENCHMARKS[0]
    if name not in BENCHMARKS:
        remedy = f"one of {', '.join(BENCHMARKS)}; toss if omitted"
        raise OptionError(f"{name}: this is not a benchmark on pairs", remedy=remedy)
    app = App(pretty_exceptions_enable=False)
    app.command()(build_command(find_benchmark(name)))
    app(words, prog_name=context.command_path, standalone_mode=True)


def shared_flags(
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder to write; the same command again completes it.")],
    data: Annotated[list[str] | None, typer.Option("--data", help="NAME=PATH, as for a run; repeatable.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of everything that is drawn.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """The options that all benchmarks share; only its signature is used."""


def build_command(benchmark: Benchmark) -> Any:
    """The function that typer turns into the command for this benchmark."""
    unused = _UNUSED | fields_that_change(benchmark.options, "scores")
    unused |= _UNUSED_IN_TOSS if benchmark.card.name == "toss" else set()

    def command(**values: Any) -> None:
        _export(benchmark, values)

    shared = list(inspect.signature(shared_flags, eval_str=True).parameters.values())
    own = [one for one in build_flags(benchmark.options, f"Options of {benchmark.card.name}") if one.name not in unused]
    typed: Any = command
    typed.__signature__ = inspect.Signature([*shared, *own])
    typed.__annotations__ = {parameter.name: parameter.annotation for parameter in (*shared, *own)}
    command.__doc__ = (
        "Write the images and masks of every one-shot pair, for models that do not run in Python.\n\n"
        "pairs.csv names the files of every unit. Write each answer as a PNG mask, 0 and 255, with the name in the "
        "column `answer`, and score the folder with `hardlook run ... --pred`.\n\n"
        "Examples:\n\n"
        "  hardlook export pairs --data pairs=TOSS --data voc=VOC2012 --folds 0-3 --out pairs\n\n"
        "  hardlook export pairs bias-support --data voc=VOC2012 --out pairs"
    )
    return command


def _export(benchmark: Benchmark, values: dict[str, Any]) -> None:
    given = {**values, "reading": None, "gt": None, "pred": None}
    options = parse_options(benchmark.options, collect_options(benchmark, given), benchmark.card.name)
    out: Path = values["out"]
    written = write_pairs(benchmark, options, out, None if values["quiet"] else make_progress)
    manifest = {
        "benchmark": {"name": benchmark.card.name},
        "options": {**options.model_dump(mode="json"), "pred": "ANSWERS"},
        "model": None,
    }
    command = build_rerun_command(manifest, out="RUN")
    if benchmark.card.name.startswith("bias-"):
        command = command.replace(
            f"hardlook run {benchmark.card.name}", f"hardlook {benchmark.card.name.replace('-', ' ')}"
        )
    if values["as_json"]:
        counts = {"units": written.units, "images": written.images, "masks": written.masks}
        print_json({"out": str(out), **counts, "failed": written.failed, "score_with": command})
    else:
        typer.echo(f"{written.units} units, {written.images} images, {written.masks} masks: {out / 'pairs.csv'}")
        typer.echo(f"\nscore the answers with\n  {command}")
    if written.failed:
        first, why = next(iter(written.failed.items()))
        exit_after_failures(
            f"{len(written.failed)} units could not be read and are not in the table, the first: "
            f"{shlex.quote(first)}: {why}"
        )
