"""Train the networks of TOSS's tables on Pascal VOC, run TOSS and its bias studies on them, and say what was found.

On one GPU, from the folder `benchmarks` (VOC_320: VOC 2012 train; DEVKIT: the images of the test, which do not train):

    python -m toss_study train --train VOC_320 --test DEVKIT --out STUDY --device cuda --precision bfloat16
    python -m toss_study run --test DEVKIT --pairs TOSS --out STUDY --device cuda
    python -m toss_study report --out STUDY --docs ../docs

`train` and `run` resume where they were stopped. All trainings have the same number of steps (`--images`), whatever
their selection keeps. Small, on a processor: `--only simpropnet --size 65 --images 200 --start none --folds 2`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import hardlook as hl
from toss_study.plan import Training, list_trainings
from toss_study.report import write_report

BENCHMARKS = {"toss": "toss", "support": "bias-support", "saliency": "bias-saliency"}


def train(given: argparse.Namespace) -> None:
    """Train what is planned, one after the other."""
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
            recipe={"size": fit_size(one.network, given.size), **({"batch": given.batch} if given.batch else {})},
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
    """Run TOSS on every training, and the bias studies on those of all images and seed 0."""
    data = {"voc": given.test, "pairs": given.pairs}
    for one in choose(given):
        studies = BENCHMARKS if (one.selection, one.seed) == ("all", 0) else {"toss": "toss"}
        for name, benchmark in studies.items():
            options: dict[str, Any] = {"folds": f"0-{len(one.folds) - 1}", "subset": "available"}
            options |= {"toss": {"tiers": "1,2"}, "saliency": {"saliency": given.saliency}}.get(name, {})
            hl.run(
                benchmark,
                model=one.network,
                model_args={"weights": str(given.out / "weights" / one.name / "fold{fold}")},
                data=data,
                out=given.out / "runs" / f"{one.name}-{name}",
                device=given.device,
                progress=not given.quiet,
                **options,
            )
    for floor in given.floors.split(","):
        if floor:
            hl.run(
                "toss", model=floor, data=data, tiers="1,2", folds=f"0-{given.folds - 1}", subset="available",
                out=given.out / "runs" / f"{floor}-floor-toss", progress=not given.quiet,
            )  # fmt: skip


def choose(given: argparse.Namespace) -> list[Training]:
    """What is planned, of the networks of `--only`."""
    planned = list_trainings(folds=given.folds)
    wanted = given.only.split(",") if given.only else None
    return [one for one in planned if wanted is None or one.network in wanted]


def report(given: argparse.Namespace) -> None:
    """Write the tables."""
    print(write_report(given.out, given.docs))


def main(words: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="toss_study", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, work in (("train", train), ("run", run), ("report", report)):
        verb = verbs.add_parser(name, help=work.__doc__)
        verb.set_defaults(work=work)
        verb.add_argument("--out", type=Path, required=True, help="folder of the study")
        verb.add_argument("--folds", type=int, default=4)
        verb.add_argument("--only", default="", help="networks, separated by commas")
        verb.add_argument("--device", default="cpu")
        verb.add_argument("--quiet", action="store_true")
        if name != "report":
            verb.add_argument("--test", type=Path, required=True, help="VOC devkit of the test images")
            verb.add_argument("--saliency", default="u2netp")
    training, running, reporting = (verbs.choices[name] for name in ("train", "run", "report"))
    training.add_argument("--train", type=Path, required=True, help="VOC devkit of the training images")
    training.add_argument("--size", type=int, default=321)
    training.add_argument(
        "--images", type=int, default=16_000, help="images that each training sees, supports included"
    )
    training.add_argument("--batch", type=int, default=0, help="pairs of a step; the recipe's by default")
    training.add_argument("--start", default="imagenet")
    training.add_argument("--precision", default="float32")
    training.add_argument("--threads", type=int, default=1)
    training.add_argument("--validations", type=int, default=5)
    training.add_argument("--validation-pairs", type=int, default=200)
    running.add_argument("--pairs", type=Path, required=True, help="TOSS's pair lists")
    running.add_argument("--floors", default="prototype", help="training-free models beside them")
    reporting.add_argument("--docs", type=Path, default=None, help="folder for toss-study.csv; prints it without")
    given = parser.parse_args(words)
    given.work(given)


if __name__ == "__main__":
    main()
