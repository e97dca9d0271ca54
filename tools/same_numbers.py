"""Do two versions of the code give the same numbers? The demo and a real run of each system, by both, compared.

`git worktree add ../old TAG`, then `python tools/same_numbers.py ../old/src src --data ../shared --out same-numbers`.
Prints one row per run: whether scores.json is equal byte for byte, or at least the value and number of units of every
score, and which columns of the records differ. Runs that are already in the folder are not repeated. Real runs need the
data and the weights; `--planted` leaves them out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import polars as pl

COMMANDS = {
    "demo": "demo",
    "closed-miou": "run closed-miou --model deeplabv3-voc --data voc={voc} --split train --resamples 200",
    "open-miou": "run open-miou --model deeplabv3-voc --pred-labels voc20 --data images={coco}/images"
    " --data masks={coco}/semantic --labels coco133 --numbering category-id --ignore 0 --resamples 100",
    "open-pq": "run open-pq --gt {coco}/panoptic.json --gt-masks {coco}/panoptic --pred {coco}/panoptic.json"
    " --pred-masks {coco}/panoptic --labels coco133",
    "toss": "run toss --data pairs={data}/reference/toss/data --data voc={voc} --subset available --folds 0 --tiers 1"
    " --model saliency --resamples 100",
    "metacoco": "run metacoco --data {data}/data/pacs --shots 5 --tasks 40 --encoder efficientnet-lite0"
    " --model nearest-centroid,ridge",
    "rclicks": "run rclicks --data grabcut={data}/data/GrabCut --model mobile-sam --rounds 3 --groups 3 --at-most 3",
}


def run_commands(source: Path, folder: Path, data: Path, planted: bool) -> None:
    """Run every command with the code in `source`, each into a folder of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "XDG_CACHE_HOME": str(folder / "cache")}
    places = {"data": data, "voc": data / "data/VOCdevkit/VOC2012", "coco": data / "data/coco100"}
    for name, command in COMMANDS.items():
        if (folder / name).exists() or (planted and name != "demo"):
            continue
        quiet = [] if name == "demo" else ["--quiet"]
        words = [*command.format(**places).split(), "--out", str(folder / f"{name}.unfinished"), *quiet]
        command_line = [sys.executable, "-m", "hardlook", *words]
        done = subprocess.run(command_line, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{source}: hardlook {' '.join(words)}\n{done.stderr[-2000:]}")
        (folder / f"{name}.unfinished").rename(folder / name)


def read_records(run: Path) -> pl.DataFrame:
    """The records of a run folder in the order of its units."""
    return pl.concat([pl.read_parquet(one) for one in sorted((run / "records").glob("*.parquet"))]).sort("unit")


def compare_scores(old: Path, new: Path) -> str:
    """Whether two files of scores are equal byte for byte, or else in the values and numbers of units of all scores."""
    if old.read_bytes() == new.read_bytes():
        return "equal"
    before, after = (json.loads(one.read_text())["scores"] for one in (old, new))
    if [(one["name"], one["slice"], one["n"]) for one in before] != [
        (one["name"], one["slice"], one["n"]) for one in after
    ]:
        return "DIFFERS"
    values = [(one["value"], other["value"]) for one, other in zip(before, after, strict=True)]
    if any((one is None) != (other is None) for one, other in values):
        return "DIFFERS"
    known = [pair for pair in values if pair[0] is not None]
    if all(one == other for one, other in known):
        return "values equal"
    close = all(math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12) for one, other in known)
    return "values equal to 12 digits" if close else "DIFFERS"


def compare_runs(old: Path, new: Path) -> tuple[str, list[str], int]:
    """How scores.json compares, which columns of the records differ, and how many units there are."""
    before, after = read_records(old), read_records(new)
    if len(before) != len(after):
        return "DIFFERS", ["all"], len(before)
    added = set(before.columns) ^ set(after.columns)
    differing = [name for name in before.columns if name not in added and not before[name].equals(after[name])]
    differing += [f"{name} (one version only)" for name in sorted(added)]
    return compare_scores(old / "scores.json", new / "scores.json"), differing, len(before)


def main() -> None:
    """Run and compare; exit code 1 where a score or a record differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the folder src of the first version")
    parser.add_argument("new", type=Path, help="the folder src of the second version")
    parser.add_argument("--data", type=Path, default=Path("../shared"), help="holds data/ and reference/")
    parser.add_argument("--out", type=Path, default=Path("same-numbers"))
    parser.add_argument("--planted", action="store_true", help="only the demo, which needs no data")
    given = parser.parse_args()
    folders = given.out.resolve() / "old", given.out.resolve() / "new"
    for source, folder in zip((given.old, given.new), folders, strict=True):
        run_commands(source, folder, given.data.resolve(), given.planted)
    runs = [sorted(one.parent.relative_to(folder) for one in folder.rglob("scores.json")) for folder in folders]
    wrong = runs[0] != runs[1]
    print("| run | units | scores.json | columns of records that differ |\n|---|---|---|---|")
    for run in sorted({*runs[0], *runs[1]}):
        if run not in runs[0] or run not in runs[1]:
            print(f"| {run} | - | only one version has it | - |")
            continue
        same, differing, units = compare_runs(folders[0] / run, folders[1] / run)
        wrong |= same == "DIFFERS" or differing not in ([], ["answers"])  # the fingerprint names the code
        print(f"| {run} | {units} | {same} | {', '.join(differing) or 'none'} |")
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
