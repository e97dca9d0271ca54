"""Damaged files by the thousand, each read in a child process: every input ends in a result or in one `HardlookError`.

A server process imports the readers once and forks a child for each chunk of inputs, so that an abort, a hang or too
much memory costs one child, is counted with its input, and the next child goes on behind it. Inputs depend on seed,
reader and number alone. Started as a program it reads its share of the inputs and prints what it found as JSON:

    python tests/support/fuzz_engine.py --inputs 1000000 --jobs 2 --keep FOLDER --journal FOLDER/journal.jsonl
    python tests/support/fuzz_engine.py --replay FOLDER/READER-NUMBER

The latter reads one stored input in this process, with its traceback. With a journal, an interrupted call goes on where
it was: chunks that were read without a failure are not read again.
"""

import argparse
import json
import mmap
import os
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from fuzz_mutations import make_generator, mutate

SECONDS = 10.0  # processor time of one input, unless --seconds says otherwise
PATIENCE = 60.0  # seconds on the clock, for an input that waits without working
ADDED_BYTES = 1_000_000_000
ADDRESS_BYTES = 6 << 30  # beyond what the process has: keeps a runaway input from the machine's memory
LONGEST_ERROR = 6000
CHUNK = 2000
MAX_KEPT = 500
ENGINE_FAILED = 70
_STATE = struct.Struct("qd")


@dataclass(frozen=True)
class Reader:
    """`make(folder)` writes valid files, `files` of which are damaged one at a time; `read(folder)` reads them.

    `share` is the part of the inputs that it gets, relative to the others. `place(folder, name, data)` stores a
    damaged file where plain writing is not enough.
    """

    name: str
    make: object
    files: tuple
    read: object
    share: float = 1.0
    place: object = None


@dataclass(frozen=True)
class Chunk:
    reader: str
    start: int
    stop: int


