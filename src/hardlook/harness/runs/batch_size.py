"""`--batch-size auto`: as many units a batch as pay off and fit.

On a processor the benchmark's own size serves. On a GPU sizes are doubled while units a second still grow by a
tenth and memory lasts. The choice depends on the machine, so it is written into `run.json` and kept on resume.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hardlook.harness.benchmark import Unit
from hardlook.harness.runs.evaluation import Worker, prepare_batch

LARGEST = 512

WORTHWHILE = 1.1


def choose_batch_size(here: Worker, units: Sequence[Unit], *, clock: Callable[[], float] = time.perf_counter) -> int:
    """The batch size for this model on this machine."""
    default = here.benchmark.card.batch_size
    if not str(getattr(here.model, "device", "cpu")).startswith("cuda"):
        return default
    prepared = prepare_batch(here.benchmark, units[: min(LARGEST, len(units))]).units
    best, best_rate, size = 1, 0.0, 1
    while size <= len(prepared):
        try:
            here.benchmark.evaluate(prepared[:size], here.model)  # the first call pays for warming up
            start = clock()
            here.benchmark.evaluate(prepared[:size], here.model)
        except Exception as error:
            if _out_of_memory(error):
                break
            # A bad unit is found and recorded by the run itself; here it only ends the search.
            return min(best, default)
        rate = size / max(clock() - start, 1e-9)
        if rate < best_rate * WORTHWHILE:
            break
        best, best_rate, size = size, rate, size * 2
    return best


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
