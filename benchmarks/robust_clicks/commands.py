"""Train RITM's design on three kinds of clicks, run RClicks on the networks, and say what was found.

On one GPU, from the folder `benchmarks` (VOC_320: VOC 2012 train; DEVKIT: the images of the test, which do not train):

    python -m robust_clicks train --train VOC_320 --test DEVKIT --out STUDY --device cuda --precision bfloat16
    python -m robust_clicks run --test DEVKIT --out STUDY --device cuda
    python -m robust_clicks report --out STUDY --docs ../docs

`train` and `run` resume where they were stopped. All trainings see the same number of objects (`--images`), and their
last weights are kept. With people's clicks as a network of `hardlook clicks train`: `--regimes
centre,distance,clickability --clicks-args path=FILE`. Small, on a processor: docs/robust-clicks.md has the commands.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import hardlook as hl
from robust_clicks.plan import REGIMES, SEEDS, TESTED, UNTRAINED, Training, list_trainings, parse_regime
from robust_clicks.report import write_report


def train(given: argparse.Namespace) -> None:
    """Train what is planned, one after the other, and keep the untrained network beside."""
    changes = dict(one.split("=", 1) for one in given.set)
    planned = choose(given)
    for number, one in enumerate(planned, start=1):
        print(f"{number} of {len(planned)}: {one.name}", flush=True)
        fit(given, one, changes, f"{given.images}images")
        if one.seed == given.first_seed:
            still = {**changes, "lr": "1e-12", "option.dropout": "0", "batch": "2"}
            fit(given, Training(UNTRAINED, one.seed), still, "2images")


def fit(given: argparse.Namespace, one: Training, changes: dict[str, str], budget: str) -> None:
    """One training; nothing where it is finished."""
    clicks, group = parse_regime(one.regime) if one.regime != UNTRAINED else (REGIMES[0], 0)
    hl.train(
        "ritm",
        data={"voc": given.train},
        exclude=given.test,
        out=given.out / "weights" / one.name,
        backbone=given.backbone,
        clicks=clicks,
        clicks_args=given.clicks_args if clicks == "clickability" else "",
        click_group=group,
        seed=one.seed,
        start=given.start,
        recipe=changes,
        budget=budget,
        held_back=0.0,
        device=given.device,
        precision=given.precision,
        threads=given.threads,
        progress=not given.quiet,
    )


def run(given: argparse.Namespace) -> None:
    """Run RClicks on every network with every click model of the test."""
    planned = choose(given)
    if any(one.seed == given.first_seed for one in planned):
        planned.append(Training(UNTRAINED, given.first_seed))
    for one in planned:
        for clicks in given.tested.split(","):
            options: dict[str, Any] = {"clicks": clicks, "groups": given.groups, "rounds": given.rounds}
            if clicks == "clickability":
                options["clicks_args"] = given.clicks_args
            if given.objects:
                options["at_most"] = given.objects
            hl.run(
                "rclicks",
                model=str(given.out / "weights" / one.name),
                model_args={} if given.flip else {"flip": "false"},
                data={"voc": given.test},
                min_area=given.min_area,
                out=given.out / "runs" / f"{one.name}--{clicks}",
                device=given.device,
                progress=not given.quiet,
                **options,
            )


def choose(given: argparse.Namespace) -> list[Training]:
    """What is planned, of the regimes and seeds that are asked for."""
    return list_trainings(given.regimes.split(","), [int(seed) for seed in given.seeds.split(",")])


def report(given: argparse.Namespace) -> None:
    """Write the tables."""
    print(write_report(given.out, given.docs, percent=given.percent))


def main(words: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="robust_clicks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, work in (("train", train), ("run", run), ("report", report)):
        verb = verbs.add_parser(name, help=work.__doc__)
        verb.set_defaults(work=work)
        verb.add_argument("--out", type=Path, required=True, help="folder of the study")
        if name != "report":
            verb.add_argument("--test", type=Path, required=True, help="VOC devkit of the test images")
            verb.add_argument("--regimes", default=",".join(REGIMES), help="such as centre,distance-G1,clickability")
            verb.add_argument("--seeds", default=",".join(map(str, SEEDS)))
            verb.add_argument("--first-seed", type=int, default=SEEDS[0], help="the seed of the untrained network")
            verb.add_argument("--clicks-args", default="", help="of clickability, such as path=FILE")
            verb.add_argument("--device", default="cpu")
            verb.add_argument("--quiet", action="store_true")
    training, running, reporting = (verbs.choices[name] for name in ("train", "run", "report"))
    training.add_argument("--train", type=Path, required=True, help="VOC devkit of the training images")
    training.add_argument("--images", type=int, default=20_000, help="objects that each training sees")
    training.add_argument("--backbone", default="resnet50-keras")
    training.add_argument("--set", action="append", default=[], help="change the recipe, such as size=96")
    training.add_argument("--start", default="imagenet")
    training.add_argument("--precision", default="float32")
    training.add_argument("--threads", type=int, default=1)
    running.add_argument("--tested", default=",".join(TESTED), help="click models of the test")
    running.add_argument("--objects", type=int, default=0, help="at most so many objects, drawn at random")
    running.add_argument("--min-area", type=int, default=0, help="leave out objects of fewer pixels")
    running.add_argument("--groups", type=int, default=10)
    running.add_argument("--rounds", type=int, default=20)
    running.add_argument("--flip", action=argparse.BooleanOptionalAction, default=True)
    reporting.add_argument("--docs", type=Path, default=None, help="folder for the tables; prints them without")
    reporting.add_argument("--percent", type=int, default=90, help="the IoU that clicks are counted to")
    given = parser.parse_args(words)
    given.work(given)


if __name__ == "__main__":
    main()
