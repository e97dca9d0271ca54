"""`hardlook run BENCHMARK`: make a run, or go on with one.

Each benchmark has its own flags, made from its options when the command is given; `hardlook run BENCHMARK --help`
lists them.
"""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hardlook.commands import grammar
from hardlook.commands.printing import print_json, print_scores
from hardlook.commands.run.flags import shared_flags

if TYPE_CHECKING:
    from hardlook.contract.benchmark import Benchmark
    from hardlook.runs.execute import Conduct

FINISHED_WITH_FAILURES = 3
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", context_settings=PASSED_ON, help=__doc__)(_run)


def add_study(app: typer.Typer, verb: str, name: str, help_text: str) -> None:
    """Add a study that runs like a benchmark, such as `hardlook bias support`, under its own verb."""

    def study(context: typer.Context) -> None:
        run_named(name, list(context.args), context.command_path)

    app.command(verb, context_settings=PASSED_ON, help=help_text)(study)


def _run(context: typer.Context) -> None:
    from hardlook.benchmarks import benchmark_names, find_benchmark

    words = list(context.args)
    if words == ["--json"]:
        cards = [find_benchmark(name).card for name in sorted(benchmark_names())]
        print_json([{"name": card.name, "summary": card.summary, "role": card.role} for card in cards])
        raise typer.Exit(0)
    if not words or words[0] in ("-h", "--help"):
        lines = [f"  {name:14} {find_benchmark(name).card.summary}" for name in sorted(benchmark_names())]
        typer.echo("Usage: hardlook run BENCHMARK [OPTIONS]\n\nBenchmarks:\n" + "\n".join(lines))
        typer.echo("\nhardlook run BENCHMARK --help lists a benchmark's options.")
        raise typer.Exit(0)
    run_named(words[0], words[1:], f"hardlook run {words[0]}")


def run_named(name: str, words: list[str], path: str) -> None:
    """Run the benchmark of that name with the words that follow it; `path` is what help calls the command."""
    from hardlook.benchmarks import find_benchmark

    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    settings = {"help_option_names": ["-h", "--help"]}
    app.command(context_settings=settings)(command_for(name, find_benchmark(name)))
    app(words, prog_name=path, standalone_mode=True)


def command_for(name: str, benchmark: Benchmark) -> Callable[..., None]:
    """The function that typer turns into this benchmark's command."""
    from hardlook.commands.run.option_fields import flags

    def command(**values: Any) -> None:
        conduct_run(name, benchmark, values)

    shared = list(inspect.signature(shared_flags, eval_str=True).parameters.values())
    parameters = [*shared, *flags(benchmark.options, f"Options of {benchmark.card.name}")]
    typed: Any = command
    typed.__signature__ = inspect.Signature(parameters)
    typed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    card = benchmark.card
    command.__doc__ = f"{card.title}.\n\n{card.summary}\n\n[bold]Example[/bold]\n\n  {card.example}"
    return command


def conduct_run(name: str, benchmark: Benchmark, values: dict[str, Any]) -> None:
    """Launch, print, write the report; of several models one after the other, each in a folder of its name."""
    from hardlook.commands.run.one_unit import answer_units
    from hardlook.commands.run.several_models import arguments_of, model_names

    if values["show"] and not values["unit"]:
        raise typer.BadParameter("--show shows the units that --unit names", param_hint="--show")
    if values["out"] is None and not values["unit"]:
        raise typer.BadParameter("a run needs a folder", param_hint="--out")

    models = model_names(values["model"])
    given = grammar.pairs(values["model_arg"], "--model-arg")
    given.update({key: str(values[key]) for key in ("weights", "device") if values[key] is not None})
    arguments = arguments_of(models or [benchmark.card.default_model], given)
    if values["unit"]:
        failed = answer_units(name, benchmark, values, arguments)
    elif len(models) > 1:
        failed = _several_runs(name, benchmark, values, arguments)
    else:
        values = {**values, "model": models[0] if models else None}
        failed = _one_run(name, benchmark, values, next(iter(arguments.values())))
    if failed:
        raise typer.Exit(FINISHED_WITH_FAILURES)


