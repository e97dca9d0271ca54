"""Runs of a million units and more: what the harness costs per unit, and the time and memory of each command.

Run `python benchmarks/scale.py [--units 1000000]`. The benchmark in this file answers a unit with four numbers at no
cost, so that everything measured is the harness. Each command is a process of its own; processor seconds and peak
memory are those that the system reports for it. The peer of `run` is a loop that makes the same rows and writes them
to one Parquet file.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, LazyUnits, Quality, ScoreMeaning, Unit
from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import Section
from hardlook.harness.stats import ratio
from hardlook.harness.tally import Entry, SumTally, score_tally

UNITS, PEAK = 1_000_000, 500  # MB, at any number of units

# The explorer sorts a whole column at a time.
SORTED_BYTES = 25
CONTEXTS, BATCH = ("beach", "dusk", "fog", "meadow"), 500


class Options(BenchmarkOptions):
    """The size, and the share of right answers."""

    items: int = option(UNITS, "How many units.", changes="units")
    skill: float = option(0.7, "Share of right answers.", changes="answers")
    resamples: int = option(200, "Resamples of the intervals.", changes="scores")
    level: float = option(0.95, "Level of the intervals.", changes="scores")


def make_row(number: int, skill: float) -> dict[str, Any]:
    """The record of a unit: right or wrong by a fixed pattern, in one of four contexts."""
    share = (number * 2654435761 % 4294967296) / 4294967296
    return {
        "unit": f"unit-{number:08d}", "context": CONTEXTS[number % 4], "hit": int(share < skill), "seen": 1,
        "confidence": share,
    }  # fmt: skip


def evaluate(units: Sequence[Unit], model: Any) -> list[Record]:
    """Answer without a model."""
    return [make_row(*unit.payload) for unit in units]


def tally(records: pl.DataFrame, options: Options) -> list[SumTally]:
    """Accuracy over all units and in each context."""
    tallies = []
    for context in ("", *CONTEXTS):
        rows = records.filter(pl.col("context") == context) if context else records
        where = {"context": context} if context else {}
        sums = rows.select("hit", "seen").to_numpy()
        tallies.append(SumTally((Entry("accuracy", len(rows), where),), sums, ratio, ("scale", context), "unit"))
    return tallies


def score(records: pl.DataFrame, options: Options) -> Scorecard:
    """Every accuracy with its interval."""
    scores = [one for part in tally(records, options) for one in score_tally(part, options)]
    return Scorecard(CARD.name, CARD.version, "", tuple(scores))


CARD = BenchmarkCard(
    name="scale", version="1", title="Scale", summary="Units that cost nothing.", role="saliency",
    scores=(ScoreMeaning("accuracy", "accuracy", "share of right answers", headline=True),),
    default_model="planted-saliency", batch_size=BATCH, qualities=(Quality("confidence", "confidence"),),
)  # fmt: skip

SCALE = Benchmark(
    card=CARD,
    options=Options,
    schema=RecordSchema(
        (
            Column("context", "text", "where", "slice"),
            Column("hit", "int", "1 for a right answer"),
            Column("seen", "int", "1"),
            Column("confidence", "float", "a number"),
        )
    ),
    list_units=lambda options: LazyUnits(options.items, lambda n: f"unit-{n:08d}", lambda n: (n, options.skill)),
    evaluate=evaluate,
    score=score,
    report=lambda records, scorecard: [Section("Nothing", "", ())],
    tallies=tally,
    qualities=lambda records, options: records.select("unit", "confidence"),
    additive=True,
)


def measure(words: Sequence[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MB of a command, as the system counts them."""
    start = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stderr is not None
        errors = process.stderr.read()
        cpu, peak = wait_for(process)
    assert process.returncode == 0, f"{' '.join(words)}: {errors.decode()[-2000:]}"
    return time.perf_counter() - start, cpu, peak


