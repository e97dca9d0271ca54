"""The steps on the command line; each imports what it needs and no more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RAW = argparse.RawDescriptionHelpFormatter

PREPARE = """Plant contexts into Caltech101, decode images, draw all tasks; needs all of hardlook.

  python benchmarks/zoo prepare --caltech caltech101 --pacs pacs --out study
  python benchmarks/zoo prepare --caltech caltech101 --image-size 32 --tasks 100 --budget 16000 --out small-study

The folder's `.npz` files and `study.json` are all that `run` needs; each file is below --part-mib.
"""

RUN = """Train and test methods; needs torch, numpy, safetensors and Fabric, and of hardlook what these can import.

  python benchmarks/zoo run --study study --out zoo --device cuda --precision tf32 --workers 8
  python benchmarks/zoo run --study study --out zoo --only 'ifsl-*' protonet --seeds 0 --minutes 9

Stopped or killed, at any moment: the same command goes on. `results.jsonl` has a line per training and test mode.
"""

REPORT = """Tables, a picture and a CSV file of scores from `results.jsonl`; needs all of hardlook.

  python benchmarks/zoo report --results zoo/results.jsonl --csv docs/zoo-scores.csv --page report.md \\
    --picture docs/images/zoo.svg
"""

PACK = """Copy finished trainings to checkpoint folders in half precision: a Conv64F has 0.23 MB.

  python benchmarks/zoo pack zoo/trainings/conv64f-*-0-0 --out checkpoints
"""


def main(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and run one step."""
    steps = parser.add_subparsers(dest="step", required=True)
    _add_prepare(steps.add_parser("prepare", description=PREPARE, formatter_class=RAW, help="images and tasks"))
    _add_run(steps.add_parser("run", description=RUN, formatter_class=RAW, help="train and test"))
    _add_report(steps.add_parser("report", description=REPORT, formatter_class=RAW, help="tables and a picture"))
    packed = steps.add_parser("pack", description=PACK, formatter_class=RAW, help="checkpoints in half precision")
    packed.add_argument("trainings", type=Path, nargs="+", help="folders of trainings")
    packed.add_argument("--out", type=Path, required=True, help="folder of checkpoint folders")
    given = parser.parse_args(arguments)
    from hardlook.errors import HardlookError

    try:
        {"prepare": _prepare, "run": _run, "report": _report, "pack": _pack}[given.step](given)
    except HardlookError as error:
        sys.exit(f"error: {error}")


def _add_prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--caltech", type=Path, required=True, help="folder with a folder of images per class")
    parser.add_argument("--pacs", type=Path, help="folder concept/domain/image, a second test set")
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--contexts", default="snow,dusk,fog", help="contexts to plant (default: %(default)s)")
    parser.add_argument("--correlations", default="0,0.9", help="of context and class in training (%(default)s)")
    parser.add_argument("--seeds", default="0,1,2", help="of training (%(default)s)")
    parser.add_argument("--image-size", type=int, default=84, help="pixels of a network's input (%(default)s)")
    parser.add_argument("--shots", type=int, default=5, help="supports per class (%(default)s)")
    parser.add_argument("--queries", type=int, default=10, help="queries per class (%(default)s)")
    parser.add_argument("--tasks", type=int, default=600, help="test tasks per mode (%(default)s)")
    parser.add_argument("--validation-tasks", type=int, default=100, help="per mode (%(default)s)")
    parser.add_argument("--budget", type=int, default=300_000, help="images of the longest training (%(default)s)")
    parser.add_argument("--planting-seed", type=int, default=0, help="of splits and contexts (%(default)s)")
    parser.add_argument("--strength", type=float, default=0.5, help="of contexts, 0 to 1 (%(default)s)")
    parser.add_argument("--part-mib", type=int, default=48, help="largest part before compression (%(default)s)")


