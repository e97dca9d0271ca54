"""Measurements of the kernels for GPUs and of the networks that use them, each in its own process with a time limit.

  python benchmarks/on_gpu.py --out measured
  python benchmarks/on_gpu.py --out measured --seconds 520 --only trials rclicks maml

What each printed goes to `OUT/measured.txt` while it runs, one after the other, each with a line that says how it
ended: nothing is lost if the machine is taken away. What was there before is kept. With `--seconds` what would begin
after them is left out, and what runs then is stopped: give some seconds less than the machine gives. The scripts run
with the package of this repository, installed or not. Needs torch, numpy, scipy, cachetools, transformers, safetensors
and Fabric; docs/benchmarks.md has the figures and targets.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Measurement:
    """A script's arguments, from the folder of the repository, and the seconds that it may take."""

    arguments: tuple[str, ...]
    limit: float


def measure(limit: float, *arguments: str) -> Measurement:
    """The measurement of a script in `benchmarks`."""
    return Measurement((f"benchmarks/{arguments[0]}.py", *arguments[1:]), limit)


COURSES = "interactive_courses", "--device", "cuda", "--family"
ALL = {
    "trials": Measurement(("tools/compile_kernels.py", "--run"), 180),
    "rclicks": measure(150, "rclicks_gpu", "--skip-published"),
    "protonet": measure(150, "training_speed", "--device", "cuda", "--precision", "bfloat16", "--tasks", ""),
    "maml": measure(240, "inner_loop_kernels", "--no-tiles"),
    "maml-loop": measure(300, "training_speed", "--device", "cuda", "--precision", "bfloat16", "--seconds", "5"),
    "ritm": measure(120, *COURSES, "ritm"),
    "simpleclick": measure(120, *COURSES, "simpleclick", "--size", "vit_base", "--precision", "bfloat16"),
    "simpleclick-float32": measure(120, *COURSES, "simpleclick", "--size", "vit_base"),
    "one-shot": measure(300, "one_shot_networks", "--device", "cuda", "--count", "192"),
    "repri": measure(90, "repri_batched", "--device", "cuda"),
    "tiles": measure(240, "inner_loop_kernels"),
    "rclicks-published": measure(240, "rclicks_gpu"),
}


def run_all(measurements: Mapping[str, Measurement], out: Path, seconds: float | None = None) -> list[tuple[str, str]]:
    """The name of each measurement and how it ended."""
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    rows = []
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with (out / "measured.txt").open("ab") as file:

        def write(line: str) -> None:
            print(line, flush=True)
            file.write(f"{line}\n".encode())
            file.flush()

        for name, one in measurements.items():
            left = one.limit if seconds is None else min(one.limit, seconds - (time.monotonic() - started))
            if left <= 0:
                rows.append((name, "left out: the time was used up"))
                continue
            write(f"== {name}: {' '.join(one.arguments)}")
            before = time.monotonic()
            command = [sys.executable, "-u", *one.arguments]
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, timeout=left
                )
                ending = "done" if done.returncode == 0 else f"exit status {done.returncode}"
            except subprocess.TimeoutExpired:
                ending = "stopped: it took too long"
            rows.append((name, f"{ending}, {time.monotonic() - before:.0f} s"))
            write(f"== {name} {rows[-1][1]}")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for measured.txt, what all printed")
    parser.add_argument("--seconds", type=float, help="that all may take together")
    parser.add_argument("--only", nargs="+", choices=ALL, metavar="NAME", help=f"of {', '.join(ALL)}")
    chosen = parser.parse_args(arguments)
    rows = run_all({name: ALL[name] for name in chosen.only or ALL}, chosen.out, chosen.seconds)
    print(*(f"{name:<20} {ending}" for name, ending in rows), sep="\n")
    sys.exit(0 if all(ending.startswith("done") for _, ending in rows) else 1)


if __name__ == "__main__":
    main()
