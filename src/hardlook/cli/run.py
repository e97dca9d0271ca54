"""`hardlook run BENCHMARK`: start or resume a run, with flags made from the benchmark's options when it is called.

`--unit ID` evaluates a few units instead and prints their records; `--show` also draws them on a page.
"""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hardlook.cli.arguments import (
    checkpoint_flags,
    collect_options,
    parse_batch_size,
    parse_model_names,
    parse_pairs,
    parse_shard,
    shared_flags,
)
from hardlook.cli.help_pages import App, HelpCommand, find_width, format_rows
from hardlook.cli.printing import print_json, print_output, print_scores, run_warnings_as_notes
from hardlook.cloud.addresses import format_path
from hardlook.cloud.run_folders import locate_run

if TYPE_CHECKING:
    from hardlook.api.runs import Run
    from hardlook.api.several_models import ModelRuns, Overview
    from hardlook.api.single_units import UnitResults
    from hardlook.harness.benchmark import Benchmark, BenchmarkCard
    from hardlook.harness.runs.launch import RunProgress

FINISHED_WITH_FAILURES = 3

# Of a command that parses its arguments itself, once it knows the benchmark.
RAW_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add_study(app: typer.Typer, command: str, name: str, help_text: str) -> None:
    """Add a study that runs like a benchmark under a command of its own, such as `hardlook bias support`."""

    def study(context: typer.Context) -> None:
        run_benchmark_command(name, list(context.args), context.command_path)

    app.command(command, context_settings=RAW_ARGUMENTS, help=help_text)(study)


def run(context: typer.Context) -> None:
    """Run a benchmark, or resume a run.

    Each benchmark has its own options; `hardlook run BENCHMARK --help` lists them.
    """
    from hardlook.harness.registry import find_benchmark, list_benchmarks

    words = list(context.args)
    if words == ["--json"]:
        cards = [find_benchmark(name).card for name in sorted(list_benchmarks())]
        print_json([{"name": card.name, "summary": card.summary, "role": card.role} for card in cards])
        raise typer.Exit(0)
    if not words or words[0] in ("-h", "--help"):
        rows = [(name, find_benchmark(name).card.summary) for name in sorted(list_benchmarks())]
        typer.echo("Usage: hardlook run BENCHMARK [OPTIONS]\n\n" + format_rows("Benchmarks:", rows, find_width()))
        typer.echo("\nhardlook run BENCHMARK --help lists a benchmark's options.")
        raise typer.Exit(0)
    run_benchmark_command(words[0], words[1:], f"hardlook run {words[0]}")


class RunCommand(HelpCommand):
    """`hardlook run`: shells complete the benchmarks, and after one of them its options."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the benchmark's command while a shell completes it; else the one of `run`."""
        from hardlook.harness.registry import list_benchmarks

        if extra.get("resilient_parsing") and args and args[0] in list_benchmarks():
            command = typer.main.get_command(_build_app(args[0]))
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The benchmarks whose names begin like this."""
        import typer.core

        from hardlook.harness.registry import list_benchmarks

        item: Any = vars(typer.core)["CompletionItem"]
        return [item(name) for name in sorted(list_benchmarks()) if name.startswith(incomplete)]


def run_benchmark_command(name: str, words: list[str], path: str) -> None:
    """Run the benchmark of that name with the words that follow it; `path` is the command's name in help texts."""
    _build_app(name)(words, prog_name=path, standalone_mode=True)


def _build_app(name: str) -> App:
    from hardlook.harness.registry import find_benchmark

    app = App(pretty_exceptions_enable=False)
    app.command()(build_command(name, find_benchmark(name)))
    return app


def build_command(name: str, benchmark: Benchmark) -> Callable[..., None]:
    """The function that typer turns into this benchmark's command."""
    from hardlook.cli.arguments import build_flags
    from hardlook.harness.presets import describe_presets

    def command(**values: Any) -> None:
        execute_run(name, benchmark, values)

    shared = list(inspect.signature(shared_flags, eval_str=True).parameters.values())
    if benchmark.card.role == "promptable-segmenter":
        shared += inspect.signature(checkpoint_flags, eval_str=True).parameters.values()
    parameters = [*shared, *build_flags(benchmark.options, f"Options of {benchmark.card.name}")]
    typed: Any = command
    typed.__signature__ = inspect.Signature(parameters)
    typed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    card = benchmark.card
    parts = [f"{card.title}.", card.summary, f"Example:\n\n  {card.example}", *describe_presets(card.presets())]
    command.__doc__ = "\n\n".join(parts)
    return command