def _prepare(given: argparse.Namespace) -> None:
    from zoo.preparation import Plan, describe, prepare

    plan = Plan(
        given.caltech,
        given.pacs,
        tuple(given.contexts.split(",")),
        tuple(map(float, given.correlations.split(","))),
        tuple(map(int, given.seeds.split(","))),
        given.image_size,
        shots=given.shots,
        queries=given.queries,
        tasks=given.tasks,
        validation_tasks=given.validation_tasks,
        budget=given.budget,
        planting_seed=given.planting_seed,
        strength=given.strength,
    )
    card = prepare(plan, given.out, part_bytes=given.part_mib << 20)
    print("\n".join(describe(card, given.out)))


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--study", type=Path, required=True, help="folder that `prepare` wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder of results and weights")
    parser.add_argument("--backbone", default="conv64f", help="(%(default)s)")
    parser.add_argument("--only", nargs="+", default=["*"], help="names or patterns of methods; all without it")
    parser.add_argument("--without", nargs="+", default=[], help="names or patterns of methods to leave out")
    parser.add_argument("--correlations", default="", help="some of the study's, such as 0.9")
    parser.add_argument("--seeds", default="", help="some of the study's, such as 0,1")
    parser.add_argument("--budget", default="300000images", help="of each training (%(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 (%(default)s)")
    parser.add_argument("--precision", default="float32", help="float32, tf32 or bfloat16 (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="trainings side by side, one process each (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of each process on a processor (%(default)s)")
    parser.add_argument(
        "--validations", type=int, default=10, help="per training; 0 keeps the last weights (%(default)s)"
    )
    parser.add_argument("--sets", nargs="+", default=[], help="test sets; all of the study without it")
    parser.add_argument("--tasks", type=int, default=0, help="test tasks per mode; all of the study without it")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long; the same command goes on")
    parser.add_argument(
        "--set", nargs="+", default=[], dest="settings", help="KEY=VALUE or METHOD:KEY=VALUE of recipes"
    )
    parser.add_argument("--retry", action="store_true", help="try trainings again that failed")


def _run(given: argparse.Namespace) -> None:
    from zoo.trainings import Settings, run

    settings = Settings(
        study=given.study,
        out=given.out,
        backbone=given.backbone,
        budget=given.budget,
        device=given.device,
        precision=given.precision,
        threads=given.threads,
        validations=given.validations,
        tasks=given.tasks,
        sets=tuple(given.sets),
        changes=tuple(given.settings),
    )
    parts: dict[str, Any] = {}
    if given.correlations:
        parts["correlations"] = tuple(map(float, given.correlations.split(",")))
    if given.seeds:
        parts["seeds"] = tuple(map(int, given.seeds.split(",")))
    left = run(
        settings,
        only=given.only,
        without=given.without,
        workers=given.workers,
        minutes=given.minutes,
        retry=given.retry,
        **parts,
    )
    if left:
        sys.exit(f"{left} trainings are left; the same command goes on")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, nargs="+", required=True, help="files results.jsonl, or these as .gz")
    parser.add_argument("--csv", type=Path, help="write every score as CSV")
    parser.add_argument("--page", type=Path, help="write the tables as Markdown; without it they are printed")
    parser.add_argument("--picture", type=Path, help="write the picture as SVG")
    parser.add_argument("--set", default="caltech101", dest="test_set", help="test set of the tables (%(default)s)")
    parser.add_argument("--seeds", default="", help="count trainings of these seeds only, such as 0,1")
    parser.add_argument("--backbone", default="conv64f", help="of the trainings that count (%(default)s)")
    parser.add_argument("--level", type=float, default=0.95, help="of intervals (%(default)s)")


def _report(given: argparse.Namespace) -> None:
    from zoo.report import write_report

    text = write_report(
        given.results,
        csv_path=given.csv,
        picture=given.picture,
        test_set=given.test_set,
        level=given.level,
        seeds=tuple(map(int, filter(None, given.seeds.split(",")))),
        backbone=given.backbone,
    )
    if given.page:
        given.page.write_text(text, encoding="utf-8")
    else:
        print(text)


def _pack(given: argparse.Namespace) -> None:
    from zoo.packing import pack

    print("\n".join(map(str, pack(given.trainings, given.out))))