def wait_for(process: subprocess.Popen[Any]) -> tuple[float, float]:
    """Processor seconds and peak MB of a process that ends."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def write_bare(units: int, out: str) -> None:
    """The peer: the same rows without a harness, in one Parquet file."""
    frames, rows = [], []
    for number in range(units):
        rows.append(make_row(number, 0.7))
        if len(rows) == 5000:
            frames.append(pl.DataFrame(rows))
            rows = []
    pl.concat([*frames, *([pl.DataFrame(rows)] if rows else [])]).write_parquet(out)


def open_in_explorer(root: Path, environment: dict[str, str]) -> tuple[float, float, float]:
    """Wall seconds of the first open of a run in `hardlook serve`, and the server's processor seconds and peak MB."""
    words = [sys.executable, "-m", "hardlook", "serve", str(root), "--port", "0", "--json"]
    words += ["--benchmark", "scale:SCALE"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=3600)
        page = get(connection, "/")
        start = time.perf_counter()
        get(connection, "/run/" + page.split("/run/")[1].split('"')[0])
        wall = time.perf_counter() - start
        server.terminate()
        return wall, *wait_for(server)


def get(connection: http.client.HTTPConnection, path: str) -> str:
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read().decode()
    assert answer.status == 200, content[:300]
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=UNITS)
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        write_bare(given.units, given.bare)
        return
    units, python = given.units, [sys.executable]
    # Seconds at a million units, in proportion above; microseconds of processor time per unit for `run`.
    targets = {"run": 8.0, "resume": 3.0, "score": 3.0, "compare": 10.0, "export": 8.0, "serve": 5.0}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        environment = {
            **os.environ, "HARDLOOK_CACHE": f"{name}/cache",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        hardlook = [*python, "-m", "hardlook"]
        size = ["--items", str(units), "--quiet", "--json"]
        runs = [[*hardlook, "run", "scale:SCALE", *size, "--skill", skill, "--out", f"{name}/runs/skill{skill}"]
                for skill in (".7", ".71")]  # fmt: skip
        start = measure([*hardlook, "--version"], environment)[1]
        print(f"{units:,} units; start of the interpreter {start:.1f} s; processor seconds, wall seconds, peak memory")

        def show(work: str, took: tuple[float, float, float], target: float | None, per_unit: bool = False) -> None:
            wall, cpu, peak = took
            each = f"  {(cpu - start) / units * 1e6:5.1f} us per unit" if per_unit else ""
            scaled = None if target is None else target * (1 if per_unit else max(units / UNITS, 1))
            value = (cpu - start) / units * 1e6 if per_unit else wall
            verdict = "" if scaled is None else f"  target {scaled:g}: {'met' if value <= scaled else 'MISSED'}"
            most = PEAK + (SORTED_BYTES * units / 1e6 if work.startswith("first open") else 0)
            memory = f"  {most:.0f} MB: {'met' if peak <= most else 'MISSED'}" if scaled is not None else ""
            print(f"{work:24} {cpu:7.1f} {wall:7.1f} {peak:6.0f} MB{each}{verdict}{memory}", flush=True)

        show("bare loop and Parquet", measure([*python, __file__, "--units", str(units), "--bare", f"{name}/bare"],
                                              environment), None, True)  # fmt: skip
        show("run", measure(runs[0], environment), targets["run"], True)
        show("resume a complete run", measure(runs[0], environment), targets["resume"])
        measure(runs[1], environment)
        first, second = f"{name}/runs/skill.7", f"{name}/runs/skill.71"
        show("score", measure([*hardlook, "score", first, "--json"], environment), targets["score"])
        show("compare", measure([*hardlook, "compare", first, second, "--out", f"{name}/compared"], environment),
             targets["compare"])  # fmt: skip
        show("export", measure([*hardlook, "export", first, "--out", f"{name}/exported"], environment),
             targets["export"])  # fmt: skip
        show("first open in explorer", open_in_explorer(root / "runs", environment), targets["serve"])


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
