"""Train the networks of TOSS's tables on Pascal VOC, run TOSS and its bias studies on them, and say what was found.

On one GPU, from the folder `benchmarks` (VOC_320: VOC 2012 train; DEVKIT: the images of the test, which do not train):

    python -m toss_study train --train VOC_320 --test DEVKIT --out STUDY --device cuda --precision bfloat16
    python -m toss_study run --test DEVKIT --pairs TOSS --out STUDY --device cuda
    python -m toss_study report --train VOC_320 --test DEVKIT --out STUDY --docs ../docs

`train` and `run` resume where they were stopped. All trainings have the same number of steps (`--images`), whatever
their selection keeps. On a processor: docs/toss-study.md has the options.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import hardlook as hl
from toss_study.plan import COMPARED, FLOORS, OTHERS, SEEDS, Training, list_trainings, name_floor
from toss_study.report import AT, write_report

BENCHMARKS = {"toss": "toss", "support": "bias-support", "saliency": "bias-saliency"}


def train(given: argparse.Namespace) -> None:
    """Train what is planned, one after the other."""
    changes = dict(one.split("=", 1) for one in given.set)
    for number, one in enumerate(planned := choose(given), start=1):
        print(f"{number} of {len(planned)}: {one.name}", flush=True)
        hl.train(
            one.network,
            data={"voc": given.train},
            exclude=given.test,
            out=given.out / "weights" / one.name,
            folds=len(one.folds),
            selection=one.selection,
            saliency=given.saliency,
            seed=one.seed,
            start=given.start,
            recipe={"size": fit_size(one.network, given.size), **changes},
            budget=f"{given.images}images",
            device=given.device,
            precision=given.precision,
            threads=given.threads,
            validations=given.validations,
            validation_pairs=given.validation_pairs,
            progress=not given.quiet,
        )


def fit_size(network: str, size: int) -> int:
    """HSNet's three levels need a support plane of the same size after squeezing: 97, 105, 112, 257, 272 or 400."""
    if network != "hsnet":
        return size
    return min((97, 105, 112, 257, 272, 400), key=lambda fits: abs(fits - size))


def run(given: argparse.Namespace) -> None:
    """Run TOSS on every training, with several thresholds if asked to, and on the floors.

    The bias studies are run on trainings on the selections of `--studied` and on prototypes.
    """
    runs = given.out / "runs"
    data = {"voc": given.test, "pairs": given.pairs}
    listed: dict[str, Any] = {"data": data, "folds": f"0-{given.folds - 1}", "subset": "available"}
    studied = {**({"data": {"voc": given.test}} if given.drawn else listed), "pairs_a_class": given.pairs_a_class}
    options = {
        "toss": {**listed, "tiers": "1,2"}, "support": studied, "saliency": {**studied, "saliency": given.saliency},
    }  # fmt: skip
    studies = split(given.studies)
    common: dict[str, Any] = {"progress": not given.quiet}
    for floor in split(given.floors):
        model, args = name_floor(floor, size=given.size, saliency=given.saliency)
        for name in studies if floor.startswith("prototype") else {"toss"} & {*studies}:
            out = runs / f"{floor}-floor-{name}"
            hl.run(BENCHMARKS[name], model=model, model_args=args, out=out, **options[name], **common)
    common["device"] = given.device
    for one in choose(given):
        args = {"weights": str(given.out / "weights" / one.name / "fold{fold}"), "disk": str(given.disk)}
        for name in studies if one.selection in split(given.studied) else {"toss"} & {*studies}:
            own = {**args, "null_masks": str(name == "support")}
            out = runs / f"{one.name}-{name}"
            hl.run(BENCHMARKS[name], model=one.network, model_args=own, out=out, **options[name], **common)
        for threshold in split(given.thresholds):
            own, out = {**args, "threshold": threshold}, runs / f"{one.name}{AT}{threshold}"
            hl.run("toss", model=one.network, model_args=own, tiers="1", out=out, **listed, **common)


def split(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name for name in text.split(",") if name]


def choose(given: argparse.Namespace) -> list[Training]:
    """What is planned."""
    seeds = [int(seed) for seed in split(given.seeds)]
    return list_trainings(split(given.compared), split(given.others), seeds, folds=given.folds)


def report(given: argparse.Namespace) -> None:
    """Write the tables."""
    print(write_report(given.out, given.docs, given.train, given.test, given.name))


def main(words: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="toss_study", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, work in (("train", train), ("run", run), ("report", report)):
        verb = verbs.add_parser(name, help=(work.__doc__ or "").partition("\n")[0])
        verb.set_defaults(work=work)
        verb.add_argument("--out", type=Path, required=True, help="folder of the study")
        verb.add_argument("--test", type=Path, required=True, help="VOC devkit of the test images")
        verb.add_argument("--quiet", action="store_true")
        if name != "report":
            verb.add_argument("--folds", type=int, default=4)
            verb.add_argument("--compared", default=",".join(COMPARED), help="networks that train on every selection")
            verb.add_argument("--others", default=",".join(OTHERS), help="networks that train on all images alone")
            verb.add_argument("--seeds", default=",".join(map(str, SEEDS)), help="of the first network; others: one")
            verb.add_argument("--size", type=int, default=321)
            verb.add_argument("--device", default="cpu")
            verb.add_argument("--saliency", default="u2netp")
        if name != "run":
            verb.add_argument("--train", type=Path, required=True, help="VOC devkit of the training images")
    training, running, reporting = (verbs.choices[name] for name in ("train", "run", "report"))
    training.add_argument(
        "--images", type=int, default=16_000, help="images that each training sees, supports included"
    )
    training.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a number of the recipe")
    training.add_argument("--start", default="imagenet")
    training.add_argument("--precision", default="float32")
    training.add_argument("--threads", type=int, default=1)
    training.add_argument("--validations", type=int, default=5)
    training.add_argument("--validation-pairs", type=int, default=200)
    running.add_argument("--pairs", type=Path, required=True, help="TOSS's pair lists")
    running.add_argument("--pairs-a-class", type=int, default=50, help="pairs of a class in the bias studies")
    running.add_argument("--drawn", action="store_true", help="bias studies on pairs drawn from the images, four folds")
    running.add_argument("--studies", default=",".join(BENCHMARKS), help="which benchmarks")
    running.add_argument("--studied", default="all", help="selections of the trainings that bias studies are run on")
    running.add_argument("--floors", default=",".join(FLOORS), help="training-free models beside them")
    running.add_argument("--thresholds", default="", help="tier 1 with masks above these: 0.3,0.4")
    running.add_argument("--disk", action="store_true", help="keep features of frozen backbones for other runs")
    reporting.add_argument("--docs", type=Path, default=None, help="folder for tables and pictures of the page")
    reporting.add_argument("--name", default="toss-study", help="with which the names of the files begin")
    given = parser.parse_args(words)
    given.work(given)


if __name__ == "__main__":
    main()
