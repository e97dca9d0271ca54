"""The explorer on a run of a million records: how long each kind of page takes, against a target of 300 ms.

Run `python benchmarks/explorer.py [--records N]`. Two runs of closed mIoU are made from real answers
to planted scenes: every record takes the confusion cells and the stored map of one of them, with pixel counts of its
own, so that the qualities are computed and all different. They are written as the harness writes them, in parts of
5,000. A server is started as a user starts it, and asked over one connection; every request of a kind asks something
else, so that no page is answered from memory. Times are from sending a request to having the whole page; beside them is
the processor time that the server spent on a request, which other work on the machine hardly changes.

First thumbnails: a page is asked for, then the pictures that a screen shows at first, over six connections, as a
browser does. The time is from sending the request of the page to having the first and the last of these pictures; the
target is a second. Pages and ids one after another show units that were not drawn before; the other kinds often show
units of the request before, whose pictures the server keeps.

`--benchmark metacoco` and `--benchmark toss` measure first thumbnails of runs of these: their records are those of a
small run, again and again, under the ids of a million tasks, or of a million pairs in lists of planted images on disk.
"""

import argparse
import contextlib
import html
import http.client
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import polars as pl

from hardlook.data.toss_pairs import locate_tier_list, write_pairs
from hardlook.harness.options import parse_options
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.randomness import generator
from hardlook.toss.options import TossOptions
from hardlook.toss.planted_pairs import list_planted_pairs
from hardlook.world.layouts import write_world

RECORDS, PART, SCENES, REQUESTS = 1_000_000, 5_000, 256, 20
TARGET_MS = 300.0
# What a screen of 1280 x 900 shows of the grid, and how many connections a browser opens to one server.
FIRST_THUMBNAILS, CONNECTIONS, FIRST_TARGET_MS = 12, 6, 1000.0
FAULTS = {"strange": {"stranger": 0.3}, "ragged": {"ragged": 0.6}}


def write_run(out: Path, model_args: dict[str, float], records: int) -> None:
    """A run of that many records from real answers to a few scenes."""
    given = {"scenes": SCENES, "resamples": 50}
    done = launch("closed-miou", out=out, model="planted-segmenter", model_args=model_args, given=given)
    folder, answers = RunFolder(out), done.scored.manifest["answers"]["fingerprint"] if done.scored else ""
    real = pl.read_parquet(out / "records" / "part-*.parquet").sort("unit")
    for part in folder.records_path.glob("*.parquet"):
        part.unlink()
    rng = generator(0, "explorer benchmark", out.name)
    for start in range(0, records, PART):
        count = min(PART, records - start)
        frame = real[rng.integers(0, len(real), count)].with_columns(
            pl.Series("unit", [f"scene-{index:04d}" for index in range(start, start + count)]),
            answers=pl.lit(answers),
        )
        pixels = (
            frame["pixels"].explode().to_numpy() * rng.integers(20, 180, int(frame["pixels"].list.len().sum())) // 100
        )
        flat = pl.DataFrame({"row": np.repeat(np.arange(count), frame["pixels"].list.len()), "pixels": pixels + 1})
        frame = frame.with_columns(flat.group_by("row", maintain_order=True).agg("pixels")["pixels"])
        frame.write_parquet(folder.records_path / f"part-{start:09d}.parquet")
    manifest = folder.read_manifest()
    manifest["options"]["scenes"] = manifest["units"] = records
    folder.manifest_path.write_text(json.dumps(manifest))