def _several_runs(
    name: str, benchmark: Benchmark, values: dict[str, Any], arguments: dict[str, dict[str, str]]
) -> bool:
    """One run a model; whether units failed. The overview shows what is scored, also when a run stops."""
    from rich.console import Console

    from hardlook.commands.run.several_models import check_models, read_scorecards, write_overview

    check_models(benchmark.card.role, arguments)
    out: Path = values["out"]
    folders = [out / model for model in arguments]
    failed = False
    try:
        for model, given in arguments.items():
            own = {**values, "model": model, "out": out / model}
            failed = _one_run(name, benchmark, own, given, alone=False) or failed
    finally:
        if page := write_overview(benchmark, folders, out, None if values["as_json"] else Console()):
            typer.echo(f"\nall models: {page}", err=values["as_json"])
    if values["as_json"]:
        cards = {model: json.loads(card.to_json()) for model, card in read_scorecards(folders).items()}
        sys.stdout.write(json.dumps(cards, indent=1) + "\n")
    return failed


def _one_run(
    name: str, benchmark: Benchmark, values: dict[str, Any], model_args: dict[str, str], *, alone: bool = True
) -> bool:
    """One model's run; whether units failed. With `--json` a run that is not alone leaves printing to its caller."""
    from hardlook.commands.reports.reporting import write_report
    from hardlook.commands.run.default_model import progress_that_names_it
    from hardlook.runs.launch import launch

    out: Path = values["out"]
    try:
        done = launch(
            name,
            out=out,
            model=values["model"],
            model_args=model_args,
            given=given_options(benchmark, values),
            conduct=_conduct(values, model_args),
            batch_size=grammar.batch_size(values["batch_size"]),
            threads=values["threads"],
            full_fingerprint=values["full_fingerprint"],
            show_progress=progress_that_names_it(benchmark.card, values),
        )
    except KeyboardInterrupt:
        sys.stderr.write(f"\nstopped; what is answered is kept in {out}. Go on with the same command:\n  ")
        sys.stderr.write(shlex.join(["hardlook", *sys.argv[1:]]) + "\n")
        raise typer.Exit(130) from None
    if done.scored is None:
        waiting = f"{done.progressed.open} units of the run wait for other shards ({out})"
        typer.echo(f"this part is done; {waiting}", err=True)
        if done.progressed.failed:
            typer.echo(f"{done.progressed.failed} units of this part failed", err=True)
        if alone and values["as_json"]:
            print_json(asdict(done.progressed))
        return done.progressed.failed > 0
    write_report(done.scored)
    if alone or not values["as_json"]:
        print_scores(done.scored.scorecard, benchmark, as_json=values["as_json"], full=values["full"])
    if not values["as_json"]:
        typer.echo(f"\nreport: {done.scored.folder.report_path}")
    if done.scored.scorecard.units.failed:
        typer.echo(f"{done.scored.scorecard.units.failed} units failed: {done.scored.folder.failures_path}", err=True)
    return done.scored.scorecard.units.failed > 0


def given_options(benchmark: Benchmark, values: dict[str, Any]) -> dict[str, Any]:
    """The benchmark's options that the flags set."""
    from hardlook.commands.run.option_fields import given_values

    given = given_values(benchmark.options, values)
    given["data"] = grammar.paths(values["data"], "--data", alone="root")
    given["reading"] = grammar.pairs(values["reading"], "--reading")
    given.update({key: values[key] for key in ("gt", "pred", "seed") if values[key] is not None})
    return given


def _conduct(values: dict[str, Any], model_args: dict[str, str]) -> Conduct:
    from hardlook.errors import OptionError
    from hardlook.runs.engines import ENGINES, EngineOptions
    from hardlook.runs.execute import Conduct

    if values["engine"] not in ENGINES:
        raise OptionError(
            f"--engine {values['engine']}: there is no such engine", remedy=f"one of {', '.join(ENGINES)}"
        )
    if values["on_error"] not in ("record", "stop"):
        raise OptionError(f"--on-error {values['on_error']}: expected record or stop")
    on_gpu = str(model_args.get("device", "")).startswith("cuda")
    prefetch = values["prefetch"] if values["prefetch"] is not None else (2 if on_gpu else 0)
    engine = EngineOptions(values["engine"], values["workers"], prefetch, values["address"], values["gpus"])
    shard = grammar.shard(values["shard"])
    return Conduct(engine, values["on_error"], values["max_failures"], shard, values["new"])
