"""What a worker needs: the benchmark, the model, and threads that do not fight each other.

Default threading beside a busy core costs four times and more, so every worker pins torch, OpenMP, BLAS and OpenCV.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hardlook.benchmarks import find_benchmark
from hardlook.contract.benchmark import Benchmark

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """Names from which any process, here or elsewhere, rebuilds the benchmark and the model.

    `model` is empty for stored predictions.
    """

    benchmark: str
    model: str = ""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1


@dataclass(frozen=True)
class Worker:
    """A benchmark and a model, ready to answer."""

    benchmark: Benchmark
    model: Any


def open_worker(job: Job) -> Worker:
    """Build the benchmark and the model in this process, threads pinned."""
    from hardlook.models.registry import build

    announce_threads(job.threads)
    benchmark = find_benchmark(job.benchmark)
    model = build(job.model, role=benchmark.card.role, args=job.model_args) if job.model else None
    pin_threads(job.threads)
    return Worker(benchmark, model)


def announce_threads(threads: int) -> None:
    """Tell libraries that are not loaded yet, and the processes started from here."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)


def pin_threads(threads: int) -> None:
    """Tell libraries that are loaded already."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(threads)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
