"""200 simulated participants at once over loopback: clicks lost or doubled, and how soon one is stored.

Run `python benchmarks/collect_load.py [--participants N] [--batches N] [--database URL]`. A study of planted scenes is
served by `hardlook collect serve` as a process of its own. The participants join within ten seconds, look at every
picture and click, each over a connection of its own. This is done twice: at people's pace (the phases of the study and
a second or two to click) and at full load (phases take no time and participants do not pause); server and crowd share
the machine's processors. The time is from sending a click until the server confirms that it is stored. Printed next to
it is the time that SQLite alone needs for a row of the same kind, one equally durable transaction per row. The script
fails where anything is lost, doubled, changed or shown twice.

`--database` names an empty PostgreSQL database for each of the two, with {} in the place of 1 and 2:
postgresql://user@localhost/load{}. Without it both are SQLite files.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hardlook.collect.rehearsal.participants import simulate_crowd
from hardlook.collect.rehearsal.rehearse import NO_LIMIT, NO_WAITING, Rehearsal, audit_answers
from hardlook.collect.store.store import Store
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.folder import Study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.settings import Limits, StudySettings, Timings
from hardlook.world.planted import PlantedWorld

TARGET_MS = 500.0
THINKING = 1.5
ARRIVING = 10.0


def study_of(folder: Path, participants: int, batches: int, *, real_time: bool) -> Study:
    """As many answers wanted as there will be on either device, so that nobody is sent home."""
    scenes = 120
    wanted = -(-participants * batches * 10 // scenes)
    settings = StudySettings(
        kind="clicks",
        title="Load",
        target_answers=wanted,
        training_tasks=0,
        timings=Timings() if real_time else NO_WAITING,
        limits=Limits(per_participant=NO_LIMIT, per_address=NO_LIMIT, open_batches_per_address=NO_LIMIT),
        open_link=True,
    )
    return make_click_study(folder, list_planted_instances(PlantedWorld(seed=0, count=scenes)), settings)


@contextmanager
def served(study: Study, database: str) -> Iterator[str]:
    """`hardlook collect serve` in a process of its own; gives its address."""
    command = [sys.executable, "-m", "hardlook", "collect", "serve", str(study.path), "--port", "0", "--json"]
    environment = {**os.environ, "HARDLOOK_DATABASE": database}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        process.wait()


def played(study: Study, database: str, participants: int, batches: int, *, real_time: bool) -> Rehearsal:
    """Everybody takes part; what they heard and what is stored."""
    started = time.monotonic()
    thinking = THINKING if real_time else 0.0
    arriving = ARRIVING if real_time else 0.0
    with served(study, database) as address:
        crowd = simulate_crowd(
            study, address, participants=participants, batches=batches, thinking=thinking, arriving=arriving
        )
    seconds = time.monotonic() - started
    with Store.open(database) as store:
        return Rehearsal(
            study, crowd, audit_answers(store, crowd.answers, target=study.settings.target_answers), seconds
        )


def floor_ms(rows: int) -> float:
    """Milliseconds of one insert of a small row into SQLite, as durable as ours: the 99th of 100."""
    with tempfile.TemporaryDirectory() as folder:
        bare = sqlite3.connect(Path(folder) / "bare.sqlite", isolation_level=None)
        bare.execute("pragma journal_mode=wal")
        bare.execute("pragma synchronous=full")
        bare.execute("create table answers (key text primary key, x real, y real)")
        taken = []
        for row in range(rows):
            before = time.perf_counter()
            bare.execute("begin immediate")
            bare.execute("insert into answers values (?, ?, ?)", (f"key-{row}", row / 7, row / 9))
            bare.execute("commit")
            taken.append(time.perf_counter() - before)
        bare.close()
    return 1000 * float(np.quantile(taken, 0.99))


def format_figures(name: str, found: Rehearsal, floor: float, *, judged: bool) -> str:
    """A line of figures; only people's pace has a target, since real people never click at full load."""
    storing = found.as_dict()["storing_ms"]
    p99 = storing["p99"]
    verdict = f"  target {TARGET_MS:.0f} ms {'met' if p99 <= TARGET_MS else 'missed'}" if judged else ""
    return (
        f"{name:<22} {len(found.crowd.answers):>6,} clicks in {found.seconds:6.1f} s  "
        f"median {storing['median']:7.1f} ms  p99 {p99:7.1f} ms{verdict}  "
        f"{p99 / floor:.0f} x the bare insert ({floor:.1f} ms)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--participants", type=int, default=200)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--database", default="")
    asked = parser.parse_args()
    clean = True
    floor = floor_ms(1000)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, real_time) in enumerate((("people's pace", True), ("full load", False)), 1):
            study = study_of(Path(folder) / f"study{number}", asked.participants, asked.batches, real_time=real_time)
            address = asked.database.format(number) or f"sqlite:///{folder}/load{number}.sqlite"
            found = played(study, address, asked.participants, asked.batches, real_time=real_time)
            print(format_figures(name, found, floor, judged=real_time))
            print(f"{'':<22} {found.audit}")
            clean &= found.audit.clean
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