def plan_chunks(readers, inputs):
    """Chunks of inputs over all readers, by their shares."""
    total = sum(reader.share for reader in readers)
    chunks = []
    for reader in readers:
        count = max(1, round(inputs * reader.share / total))
        chunks += [Chunk(reader.name, start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    return chunks


def read_journal(journal, seed):
    """The chunks of this seed that were read without a failure; a last line that was cut off does not count."""
    chunks = set()
    for line in journal.read_text().splitlines() if journal and journal.exists() else []:
        try:
            known, *chunk = json.loads(line)
        except ValueError:
            continue
        if known == seed:
            chunks.add(Chunk(*chunk))
    return chunks


def make_input(reader, originals, seed, number):
    """The name of the damaged file and its content."""
    rng = make_generator(seed, reader.name, number)
    name = rng.choice(reader.files)
    return name, mutate(originals[name], rng)


def check_input(reader, folder):
    """What is wrong with reading the folder: ('', '') or a kind and a text."""
    from hardlook.errors import HardlookError

    try:
        reader.read(folder)
    except HardlookError as error:
        cause = error
        while (cause := cause.__cause__ or cause.__context__) is not None:
            if isinstance(cause, MemoryError):
                return "memory asked for before it was checked", _format(cause)
        if not error.file:
            return "the error names no file", _format(error)
        if len(str(error)) > LONGEST_ERROR:
            return "an overlong error", f"{len(str(error))} characters: {_format(error)[-500:]}"
        return "", ""
    except BaseException as error:
        return f"uncaught {type(error).__name__}", _format(error)
    return "", ""


def _format(error):
    lines = traceback.format_exception(error)
    text = "".join(lines)
    return text if len(text) < 6000 else text[:1000] + "\n...\n" + text[-4000:]


class Server:
    """Forks a child for each chunk, and one more behind each input that ended or outlived its child."""

    def __init__(self, readers, seed, work, keep, seconds=SECONDS, journal=None):
        self.readers = {reader.name: reader for reader in readers}
        self.seed, self.work, self.keep, self.seconds = seed, work, keep, seconds
        self.state = mmap.mmap(-1, _STATE.size)
        self.failures, self.journal = [], journal
        self.slowest, self.largest = (0.0, ""), (0, "")
        self.done = 0
        self.cpu_seconds = {}
        self._seen = (0, 0, 0.0)

    def run(self, chunks):
        for chunk in chunks:
            start, before, failed = chunk.start, _children_seconds(), len(self.failures)
            while start < chunk.stop:
                start = self._run_child(chunk.reader, start, chunk.stop)
            self.done += chunk.stop - chunk.start
            self.cpu_seconds[chunk.reader] = self.cpu_seconds.get(chunk.reader, 0.0) + _children_seconds() - before
            if self.journal and len(self.failures) == failed:
                with self.journal.open("a") as stream:
                    stream.write(f"{json.dumps([self.seed, chunk.reader, chunk.start, chunk.stop])}\n")

    def _run_child(self, name, start, stop):
        """Read inputs in a child; the number to go on with."""
        self.state[:] = _STATE.pack(start, time.monotonic())
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(self.readers[name], self.seed, start, stop, self.work, self.state, writing, self.seconds)
        os.close(writing)
        text, killed = b"", ""
        while True:
            if select.select([reading], [], [], 1.0)[0]:
                block = os.read(reading, 1 << 16)
                if not block:
                    break
                text += block
                continue
            number, began = _STATE.unpack(self.state[:])
            waited = time.monotonic() - began
            if waited > self.seconds and _cpu_seconds(child) > self._base_seconds(child, number) + self.seconds:
                killed = f"more than {self.seconds:g} seconds of processor time"
            elif waited > PATIENCE:
                killed = f"more than {PATIENCE:g} seconds"
            if killed:
                os.kill(child, signal.SIGKILL)
                break
        os.close(reading)
        _, status = os.waitpid(child, 0)
        number, _ = _STATE.unpack(self.state[:])
        for line in text.decode().splitlines():
            row = json.loads(line)
            if "slowest" in row:
                self.slowest = max(self.slowest, (row["slowest"][0], f"{name}-{row['slowest'][1]}"))
                self.largest = max(self.largest, (row["largest"][0], f"{name}-{row['largest'][1]}"))
            else:
                self._note(name, row["number"], row["kind"], row["text"])
        if killed:
            self._note(name, number, "hang", killed)
        elif os.WIFSIGNALED(status):
            self._note(name, number, f"abort by {signal.Signals(os.WTERMSIG(status)).name}", "")
        elif os.WEXITSTATUS(status) == ENGINE_FAILED:
            raise RuntimeError(f"the engine failed at {name}-{number}: are its valid files read?")
        elif os.WEXITSTATUS(status):
            self._note(name, number, f"exit {os.WEXITSTATUS(status)}", "")
        return number + 1

    def _base_seconds(self, child, number):
        """The processor time of a child when it was first seen at this input."""
        if self._seen[:2] != (child, number):
            self._seen = (child, number, _cpu_seconds(child))
        return self._seen[2]

    def _note(self, name, number, kind, text):
        kept = self.keep / f"{name}-{number}"
        if not kept.exists() and len(self.failures) < MAX_KEPT:
            run_in_child(lambda: self._store(self.readers[name], number, kept))
        self.failures.append({"reader": name, "number": number, "kind": kind, "text": text, "kept": str(kept)})

    def _store(self, reader, number, kept):
        source = self.work / f"{reader.name} whole"
        shutil.copytree(source, kept)
        originals = {one: (source / one).read_bytes() for one in reader.files}
        (reader.place or _place)(kept, *make_input(reader, originals, self.seed, number))


def _cpu_seconds(child):
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _place(folder, name, data):
    (folder / name).write_bytes(data)


def _work(reader, seed, start, stop, work, state, writing, seconds):
    """Read inputs, and never return: what happens is written to the pipe as JSON lines."""
    code = 0
    try:
        _limit_memory()
        terminal = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        warnings.simplefilter("ignore")
        out = os.fdopen(writing, "w", buffering=1)
        source, folder = work / f"{reader.name} whole", Path(tempfile.mkdtemp(dir=work))
        originals = {one: (source / one).read_bytes() for one in reader.files}
        shutil.copytree(source, folder, dirs_exist_ok=True)
        reader.read(folder)  # valid files, and what a first call loads, are not counted
        before = _peak_bytes()
        slowest, largest, last = (0.0, 0), (0, 0), None
        for number in range(start, stop):
            name, data = make_input(reader, originals, seed, number)
            if last not in (None, name) or reader.place:
                shutil.rmtree(folder)
                shutil.copytree(source, folder)
            (reader.place or _place)(folder, name, data)
            last = name
            state[:] = _STATE.pack(number, time.monotonic())
            began = time.process_time()
            kind, text = check_input(reader, folder)
            took, added = time.process_time() - began, _peak_bytes() - before
            slowest, largest = max(slowest, (took, number)), max(largest, (added, number))
            if not kind and took > seconds:
                kind, text = "hang", f"{took:.1f} seconds of processor time"
            if not kind and added > ADDED_BYTES:
                kind, text = "memory", f"{added / 1e6:.0f} MB added"
            if kind:
                out.write(json.dumps({"number": number, "kind": kind, "text": text}) + "\n")
            if added > ADDED_BYTES:
                break  # the peak of a process never falls: the next inputs get a child of their own
        out.write(json.dumps({"slowest": slowest, "largest": largest}) + "\n")
        out.flush()
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        code = ENGINE_FAILED
        os.write(terminal, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _limit_memory():
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_BYTES, used + ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_in_child(work):
    """Call a function in a child, as threads that a library starts here would be missing from later children."""
    child = os.fork()
    if child == 0:
        code = ENGINE_FAILED
        try:
            warnings.simplefilter("ignore")
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError("a child of the engine failed")


def _make_originals(readers, work):
    for reader in readers:
        folder = work / f"{reader.name} whole"
        folder.mkdir()
        reader.make(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="processor time that one input may take")
    parser.add_argument("--readers", default="fuzz_readers:READERS", help="module:attribute")
    parser.add_argument("--only", default="", help="readers whose name contains this")
    parser.add_argument("--keep", type=Path, default=None, help="folder for inputs that failed")
    parser.add_argument("--journal", type=Path, default=None, help="file of what has been read without a failure")
    parser.add_argument("--replay", type=Path, default=None)
    given = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM", "POLARS_MAX_THREADS"):
        os.environ.setdefault(variable, "1")
    module, _, attribute = given.readers.partition(":")
    readers = [one for one in getattr(__import__(module), attribute) if given.only in one.name]
    if given.replay:
        by_name = {one.name: one for one in readers}
        by_name[given.replay.name.rpartition("-")[0]].read(given.replay)
        return
    began = time.monotonic()
    shared = Path("/dev/shm")
    work = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None, prefix="hardlook-fuzz-"))
    keep = given.keep or Path(tempfile.mkdtemp(prefix="hardlook-fuzz-failed-"))
    tempfile.tempdir = str(work)  # what readers leave behind goes with it
    os.environ["HARDLOOK_CACHE"] = str(work / "cache")
    try:
        run_in_child(lambda: _make_originals(readers, work))
        planned, read = plan_chunks(readers, given.inputs), read_journal(given.journal, given.seed)
        chunks = [chunk for chunk in planned if chunk not in read]
        before = sum(chunk.stop - chunk.start for chunk in planned if chunk in read)
        children = []
        for job in range(given.jobs):
            place = work / f"job-{job}.json"
            child = os.fork()
            if child == 0:
                code = 0
                try:
                    server = Server(readers, given.seed, work, keep, given.seconds, given.journal)
                    server.run(chunks[job :: given.jobs])
                    found = {"inputs": server.done, "failures": server.failures, "cpu": server.cpu_seconds}
                    place.write_text(json.dumps({**found, "slowest": server.slowest, "largest": server.largest}))
                except BaseException:
                    traceback.print_exc()
                    code = 72
                finally:
                    os._exit(code)
            children.append((child, place))
        for child, _ in children:
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                raise SystemExit("the engine failed")
        parts = [json.loads(place.read_text()) for _, place in children]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report = {
        "inputs": before + sum(part["inputs"] for part in parts),
        "read before": before,
        "readers": len(readers),
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(_children_seconds() + time.process_time(), 1),
        "by_reader": {
            reader.name: round(sum(part["cpu"].get(reader.name, 0.0) for part in parts), 2) for reader in readers
        },
        "slowest": max(part["slowest"] for part in parts),
        "largest": max(part["largest"] for part in parts),
        "failures": [one for part in parts for one in part["failures"]],
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
