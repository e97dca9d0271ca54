"""200 simulated participants at once over loopback: clicks lost or doubled, and how soon one is stored.

Run `python benchmarks/collect_load.py [--participants N] [--batches N] [--database URL]`. A study of planted scenes is
served as a user serves it, but on a free port, and the participants join, look at every picture and click, each over a
connection of its own. Twice: at people's pace (the phases of the study and a second or two to click) and flat out (no
phase takes any time, nobody thinks), where the processors of the machine are shared by server and crowd. The time is
from sending a click to hearing that it is stored. Beside it is what the database alone needs for the same rows, one
transaction each and as durable: the floor. The script fails where anything is lost, doubled, changed or shown twice.

`--database` names an empty PostgreSQL database for each of the two, with {} in the place of 1 and 2:
postgresql://user@localhost/load{}. Without it both are SQLite files.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hardlook.collect.rehearsal.rehearse import Rehearsal, rehearse
from hardlook.collect.store.store import Store
from hardlook.collect.study.click_tasks import click_study
from hardlook.collect.study.folder import Study
from hardlook.collect.study.instances_to_click import planted_instances
from hardlook.collect.study.settings import StudySettings
from hardlook.world.planted import PlantedWorld

TARGET_MS = 500.0
THINKING = 1.5


def study_of(folder: Path, participants: int, batches: int) -> Study:
    """Twice as many answers wanted as there will be, so that nobody is sent home."""
    scenes = 120
    wanted = -(-participants * batches * 10 // scenes)
    settings = StudySettings(kind="clicks", title="Load", target_answers=wanted, training_tasks=0)
    return click_study(folder, planted_instances(PlantedWorld(seed=0, count=scenes)), settings)


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


def told(name: str, found: Rehearsal, floor: float) -> str:
    storing = found.as_dict()["storing_ms"]
    p99 = storing["p99"]
    verdict = "met" if p99 <= TARGET_MS else "missed"
    number = len(found.heard.answers)
    return (
        f"{name:<22} {number:>6,} clicks in {found.seconds:6.1f} s  median {storing['median']:7.1f} ms  "
        f"p99 {p99:7.1f} ms  target {TARGET_MS:.0f} ms {verdict}  {p99 / floor:6.0f} x the bare insert ({floor:.1f} ms)"
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
        study = study_of(Path(folder) / "study", asked.participants, asked.batches)
        for number, (name, real_time) in enumerate((("people's pace", True), ("flat out", False)), 1):
            address = asked.database.format(number) or f"sqlite:///{folder}/load{number}.sqlite"
            with Store.open(address) as store:
                found = rehearse(
                    study,
                    store,
                    participants=asked.participants,
                    batches=asked.batches,
                    real_time=real_time,
                    thinking=THINKING if real_time else 0.0,
                )
            print(told(name, found, floor))
            print(f"{'':<22} {found.account}")
            clean &= found.account.clean
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