def execute_run(name: str, benchmark: Benchmark, values: dict[str, Any]) -> None:
    """Run, print the scores and write the report; several models one after the other, each in a folder of its name."""
    from hardlook.api.preset_runs import is_whole_preset
    from hardlook.api.several_models import split_model_arguments
    from hardlook.models.families.downloads import forbid_downloads

    if values["show"] and not values["unit"]:
        raise typer.BadParameter("--show shows the units that --unit names", param_hint="--show")
    if values["out"] is None and not values["unit"]:
        raise typer.BadParameter("a run needs a folder", param_hint="--out")

    if values["out"] is not None:
        values = {**values, "out": locate_run(values["out"])}
    models = parse_model_names(values["model"])
    given = parse_pairs(values["model_arg"], "--model-arg")
    given.update({key: str(values[key]) for key in ("weights", "device") if values[key] is not None})
    if values.get("checkpoints") is not None:
        with forbid_downloads(values["offline"]):
            failed = _run_checkpoints(name, benchmark, values, given)
        if failed:
            raise typer.Exit(FINISHED_WITH_FAILURES)
        return
    arguments = split_model_arguments(models or [benchmark.card.default_model], given)
    with forbid_downloads(values["offline"]):
        if is_whole_preset(values.get("preset")) and not values["unit"]:
            failed = _run_preset(name, benchmark, values, arguments, models)
        elif values["unit"]:
            failed = evaluate_named_units(name, benchmark, values, arguments)
        elif len(models) > 1:
            failed = any(map(_has_failures, _run_models(name, benchmark, values, arguments)))
        else:
            values = {**values, "model": models[0] if models else None}
            failed = _has_failures(_run_model(name, benchmark, values, next(iter(arguments.values()))))
    if failed:
        raise typer.Exit(FINISHED_WITH_FAILURES)


def _run_models(
    name: str, benchmark: Benchmark, values: dict[str, Any], arguments: dict[str, dict[str, str]], *, alone: bool = True
) -> ModelRuns:
    """Run each model; the overview page is written also when a run stops. With `--json` only what is `alone` prints."""
    from hardlook.api.several_models import check_models, run_each
    from hardlook.harness.options import parse_options
    from hardlook.harness.runs.launch import offer_arguments

    options = parse_options(benchmark.options, collect_options(benchmark, values), benchmark.card.name)
    check_models(benchmark.card.role, arguments, partial(offer_arguments, benchmark, options))
    out: Path = values["out"]

    def run_one(model: str) -> Run:
        own = {**values, "model": model, "out": out / model}
        return _run_model(name, benchmark, own, arguments[model], alone=False)

    runs = run_each(benchmark, list(arguments), out, run_one, lambda overview: _show_overview(overview, values))
    if alone:
        _print_scorecards(list(arguments), values)
    return runs


def _run_preset(
    name: str, benchmark: Benchmark, values: dict[str, Any], arguments: dict[str, dict[str, str]], models: list[str]
) -> bool:
    """Run a preset on the datasets that are given, print its table, and return whether units failed."""
    from hardlook.api.preset_runs import name_part_runs, plan_preset, run_plan
    from hardlook.report.leaderboard.preset_table import build_document, print_preset_table

    plan = plan_preset(benchmark, values["preset"], collect_options(benchmark, values), has_model=bool(models))
    typer.echo("\n".join(plan.describe()), err=True)
    out: Path = values["out"]

    def run_one(data: str) -> dict[str, Run]:
        planned = plan.runs[data]
        own = {**values, "out": out / data}
        for key, value in planned.options.items():
            own[key] = [f"{one}={path}" for one, path in value.items()] if key in ("data", "reading") else value
        filled = {model: planned.fill(given) for model, given in arguments.items()}
        if len(models) > 1:
            return name_part_runs(data, _run_models(name, benchmark, own, filled, alone=False))
        own["model"] = models[0] if models else None
        return {data: _run_model(name, benchmark, own, next(iter(filled.values())), alone=False)}

    runs = run_plan(benchmark, plan, out, run_one)
    if values["as_json"]:
        print_json(build_document(runs.table))
    else:
        typer.echo()
        print_preset_table(runs.table)
        typer.echo(f"\ntable: {format_path(runs.page)}")
    return any(map(_has_failures, runs))


