"""A run from names to scores: build, plan, execute, score.

The command line, the demo and Python users all call `launch`.

>>> import tempfile
>>> done = launch("closed-miou", model="planted-segmenter", given={"scenes": 4, "resamples": 50},
...               out=Path(tempfile.mkdtemp()) / "run")
>>> done.scored.scorecard.get("miou").value
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ChangedRun, OptionError
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.batch_size import choose_batch_size
from hardlook.harness.runs.evaluation import Job, open_worker
from hardlook.harness.runs.execution import RunProgress, RunSettings, execute
from hardlook.harness.runs.folder import RunFolder, write_whole
from hardlook.harness.runs.plan import list_units, make_plan
from hardlook.harness.runs.scoring import ScoredRun, check_readings, keep_score_options, score_run

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class RunResult:
    """What a launch did; `scored` is None while other shards are still at work."""

    progressed: RunProgress
    scored: ScoredRun | None


def launch(
    benchmark: str,
    *,
    out: Path,
    model: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
    settings: RunSettings | None = None,
    batch_size: int | None = None,
    threads: int = 1,
    full_fingerprint: bool = False,
    show_progress: Callable[[int, int], Any] | None = None,
) -> RunResult:
    """Run or resume a benchmark in the folder `out` and score it when all units are answered.

    `given` are the benchmark's options by name; `batch_size` None keeps the folder's, or chooses one.
    """
    found = find_benchmark(benchmark)
    settings = settings or RunSettings()
    options = parse_options(found.options, dict(given or {}))
    check_readings(found, options)
    if options.pred is not None and model:
        raise OptionError("--model and --pred are both given", remedy="score stored predictions, or run a model")
    name = "" if options.pred is not None else (model or found.card.default_model)
    if not name and options.pred is None:
        raise OptionError(
            f"{benchmark} needs a model", remedy=f"give --model; `hardlook models --role {found.card.role}` lists some"
        )
    job = Job(benchmark, name, dict(model_args or {}), threads)
    units = list_units(found, options)
    here = open_worker(job)
    if found.setup is not None:
        found.setup(units, here.model, show_progress)
    folder = RunFolder(out)
    if batch_size is None and folder.exists() and not settings.new:
        batch_size = int(folder.read_manifest()["batch_size"])
    size = batch_size or choose_batch_size(here, units)

    def with_size(size: int) -> RunProgress:
        plan = make_plan(job, here, options, units, batch_size=size, full_fingerprint=full_fingerprint, out=out)
        return execute(plan, here, folder, settings, show_progress)

    try:
        progressed = with_size(size)
    except ChangedRun:
        # Another shard may have chosen a size a moment earlier; what stands in the folder holds.
        settled = int(folder.read_manifest()["batch_size"])
        if batch_size is not None or settled == size:
            raise
        progressed = with_size(settled)
    if progressed.open:
        return RunResult(progressed, None)
    keep_score_options(folder, options)
    scored = score_run(folder)
    write_whole(folder.scores_path, scored.scorecard.to_json())
    return RunResult(progressed, scored)
