"""Train semantic projections on Pascal VOC, run them with other words and on COCO, and say what Open mIoU tells.

From the folder `benchmarks` (VOC_320: VOC 2012 train; DEVKIT: images of the test, which do not train; COCO: a folder
with `images` and `semantic`, maps of COCO's category ids):

    python -m open_vocabulary_study train --train VOC_320 --test DEVKIT --out STUDY
    python -m open_vocabulary_study run --test DEVKIT --coco COCO --out STUDY
    python -m open_vocabulary_study report --test DEVKIT --coco COCO --out STUDY --docs ../docs

`train` and `run` resume where they were stopped; `report` takes the runs that are there. On a GPU: `--device cuda`.
Quick: `--seeds 1 --only efficientnet-glove-fold1 --budget 320images`.
"""

from __future__ import annotations

import argparse
import csv
import json
import zlib
from pathlib import Path
from typing import Any

import hardlook as hl
from hardlook.data.voc import open_devkit
from hardlook.errors import DataError
from open_vocabulary_study.conse import Conse
from open_vocabulary_study.plan import ENCODERS, MEASURES, SPLITS, Run, Training, list_runs, list_trainings, write_words
from open_vocabulary_study.report import write_report

NAMES = ("conse-glove", "deeplabv3-voc")


def train(given: argparse.Namespace) -> None:
    """Train what is planned, one after the other."""
    for number, one in enumerate(planned := choose(given), start=1):
        print(f"{number} of {len(planned)}: {one.name}", flush=True)
        hl.train(
            "semantic-projection",
            data={"voc": given.train},
            exclude=given.test,
            out=given.out / "weights" / one.name,
            fold=SPLITS[one.split],
            backbone=ENCODERS[one.encoder],
            text=one.text,
            seed=one.seed,
            budget=given.budget,
            device=given.device,
            threads=given.threads,
            progress=not given.quiet,
        )


def run(given: argparse.Namespace) -> None:
    """Run every model that is trained, on VOC and on COCO."""
    trained = [one for one in choose(given) if is_finished(given.out / "weights" / one.name)]
    check_images([given.out / "weights" / one.name for one in trained], given.test)
    number, count = map(int, given.part.split("/"))
    planned = [
        one
        for one in list_runs(trained, () if given.only else NAMES)
        if zlib.crc32(one.name.encode()) % count == number - 1 and (one.test == "voc" or given.coco is not None)
    ]
    for number, one in enumerate(planned, start=1):
        if not (given.out / "runs" / one.name / "scores.json").is_file():
            print(f"{number} of {len(planned)}: {one.name}", flush=True)
            run_one(one, given)


def run_one(one: Run, given: argparse.Namespace) -> None:
    """One run, or what is missing of it."""
    words = write_words(one.words, given.out / "words")
    options: dict[str, Any] = {"pred_labels": words, "compare": MEASURES, "resamples": given.resamples}
    model: Any = str(given.out / "weights" / one.model)
    if one.model.startswith("conse-"):
        model = Conse([words], one.model.removeprefix("conse-"))
    elif one.model == "deeplabv3-voc":
        model = one.model
    if one.test == "voc":
        options |= {"data": {"voc": given.test}, "split": given.split}
        unseen = read_unseen(given.out / "weights" / one.model)
        if unseen:
            sets = given.out / "words" / f"{'-'.join(unseen)}.json"
            seen = [name for name in open_devkit(given.test).classes if name not in unseen]
            sets.write_text(json.dumps({"seen": seen, "unseen": unseen}))
            options["class_sets"] = sets
    else:
        options |= {
            "data": {"images": given.coco / "images", "masks": given.coco / "semantic"},
            "labels": "coco133",
            "numbering": "category-id",
            "ignore": 0,
        }
    out = given.out / "runs" / one.name
    hl.run("open-miou", model=model, out=out, progress=not given.quiet, report=given.pages, **options)


def is_finished(folder: Path) -> bool:
    """Whether a training is done."""
    card = folder / "checkpoint.json"
    return card.is_file() and bool(json.loads(card.read_text()).get("finished"))


def read_unseen(folder: Path) -> list[str]:
    """The classes that did not train; none for other models."""
    card = folder / "checkpoint.json"
    return json.loads(card.read_text())["identity"]["data"]["unseen"] if card.is_file() else []


def check_images(folders: list[Path], test: Path) -> None:
    """An error where an image of the test trained or validated a model."""
    tested = {path.stem for path in (open_devkit(test).root / "JPEGImages").iterdir()}
    for folder in folders:
        with (folder / "images.csv").open(encoding="utf-8", newline="") as stream:
            used = {row["image"] for row in csv.DictReader(stream)}
        if common := sorted(used & tested):
            what = f"{len(common)} images of the test trained this model, such as {common[0]}"
            raise DataError(what, file=folder, remedy="train with --test, which excludes them")


def report(given: argparse.Namespace) -> None:
    """Tables and pictures of the runs that are there."""
    write_report(given.out, given.docs, test=given.test, coco=given.coco)


def choose(given: argparse.Namespace) -> list[Training]:
    """The planned trainings, or those whose names begin with one of `--only`."""
    wanted = tuple(part for part in given.only.split(",") if part)
    return [one for one in list_trainings(given.seeds) if not wanted or one.name.startswith(wanted)]


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="open_vocabulary_study", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    for function in (train, run, report):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--out", type=Path, required=True, help="folder of the study")
        command.add_argument("--test", type=Path, required=True, help="devkit whose images are tested")
        command.add_argument("--train", type=Path, help="devkit whose images train")
        command.add_argument("--coco", type=Path, help="folder with COCO's images and semantic maps")
        command.add_argument("--docs", type=Path, help="folder for tables and pictures")
        command.add_argument("--split", default="train", help="list of the tested devkit")
        command.add_argument("--seeds", type=int, default=3)
        command.add_argument("--only", default="", help="beginnings of names, with commas between")
        command.add_argument("--budget", default="", help="of each training; empty for the recipe's epochs")
        command.add_argument("--resamples", type=int, default=1000)
        command.add_argument("--part", default="1/1", help="2/3 runs the second of three parts, for several processes")
        command.add_argument("--pages", action="store_true", help="write the report of every run, too")
        command.add_argument("--device", default="cpu")
        command.add_argument("--threads", type=int, default=1)
        command.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    given.function(given)
