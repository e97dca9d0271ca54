"""What the model of a run costs: measured after the run on its device, and kept in its folder."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from hardlook.api.runs import Run
from hardlook.errors import HardlookError, RunWarning, shorten
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.costs import COST_FILE, MeasuredRun, is_cost_of, read_cost
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.harness.scorecard import read_scores
from hardlook.harness.sections import Section
from hardlook.models.named_model import build_named
from hardlook.report.json_values import dump_json
from hardlook.threads import pinned_threads


def measure_cost(benchmark: Benchmark, run: Run, *, threads: int, say: Callable[[str], None] | None = None) -> None:
    """Measure what a run's model costs, unless its folder has that already or the run is not finished.

    The model is built again, with the arguments of the run. What goes wrong is a warning: the scores are complete.
    """
    measure, model = benchmark.cost_measure, run.manifest["model"]
    if measure is None or model is None or (run.progress is not None and run.progress.open):
        return
    try:
        stored = read_cost(run.folder, measure)
    except HardlookError as error:
        warnings.warn(f"{error.what} ({run.folder / COST_FILE}); it is measured again", RunWarning, stacklevel=2)
        stored = None
    if stored is not None and is_cost_of(stored, model):
        return
    if say is not None:
        say(f"measuring what {run.folder.name} costs")
    named = None
    try:
        named = build_named(model["name"], benchmark.card.role, model["args"])
        with pinned_threads(threads):
            content = measure.measure(named, threads)
        write_atomically(run.folder / COST_FILE, dump_json(content))
    except Exception as error:  # a model may raise anything, also that the memory of a GPU is full
        reason = error.what if isinstance(error, HardlookError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"the cost of {run.folder.name} was not measured: {shorten(reason)}", RunWarning, stacklevel=2)
    del named
    gc.collect()
    # A model on a GPU need not be one of torch.
    if str(model["device"]).startswith("cuda") and (torch := sys.modules.get("torch")) is not None:
        torch.cuda.empty_cache()


def build_costs_sections(benchmark: Benchmark, folders: Sequence[Path]) -> list[Section]:
    """The section on the costs of the runs that are scored, by the names of their folders; none where none has one."""
    measure = benchmark.cost_measure
    if measure is None:
        return []
    runs = []
    for folder in folders:
        if not (scores := RunFolder(folder).scores_path).is_file():
            continue
        try:
            runs.append(MeasuredRun(folder.name, read_scores(scores), read_cost(folder, measure)))
        except HardlookError as error:
            runs.append(MeasuredRun(folder.name, read_scores(scores), None, error.what))
    section = measure.build_section(runs)
    return [] if section is None else [section]
