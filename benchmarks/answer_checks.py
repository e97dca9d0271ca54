"""What checking every answer of a model costs, as a share of a run's processor time, with real networks.

Run `python benchmarks/answer_checks.py DATA`, where DATA holds `VOCdevkit/VOC2012` and `GrabCut`; runs whose data or
weights are missing are left out. A run here reads, predicts, checks and scores units in one process, one thread; it
writes no records, so the share of a whole run is smaller. One network answers with arrays, with torch tensors and with
nested lists, which are converted before they are checked. The checks alone, on a megapixel of each kind of answer.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hardlook.errors import HardlookError
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.batches import make_batches
from hardlook.harness.runs.evaluation import evaluate_batch
from hardlook.harness.runs.plan import list_units
from hardlook.models import answer_checks
from hardlook.models.registry import build
from hardlook.models.roles import Instances, Prompted, Segments
from hardlook.threads import pin_threads, set_thread_variables

TARGET = 2.0  # percent
SIDE = 1000


@dataclass(frozen=True)
class RealRun:
    """A benchmark with a real network on some units; `data` are the names of folders below DATA.

    A model with the method `segment` answers with arrays, tensors or lists.
    """

    benchmark: str
    model: str
    units: int
    given: dict[str, Any]
    data: dict[str, str]
    answers: str = "arrays"


RUNS = (
    *(
        RealRun("closed-miou", "deeplabv3-voc", 48, {"split": "train"}, {"voc": "VOCdevkit/VOC2012"}, answers)
        for answers in ("arrays", "tensors", "lists")
    ),
    RealRun("toss", "prototype", 64, {"scenes": 48, "tiers": "1", "saliency": "u2netp"}, {}),
    RealRun("toss", "saliency", 64, {"scenes": 48, "tiers": "1"}, {}),
    RealRun("rclicks", "mobile-sam", 2, {}, {"grabcut": "GrabCut"}),
    RealRun("metacoco", "lp-ft", 2, {"tasks": 2, "modes": "iid"}, {}),
)


class ConvertedAnswers:
    """A segmenter whose label maps are torch tensors of int64, as `argmax` gives them, or nested lists."""

    def __init__(self, model: Any, answers: str) -> None:
        import torch

        self.model, self.labels = model, model.labels
        self.convert = (lambda one: torch.from_numpy(one).long()) if answers == "tensors" else np.ndarray.tolist

    def segment(self, images: Any) -> list[Any]:
        """The label maps of the images."""
        return [self.convert(one) for one in self.model.segment(images)]


class Stopwatch:
    """Counts the calls of `check_answers` and their processor time, wherever it has been imported."""

    def __init__(self) -> None:
        self.calls, self.seconds = 0, 0.0
        check = answer_checks.check_answers

        def timed(*args: Any, **more: Any) -> Any:
            start = time.thread_time()
            try:
                return check(*args, **more)
            finally:
                self.seconds += time.thread_time() - start
                self.calls += 1

        for module in [one for one in sys.modules.values() if getattr(one, "check_answers", None) is check]:
            module.check_answers = timed  # type: ignore[attr-defined]


def measure_run(run: RealRun, data: Path, watch: Stopwatch) -> None:
    folders = {name: data / place for name, place in run.data.items()}
    if missing := [str(folder) for folder in folders.values() if not folder.exists()]:
        print(f"{run.benchmark:12} {run.model:14} left out: no {', '.join(missing)}")
        return
    benchmark = find_benchmark(run.benchmark)
    try:
        model = build(run.model, benchmark.card.role)
    except HardlookError as error:
        print(f"{run.benchmark:12} {run.model:14} left out: {error.what}")
        return
    if run.answers != "arrays":
        model = ConvertedAnswers(model, run.answers)
    options = parse_options(benchmark.options, {**run.given, **({"data": folders} if folders else {}), "resamples": 0})
    units = list(list_units(benchmark, options))[: run.units]
    batches = make_batches(units, benchmark.card.batch_size, whole_groups=benchmark.card.whole_groups)
    pin_threads(1)
    evaluate_batch(benchmark, units[:1], model)  # compiles kernels and loads what is loaded late
    watch.calls, watch.seconds = 0, 0.0
    start = time.process_time()
    failed = [failure for batch in batches for failure in evaluate_batch(benchmark, batch, model).failures]
    whole = time.process_time() - start
    assert not failed, failed[0]
    share = 100 * watch.seconds / whole
    print(
        f"{run.benchmark:12} {run.model:14} {run.answers:8} {len(units):4} units  {whole:7.2f} s  {watch.calls:5} "
        f"calls checked in {1000 * watch.seconds:7.2f} ms  {share:6.3f} %  target {TARGET} %"
    )


def fastest(work: Callable[[], Any], times: int = 20) -> float:
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def measure_checks() -> None:
    image, rng = np.zeros((SIDE, SIDE, 3), np.uint8), np.random.default_rng(0)
    model = SimpleNamespace(labels=tuple(map(str, range(150))), things=(True,) * 150)
    labels = rng.integers(-1, 150, (SIDE, SIDE)).astype(np.int32)
    mask = rng.random((SIDE, SIDE)) < 0.3
    corners = np.array([[1, 1, 9, 9]] * 10, np.float32)
    instances = Instances(np.array([mask] * 10), corners, np.full(10, 0.5, np.float32), np.zeros(10, np.int32))
    segments = Segments(labels + 1, {one: one - 1 for one in range(1, 151)})
    answers: dict[str, tuple[str, Any, Any]] = {
        "label map, int32": ("semantic-segmenter", labels, image),
        "label map, int64": ("semantic-segmenter", labels.astype(np.int64), image),
        "label map, list": ("semantic-segmenter", labels.tolist(), image),
        "mask": ("one-shot-segmenter", mask, (image, ())),
        "mask of a prompt": ("promptable-segmenter", Prompted(mask), (image, None)),
        "ten instances": ("instance-segmenter", instances, image),
        "150 segments": ("panoptic-segmenter", segments, image),
        "saliency map": ("saliency", rng.random((SIDE, SIDE), np.float32), image),
    }
    with contextlib.suppress(ImportError):
        import torch

        answers["label map, tensor"] = ("semantic-segmenter", torch.from_numpy(labels).long(), image)
        answers["mask, tensor"] = ("one-shot-segmenter", torch.from_numpy(mask), (image, ()))
    print("\none answer to an image of a megapixel")
    for name, (role, answer, value) in answers.items():
        took = fastest(partial(answer_checks.check_answers, role, model, [answer], [value]))
        print(f"{name:20} {1000 * took:7.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path("data"))
    data = parser.parse_args().data
    set_thread_variables(1)
    for run in RUNS:  # import every module that checks answers before they are wrapped
        find_benchmark(run.benchmark)
    measure_checks()
    print("\nruns with real networks, processor time")
    watch = Stopwatch()
    for run in RUNS:
        measure_run(run, data, watch)


if __name__ == "__main__":
    main()
