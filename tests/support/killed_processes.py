"""What the processes of the kill campaign run: `hardlook run` or a served study, which die at a given moment.

A moment is the n-th event of the run: a file of its folder that is opened, renamed, linked or removed, or an image that
the model is asked about. An event comes before what it names, so that a process that dies at a rename has written its
temporary file, and no more.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

from hardlook.models.planted.segmenters import PlantedSegmenter

FILE_EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir"}

ASKED = "killed_processes.asked"


class Segmenter(PlantedSegmenter):
    """A segmenter with mistakes; the first worker process that is asked for the n-th time is killed.

    The variable KILL_WORKER holds n and the file that says that it has happened.
    """

    def __init__(self, seconds: float = 0.001):
        super().__init__(stranger=0.3)
        self.seconds, self.asked = seconds, 0

    def segment(self, images):
        number, _, log = os.environ.get("KILL_WORKER", "").partition(":")
        for _ in images:
            sys.audit(ASKED)
            self.asked += 1
            if number == str(self.asked) and multiprocessing.parent_process() and is_first_kill(log):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(self.seconds)
        return super().segment(images)


def is_first_kill(log):
    """Note a kill in a file; return whether there was none before."""
    try:
        os.close(os.open(log, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def run(out, words, *, event=0, victim="", log="", flush=0.0, planted=""):
    """`hardlook run` with these words in a process group of its own, with a kill at an event; writes no report.

    The victim is main, group or worker. `flush` is the number of seconds after which records are written, `planted`
    names a bug of `BUGS`. Without an event, their number is written to the log.
    """
    os.setsid()
    print(os.getpid(), flush=True)
    from hardlook.cli.app import main
    from hardlook.harness.runs import record_store
    from hardlook.report import run_report

    record_store.FLUSH_SECONDS = flush
    run_report.write_report = lambda scored: None
    if planted:
        BUGS[planted]()
    watched, seen = f"{out}{os.sep}", 0

    def hook(name, arguments):
        nonlocal seen
        if name != ASKED and not (name in FILE_EVENTS and str(arguments[0]).startswith(watched)):
            return
        seen += 1
        if seen == event:
            kill_here(victim, log)

    sys.addaudithook(hook)
    sys.argv = ["hardlook", "run", *words, "--out", out, "-q"]
    try:
        main()
    finally:
        if not event and log:
            Path(log).write_text(str(seen))


def kill_here(victim, log):
    """Kill this process, its group or one of its workers, and note it before."""
    workers = multiprocessing.active_children()
    if victim == "worker" and not workers:
        return
    if is_first_kill(log):
        if victim == "group":
            os.killpg(0, signal.SIGKILL)
        os.kill(workers[0].pid if victim == "worker" else os.getpid(), signal.SIGKILL)


def serve(folder, port, *, planted=""):
    """`hardlook collect serve`, perhaps with a bug of `BUGS`."""
    from hardlook.cli.app import main

    if planted:
        BUGS[planted]()
    sys.argv = ["hardlook", "collect", "serve", folder, "--port", str(port), "--json"]
    main()


def plant_torn_writes():
    """Files are written under their own names, in two halves."""
    from hardlook.harness.runs import record_store

    def write(path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        with path.open("wb") as stream:
            stream.write(data[: len(data) // 2])
        for _ in range(20):
            sys.audit(ASKED)
        with path.open("ab") as stream:
            stream.write(data[len(data) // 2 :])

    record_store.write_atomically = write


def plant_forgotten_unit():
    """A resumed run takes one unit that has no record for answered."""
    import polars as pl

    from hardlook.harness.runs import record_store

    def read(path, columns, *rest):
        frame = read_part(path, columns, *rest)
        if list(columns) == ["unit", "answers"]:
            frame = frame.extend(frame[:1].with_columns(unit=pl.lit("scene-0007")))
        return frame

    read_part = record_store.read_part
    record_store.read_part = read


def plant_dropped_batch():
    """A batch whose worker was killed is not evaluated again."""
    from hardlook.harness.runs.batch_queue import BatchQueue

    BatchQueue.note_lost = lambda self, task, how: None


def plant_early_acknowledgement():
    """The server acknowledges answers that it stores a moment later."""
    from hardlook.collect.store.records import Stored
    from hardlook.collect.store.store import Store

    def answer(self, *arguments):
        threading.Timer(0.1, store, (self, *arguments)).start()
        return Stored(False, False, None, 1, 10)

    store = Store.answer
    Store.answer = answer


BUGS = {
    "torn writes": plant_torn_writes,
    "forgotten unit": plant_forgotten_unit,
    "dropped batch": plant_dropped_batch,
    "early acknowledgement": plant_early_acknowledgement,
}
