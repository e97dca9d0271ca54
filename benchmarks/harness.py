"""What the harness costs beside the work itself, and how engines scale, in one run.

Run `python benchmarks/harness.py`. The peer is the loop that people write: prepare, segment, count, no records, no
resuming. Closed mIoU on the planted world, one thread a worker.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.metrics.confusion import confusion_counts
from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.open_vocabulary.miou.options import SemanticOptions
from hardlook.open_vocabulary.miou.units import list_units, prepare_unit

SCENES = 384


def plain_loop() -> None:
    model = PlantedSegmenter(stranger=0.3)
    confusion = np.zeros((22, 23), np.int64)
    for unit in list_units(SemanticOptions(scenes=SCENES)):
        content = prepare_unit(unit).payload
        assert content.image is not None
        assert content.truth_map is not None
        (answer,) = model.segment([content.image])
        confusion += confusion_counts(content.truth_map, answer, classes=22, ignore=-1)


def run(engine: EngineOptions, out: Path) -> None:
    launch(
        "closed-miou",
        out=out,
        model="planted-segmenter",
        model_args={"stranger": 0.3},
        given={"scenes": SCENES, "keep_predictions": False},
        settings=RunSettings(engine=engine),
    )


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = seconds(plain_loop)
        print(f"{'plain loop':26} {base:6.2f} s  {SCENES / base:6.1f} units/s")
        for name, engine in (
            ("inline, first time", EngineOptions("inline")),
            ("processes, 2 workers", EngineOptions("processes", workers=2)),
        ):
            took = seconds(lambda engine=engine, name=name: run(engine, Path(folder) / name))  # type: ignore[misc]
            print(f"{name:26} {took:6.2f} s  {SCENES / took:6.1f} units/s  {took / base:5.2f} of the plain loop")
        again = seconds(lambda: run(EngineOptions("inline"), Path(folder) / "inline, first time"))
        print(f"{'inline, nothing left to do':26} {again:6.2f} s (fingerprints, scores and intervals)")


if __name__ == "__main__":
    main()