def _run_checkpoints(name: str, benchmark: Benchmark, values: dict[str, Any], given: dict[str, str]) -> bool:
    """Run every checkpoint of a folder; return whether units failed or a checkpoint did not run."""
    from hardlook.api.checkpoint_runs import plan_checkpoints, run_plan
    from hardlook.api.run_costs import measure_cost
    from hardlook.report.leaderboard.terminal import print_leaderboards

    taken = {f"--{key}": values[key] for key in ("model", "weights", "pred", "unit")}
    plan = plan_checkpoints(benchmark, values["checkpoints"], given, **taken)
    typer.echo("\n".join(plan.checkpoints.describe()), err=True)
    out: Path = values["out"]

    def run_one(run_name: str) -> Run:
        planned = plan.runs[run_name]
        own = {**values, "model": planned.checkpoint.model, "out": out / run_name}
        return _run_model(name, benchmark, own, dict(planned.arguments), alone=False)

    def measure(run: Run) -> None:
        say = None if values["quiet"] else lambda text: typer.echo(text, err=True)
        measure_cost(benchmark, run, threads=values["threads"], say=say)

    cost = measure if values["measure_cost"] else None
    with run_warnings_as_notes():
        runs = run_plan(benchmark, plan, out, run_one, lambda overview: _show_overview(overview, values), cost=cost)
    _print_scorecards(list(plan.runs), values)
    if runs.leaderboard is not None:
        if not values["as_json"]:
            print_leaderboards(runs.leaderboard.boards, runs.leaderboard.found.left_out)
        for page in runs.leaderboard.pages:
            typer.echo(f"leaderboard: {format_path(page)}", err=values["as_json"])
    return bool(runs.stopped) or any(map(_has_failures, runs))


def _show_overview(overview: Overview, values: dict[str, Any]) -> None:
    from rich.console import Console

    from hardlook.report.compare.terminal import print_comparison

    if overview.compared is not None and not values["as_json"]:
        console = Console()
        console.print()
        print_comparison(overview.compared.comparison, console)
    typer.echo(f"\nall models: {format_path(overview.page)}", err=values["as_json"])


def _print_scorecards(names: list[str], values: dict[str, Any]) -> None:
    """With `--json`, the scores of all runs by name."""
    from hardlook.api.several_models import read_scorecards

    if values["as_json"]:
        cards = read_scorecards([values["out"] / name for name in names])
        print_output(json.dumps({name: json.loads(card.to_json()) for name, card in cards.items()}, indent=1))


def _has_failures(run: Run) -> bool:
    """Whether units failed; of a shard, whether some of its own did."""
    if run.progress is not None and run.progress.open:
        return run.progress.failed > 0
    return run.scorecard.units.failed > 0