def write_task_run(root: Path, records: int) -> Path:
    """A run of MetaCoCo with that many tasks of the planted world."""
    given = {"tasks": SCENES // 4, "resamples": 0}
    options = {"tasks": records // 4}
    return repeat_records(root / "tasks", "metacoco", "planted-learner", given, options, "mode")


def write_pair_run(root: Path, records: int) -> Path:
    """A run of TOSS on that many pairs, in lists of tier 1 beside planted images on disk."""
    files = root.parent / "files"
    voc = write_world(files / "voc", "voc", count=96)
    planted = list_planted_pairs(TossOptions(scenes=96), (1,), (0, 1, 2, 3), fixed=False)
    rng = generator(0, "explorer benchmark", "pairs")
    for place, count in (("few", SCENES), ("many", records)):
        for _, pairs in planted:
            some = [pairs[row] for row in rng.integers(0, len(pairs), count // len(planted))]
            named = [replace(one, query=_name_token(one.query), support=_name_token(one.support)) for one in some]
            file = locate_tier_list(files / place, 1, pairs[0].fold, pairs[0].split)
            write_pairs(file.path, [replace(one, line=0) for one in named])
    given = {"data": {"voc": voc, "pairs": files / "few"}, "tiers": "1", "resamples": 0}
    options = {"data": {"voc": str(voc), "pairs": str(files / "many")}}
    return repeat_records(root / "pairs", "toss", "planted-one-shot", given, options, "split")


def _name_token(token: str) -> str:
    """`3_0007`, the third concept in scene 7, as its devkit names it."""
    number, _, scene = token.partition("_")
    return f"{number}_2026_{int(scene) + 1:06d}"


def repeat_records(out: Path, name: str, model: str, given: dict[str, Any], options: dict[str, Any], kind: str) -> Path:
    """A run with these options whose records are those of a small run with `given`, by the column `kind`."""
    done = launch(name, out=out, model=model, given=given)
    assert done.scored is not None
    folder, manifest = RunFolder(out), done.scored.manifest
    real = pl.read_parquet(out / "records" / "part-*.parquet")
    for part in folder.records_path.glob("*.parquet"):
        part.unlink()
    manifest["options"].update(options)
    benchmark = done.scored.benchmark
    start = time.process_time()
    listed = benchmark.list_units(parse_options(benchmark.options, manifest["options"]))
    print(f"{name}: listing {len(listed):,} units takes {time.process_time() - start:.1f} s of processor time")
    groups = {value: rows for (value,), rows in real.group_by(kind, maintain_order=True)}
    rng = generator(0, "explorer benchmark", name)
    kinds_of_units = [getattr(unit.payload, kind, "") or unit.payload.slices[kind] for unit in listed]
    units = pl.DataFrame({"unit": [unit.id for unit in listed], kind: kinds_of_units})
    for (value,), own in units.group_by(kind, maintain_order=True):
        rows = groups[value][rng.integers(0, len(groups[value]), len(own))].with_columns(own["unit"])
        for start_row in range(0, len(rows), PART):
            rows[start_row : start_row + PART].write_parquet(
                folder.records_path / f"part-{value}-{start_row:09d}.parquet"
            )
    manifest["units"] = len(listed)
    folder.manifest_path.write_text(json.dumps(manifest))
    return out


class Browser:
    """One connection to the server, and the page that it showed last."""

    def __init__(self, address: str, server: int) -> None:
        self.server, self.address = server, address
        self.connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=600)
        self.page, self.kind = "", ""

    def seconds(self, path: str) -> float:
        """Ask for a page; how long it took."""
        start = time.perf_counter()
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        content = answer.read()
        took = time.perf_counter() - start
        assert answer.status == 200, f"{path}: {answer.status} {content[:300]!r}"
        self.page, self.kind = content.decode(errors="replace"), answer.headers["content-type"]
        return took

    def processor_seconds(self) -> float:
        """What the server has spent so far; not known where there is no /proc."""
        try:
            fields = Path(f"/proc/{self.server}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return float("nan")
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def served(root: Path, cache: Path) -> Iterator[Browser]:
    words = [sys.executable, "-m", "hardlook", "serve", str(root), "--port", "0", "--json"]
    environment = {**os.environ, "HARDLOOK_CACHE": str(cache)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield Browser(json.loads(server.stdout.readline())["address"], server.pid)
        finally:
            server.terminate()


def keys(browser: Browser) -> dict[str, str]:
    browser.seconds("/")
    rows = [row for row in browser.page.split("data-row")[1:] if "/run/" in row]
    return {row.split("</a>")[0].split(">")[-1]: row.split("/run/")[1].split('"')[0] for row in rows}


def kinds(first: str, second: str, records: int, view: str = "grid") -> dict[str, Callable[[int], str]]:
    """Each kind of page as an address for the n-th request."""

    def add_view(address: Callable[[int], str]) -> Callable[[int], str]:
        return lambda n: f"{address(n)}&view={view}"

    addresses = _list_addresses(first, second, records)
    return {f"{name}, {view}": add_view(address) for name, address in addresses.items()}


def _list_addresses(first: str, second: str, records: int) -> dict[str, Callable[[int], str]]:
    run, contexts = f"/run/{first}", ("beach", "dusk", "fog", "meadow", "night", "street", "winter", "autumn")
    return {
        "page after page": lambda n: f"{run}?page={n + 2}",
        "deep page": lambda n: f"{run}?page={records // 50 - n}",
        "sort by quality": lambda n: f"{run}?sort=image-miou&order=down&min.image-miou={n / 1000}",
        "sort by another column": lambda n: (
            f"{run}?sort=ignored&order={('up', 'down')[n % 2]}&min.image-miou={n / 999}"
        ),
        "slice and range": lambda n: f"{run}?is.context={contexts[n % 8]}&min.image-miou=.{n + 10}&max.image-miou=.9",
        "text in the id": lambda n: f"{run}?q={n + 100}",
        "compare": lambda n: f"/compare?first={first}&second={second}&page={n + 1}",
        "compare, filtered": lambda n: f"/compare?first={first}&second={second}&is.better=first&min.apart=.0{n + 10}",
    }


def unit_kinds(run: str, records: int) -> dict[str, Callable[[int], str]]:
    """The kinds of page that draw a unit."""

    def unit(n: int) -> str:
        return quote(f"scene-{(n + 1) * records // 23:04d}")

    return {
        "unit": lambda n: f"/run/{run}/unit?id={unit(n)}",
        "picture": lambda n: f"/run/{run}/picture?id={unit(n)}&number=2",
    }


class ThumbnailReader:
    """Opens a page and its first thumbnails as a browser does: the page, then pictures over several connections."""

    def __init__(self, browser: Browser) -> None:
        self.page = browser
        self.others = [Browser(browser.address, browser.server) for _ in range(CONNECTIONS)]

    def seconds(self, path: str) -> tuple[float, float, float]:
        """Until the page, its first thumbnail and the last of the first ones are there, each from the request on."""
        start = time.perf_counter()
        paged = self.page.seconds(path)
        shown = re.findall('<img src="([^"]*)"', self.page.page)[:FIRST_THUMBNAILS]
        assert len(shown) == FIRST_THUMBNAILS, f"{path}: a page with {len(shown)} thumbnails"
        waiting = queue.SimpleQueue[str]()
        for address in shown:
            waiting.put(html.unescape(address))

        def read(connection: Browser) -> list[float]:
            done = []
            with contextlib.suppress(queue.Empty):
                while True:
                    address = waiting.get_nowait()
                    connection.seconds(address)
                    assert connection.kind == "image/jpeg", f"{address}: {connection.kind}"
                    done.append(time.perf_counter() - start)
            return done

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            ends = [end for done in pool.map(read, self.others) for end in done]
        return paged, min(ends), max(ends)


def say_first_thumbnails(reader: ThumbnailReader, what: str, path: str) -> None:
    paged, first, last = reader.seconds(path)
    print(f"{what:42} {paged:8.2f} s the page, {first:.2f} s the first thumbnail, {last:.2f} s {FIRST_THUMBNAILS}")


def measure_first_thumbnails(browser: Browser, some: dict[str, Callable[[int], str]]) -> None:
    """The kinds with a grid: milliseconds until the page, the first thumbnail and all first thumbnails are there."""
    reader = ThumbnailReader(browser)
    print(f"\n{'first thumbnails':42} {'page':>8} {'first':>8} {'all p50':>8} {'all p95':>8} {'target':>8}")
    for name, address in some.items():
        times = np.array([reader.seconds(address(n)) for n in range(REQUESTS)]) * 1e3
        (page, first, last), p95 = np.percentile(times, 50, axis=0), np.percentile(times[:, 2], 95)
        met = "met" if p95 < FIRST_TARGET_MS else "MISSED"
        print(f"{name:42} {page:8.0f} {first:8.0f} {last:8.0f} {p95:8.0f} {FIRST_TARGET_MS:8.0f} ms {met}", flush=True)


def say_once(browser: Browser, what: str, path: str) -> None:
    print(f"{what:42} {browser.seconds(path):8.2f} s", flush=True)


def measure(browser: Browser, some: dict[str, Callable[[int], str]]) -> None:
    print(f"\n{'':42} {'p50':>8} {'p95':>8} {'target':>8}        {'processor':>10}")
    for name, address in some.items():
        before = browser.processor_seconds()
        times = np.array([browser.seconds(address(n)) for n in range(REQUESTS)]) * 1e3
        spent = (browser.processor_seconds() - before) / REQUESTS * 1e3
        p50, p95 = np.percentile(times, (50, 95))
        met = "met" if p95 < TARGET_MS else "MISSED"
        print(f"{name:42} {p50:8.0f} {p95:8.0f} {TARGET_MS:8.0f} ms {met:6} {spent:7.0f} ms", flush=True)


def measure_other(name: str, records: int) -> None:
    """First thumbnails of a run of MetaCoCo or TOSS."""
    with tempfile.TemporaryDirectory() as made:
        root, cache = Path(made) / "runs", Path(made) / "cache"
        run = (write_task_run if name == "metacoco" else write_pair_run)(root, records)
        with served(root, cache) as browser:
            key = keys(browser)[run.name]
            say_first_thumbnails(ThumbnailReader(browser), "first open ever (the table is gathered)", f"/run/{key}")
        with served(root, cache) as browser:
            keys(browser)
            say_first_thumbnails(ThumbnailReader(browser), "first open of a server (from the cache)", f"/run/{key}")
            addresses = {
                "page after page": lambda n: f"/run/{key}?page={n + 2}",
                "deep page": lambda n: f"/run/{key}?page={records // 50 - n}",
            }
            measure_first_thumbnails(browser, addresses)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--records", type=int, default=RECORDS)
    words.add_argument("--benchmark", choices=("closed-miou", "metacoco", "toss"), default="closed-miou")
    asked = words.parse_args()
    if asked.benchmark != "closed-miou":
        return measure_other(asked.benchmark, asked.records)
    with tempfile.TemporaryDirectory() as made:
        root, cache = Path(made) / "runs", Path(made) / "cache"
        for name, faults in FAULTS.items():
            write_run(root / name, faults, asked.records)
        print(f"{asked.records:,} records a run; seconds once, then milliseconds of {REQUESTS} requests each")
        with served(root, cache) as browser:
            first, second = (keys(browser)[name] for name in FAULTS)
            say_first_thumbnails(ThumbnailReader(browser), "first open ever (the table is gathered)", f"/run/{first}")
        with served(root, cache) as browser:
            keys(browser)
            reader = ThumbnailReader(browser)
            say_first_thumbnails(reader, "first open of a server (from the cache)", f"/run/{first}")
            say_once(browser, "first comparison (second table gathered)", f"/compare?first={first}&second={second}")
            asked_for = kinds(first, second, asked.records)
            # Before the plain pages, which draw the first unit of a page and so would leave a thumbnail less to draw.
            measure_first_thumbnails(browser, asked_for)
            measure(browser, kinds(first, second, asked.records, view="table"))
            measure(browser, unit_kinds(first, asked.records))


if __name__ == "__main__":
    main()