def _run_model(
    name: str, benchmark: Benchmark, values: dict[str, Any], model_args: dict[str, str], *, alone: bool = True
) -> Run:
    """Run one model and print its scores; with `--json` only those of a run that is `alone`."""
    from hardlook.api.running import run as run_benchmark
    from hardlook.harness.runs.signals import get_exit_code

    out: Path = values["out"]
    shared = ("engine", "workers", "address", "gpus", "prefetch", "threads", "unit_timeout", "on_error", "max_failures")
    try:
        with run_warnings_as_notes():
            done: Run = run_benchmark(
                name,
                out=out,
                model=values["model"],
                model_args={key: value for key, value in model_args.items() if key != "device"},
                device=model_args.get("device"),
                shard=parse_shard(values["shard"]),
                batch_size=parse_batch_size(values["batch_size"]),
                progress=progress_with_note(benchmark.card, values),
                **{key: values[key] for key in (*shared, "new", "full_fingerprint")},
                **collect_options(benchmark, values),
            )
    except KeyboardInterrupt as error:
        how = f" by {error}" if str(error) else ""
        kept = f"all records so far are kept in {format_path(out)}"
        sys.stderr.write(f"\nstopped{how}; {kept}. Resume with the same command:\n  ")
        sys.stderr.write(shlex.join(["hardlook", *sys.argv[1:]]) + "\n")
        raise typer.Exit(get_exit_code(error)) from None
    progress = done.progress
    assert progress is not None
    for line in describe_split_batches(progress):
        typer.echo(line, err=True)
    if progress.open:
        typer.echo(f"this shard is done; {progress.open} units are left to other shards ({format_path(out)})", err=True)
        if progress.failed:
            typer.echo(f"{progress.failed} units of this shard failed", err=True)
        if alone and values["as_json"]:
            print_json(asdict(progress))
        return done
    scored = done.scored
    if alone or not values["as_json"]:
        print_scores(scored, as_json=values["as_json"], full=values["full"])
    if not values["as_json"]:
        typer.echo(f"\nreport: {format_path(scored.folder.report_path)}")
    if scored.scorecard.units.failed:
        failures = format_path(scored.folder.failures_path)
        typer.echo(f"{scored.scorecard.units.failed} units failed: {failures}", err=True)
    return done


def describe_split_batches(progress: RunProgress) -> list[str]:
    """What to say of batches that could not be evaluated whole: their records are complete, but took longer."""
    lines = []
    if progress.halved_batches:
        lines.append(
            f"{progress.halved_batches} batches did not fit into memory and were evaluated in halves or smaller parts; "
            "a smaller --batch-size avoids that"
        )
    if others := progress.split_batches - progress.halved_batches:
        lines.append(f"{others} batches were evaluated unit by unit, after an error, a timeout or a lost worker")
    return lines


def progress_with_note(card: BenchmarkCard, values: dict[str, Any]) -> Callable[[int, int], Any] | bool:
    """The progress of a run, False with `--quiet`; without `--model`, a note first that names the default model.

    The note comes with the progress and not before it, so that an error in the options stays one message.
    """
    from hardlook.harness.runs.progress import NoProgress, make_progress

    if values["model"] or values["pred"] is not None or not card.default_model:
        return not values["quiet"]
    note = f"no --model given: {card.default_model} is used; `hardlook models --role {card.role}` lists others"
    waiting = [note]

    def start(total: int, done: int) -> Any:
        while waiting:
            typer.echo(waiting.pop(), err=True)
        return NoProgress() if values["quiet"] else make_progress(total, done)

    return start


def evaluate_named_units(name: str, benchmark: Benchmark, values: dict[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Evaluate the units of `--unit` with every model, print and show them; return whether one failed."""
    from hardlook.api.running import run as run_units
    from hardlook.api.single_units import build_document

    # Without --model there is one entry, that of the default model, which was not chosen: --pred takes its place.
    models = list(arguments) if values["model"] else [None]
    results: UnitResults | None = None
    for model, given in zip(models, arguments.values(), strict=True):
        own = run_units(
            name,
            unit=values["unit"],
            model=model,
            model_args={key: value for key, value in given.items() if key != "device"},
            device=given.get("device"),
            threads=values["threads"],
            progress=not values["quiet"],
            **collect_options(benchmark, values),
        )
        results = own if results is None else results + own
    assert results is not None
    page = results.page(values["out"]).path if values["show"] else None
    if values["as_json"]:
        print_json(build_document(benchmark, results, page))
    else:
        _print_results(benchmark, results)
        if page:
            typer.echo(f"\npage: {page}")
    return bool(results.failed)


def _print_results(benchmark: Benchmark, results: UnitResults) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from hardlook.api.single_units import format_fields

    console = Console()
    for result in results:
        printed = Table(title=escape(f"{result.unit.id} by {result.model}"), title_justify="left", show_header=False)
        printed.add_column(style="dim")
        printed.add_column(overflow="fold")
        for name, text in format_fields(benchmark, result).items():
            printed.add_row(escape(name), escape(text))
        if result.error:
            printed.add_row("error", escape(result.error))
        console.print(printed)
        if result.caption:
            console.print(escape(result.caption))
