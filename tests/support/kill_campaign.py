"""A campaign of kills: runs on every engine and served studies, killed again and again, then compared with others.

A round is drawn from its number alone: the engine, the victims, the moments. So any round can be repeated, and a
campaign that was interrupted goes on with the next one:

    HARDLOOK_KILLS=1000 HARDLOOK_KILLS_KEEP=kept pytest -s tests/harness/runs/test_kill_campaign.py
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
from collections import Counter
from pathlib import Path

import polars as pl
from command_server import python_command
from served_studies import change_settings, free_port, init
from small_runs import all_records, scores_text
from watched_processes import wait_until

SUPPORT = Path(__file__).parent

ENGINES = ("inline", "processes", "ray", "collect")

# Rounds of each engine in a hundred, after a first one of each; a round of a study has more kills, one of Ray takes
# longest.
SHARES = (42, 36, 9, 13)

KILLS = {"inline": 5, "processes": 5, "ray": 4, "collect": 8}

VICTIMS = {"inline": ("main", "group"), "processes": ("main", "worker", "worker", "group"), "collect": ("server",)}

SCENES, BATCH = 16, 2

# Launches that may end with an error, in a row, before a run counts as one that cannot be resumed.
MAX_ERRORS = 3

LONGEST = 180  # seconds of a launch

TIMED_OUT = 124

PEOPLE = 6

# What must be 0: records lost, records or results changed, exits of 0 with units missing, runs that cannot be resumed,
# and runs that ended with their worker or node.
WRONG = ("lost", "changed", "false exits", "unfinished", "stopped")


class Campaign:
    """The undisturbed runs, the cluster and the folder of a campaign.

    `planted` names a bug; with `only_events` no kill depends on a clock: the main process dies at an event, and every
    record is written at once.
    """

    def __init__(self, folder, planted="", only_events=False):
        self.folder, self.planted, self.only_events = Path(folder), planted, only_events
        self.folder.mkdir(parents=True, exist_ok=True)
        self.undisturbed, self.events, self.seconds = {}, {}, {}
        self.cluster = None
        self.study = None

    def close(self):
        if self.cluster is not None:
            self.cluster.close()

    def play_until(self, wanted):
        """Play rounds until there were so many kills, those in the journal included; all rounds."""
        journal = self.folder / "journal.jsonl"
        rounds = read_journal(journal)
        # Without the line that an interruption may have cut off.
        journal.write_text("".join(f"{json.dumps(played)}\n" for played in rounds))
        while sum(played["kills"] for played in rounds) < wanted:
            rounds.append(self.play(1 + max((played["round"] for played in rounds), default=-1)))
            with journal.open("a") as stream:
                stream.write(f"{json.dumps(rounds[-1])}\n")
        return rounds

    def play(self, number, engines=ENGINES, kills=None):
        """Play the round of a number; the counts of what happened, by name."""
        draw = random.Random(f"round {number}")
        shares = [SHARES[ENGINES.index(engine)] for engine in engines]
        drawn = draw.choices(engines, shares)[0]
        engine = engines[number] if number < len(engines) else drawn
        path = Path(tempfile.mkdtemp(prefix=f"round-{number}-", dir=self.folder))
        kills = kills or KILLS[engine]
        if engine == "collect":
            counts = self.kill_server(path, draw, kills)
        else:
            counts = self.kill_runs(path, number, engine, kills)
        if not any(counts[name] for name in WRONG):
            shutil.rmtree(path)
        return {"round": number, "engine": engine, "folder": str(path), **counts}

    # Runs.

    def kill_runs(self, path, number, engine, kills):
        """Runs that are killed until there were so many kills, each resumed until it ends."""
        reference = self.find_undisturbed(engine)
        counts, run, is_resumed, errors = Counter(), 0, False, 0
        while True:
            out, missing, started = path / f"run-{run}", kills - counts["kills"], time.monotonic()
            draw = random.Random(f"round {number} launch {counts['launches']}")
            if engine == "ray":
                code, killed, message = self.kill_ray(out, draw, missing)
            else:
                code, killed, message = self.kill_run(out, draw, engine, missing)
            if code == 0 and not is_resumed:
                # So that kills at a time rarely come too late.
                self.seconds[engine] = min(self.seconds[engine], time.monotonic() - started)
            counts["launches"] += 1
            counts["resumed"] += is_resumed
            for victim in killed:
                counts["kills"] += 1
                counts[f"kills of {victim}"] += 1
            ended = any(victim in ("main", "group", "driver") for victim in killed)
            if ended:
                counts[f"killed {describe_state(out)}{', resumed' if is_resumed else ''}"] += 1
            elif killed and code:
                counts["stopped"] += 1
                out.with_name(f"{out.name}.stopped").write_text(message)
            is_resumed = out.exists()
            if code == TIMED_OUT:
                counts["unfinished"] += 1
                return counts
            if code == 0:
                lost, changed = compare_runs(out, reference)
                counts += Counter({"lost": lost, "changed": changed, "false exits": int(lost > 0)})
                counts["runs"] += 1
                counts["records"] += SCENES
                run, is_resumed, errors = run + 1, False, 0
                if counts["kills"] >= kills:
                    return counts
            elif not killed:
                errors += 1
                out.with_name(f"{out.name}.errors").write_text(message)
                if errors > MAX_ERRORS:
                    counts["unfinished"] += 1
                    return counts

    def kill_run(self, out, draw, engine, missing):
        """Launch a run inline or with processes, and kill it once; without `missing` kills, let it end."""
        log = out.with_name(f"{out.name}-{draw.getrandbits(32):08x}")
        if not missing:
            return self.launch(out, engine)
        if self.only_events:
            event = draw.randint(1, self.events[engine])
            return self.launch(out, engine, victim="main", log=log, event=event)
        victim, way = draw.choice(VICTIMS[engine]), draw.random()
        flush = draw.choice((0, 0, 0.02, 2))
        if victim == "worker" and way < 0.4:
            # In a batch.
            return self.launch(out, engine, flush=flush, victim=victim, log=log, call=draw.randint(1, SCENES // 2))
        if way < 0.7:
            event = draw.randint(1, self.events[engine])
            return self.launch(out, engine, flush=flush, victim=victim, log=log, event=event)
        after = draw.uniform(0, self.seconds[engine])
        return self.launch(out, engine, flush=flush, victim=victim, log=log, after=after)

    def launch(self, out, engine, *, victim="", log="", call=0, after=None, address="", during=None, **more):
        """Launch a run that is killed at an event, a call of the model or a time; its exit code, victims and errors."""
        process, pid = start_run(out, engine, call=call, log=log, victim=victim, address=address,
                                 planted=self.planted, **more)  # fmt: skip
        killed = []
        if after is not None and pid:
            if victim == "worker":
                wait_until(lambda: list_workers(pid) or process.poll() is not None, LONGEST)
            time.sleep(after)
            killed = [victim] if kill(process, pid, victim) else []
        if during is not None and pid:
            killed = during(process, pid)
        try:
            _, message = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(pid, signal.SIGKILL)
            process.communicate()
            return TIMED_OUT, killed, f"it did not end within {LONGEST} s"
        if log and Path(log).exists() and not killed and victim:
            killed = [victim]
        return process.returncode, killed, message

    def find_undisturbed(self, engine):
        """The folder of a run that nobody disturbs; the first of an engine counts its events and its seconds."""
        seconds = SECONDS_PER_IMAGE[engine]
        if seconds not in self.undisturbed:
            out = Path(tempfile.mkdtemp(prefix="undisturbed-", dir=self.folder)) / "run"
            finish(*start_run(out, "inline", seconds=seconds))
            self.undisturbed[seconds] = out
        if engine not in self.events:
            out = Path(tempfile.mkdtemp(prefix="measured-", dir=self.folder)) / "run"
            started = time.monotonic()
            address = self.find_cluster().address if engine == "ray" else ""
            finish(*start_run(out, engine, log=out.with_name("events"), address=address))
            self.seconds[engine] = time.monotonic() - started
            self.events[engine] = int(out.with_name("events").read_text())
            assert compare_runs(out, self.undisturbed[seconds]) == (0, 0), engine
        return self.undisturbed[seconds]

    # Ray.

    def find_cluster(self):
        if self.cluster is None:
            self.cluster = TwoNodes()
        return self.cluster

    def kill_ray(self, out, draw, missing):
        """Launch a run on the cluster, kill actors, the second node, and at last perhaps the driver."""
        cluster = self.find_cluster()
        victims = [draw.choice(("worker", "raylet", "driver", "driver")) for _ in range(min(missing, 3))]
        if "driver" in victims:
            victims = [*(one for one in victims if one != "driver"), "driver"]
        log = out.with_name(f"{out.name}-{draw.getrandbits(32):08x}")
        pauses = [draw.uniform(0, 0.5) for _ in victims]
        if victims == ["driver"] and draw.random() < 0.5:
            event = draw.randint(1, self.events["ray"])
            moment = {"event": event, "victim": "main", "log": log}
            code, killed, message = self.launch(out, "ray", address=cluster.address, **moment)
            return code, ["driver"] if killed else [], message

        def disturb(process, pid):
            killed = []
            for victim, pause in zip(victims, pauses, strict=True):
                if victim == "driver" and not killed:
                    pause = draw.uniform(0, self.seconds["ray"])
                elif not wait_until(lambda: cluster.list_actors() or process.poll() is not None, LONGEST):
                    return killed
                time.sleep(pause)
                if process.poll() is not None:
                    return killed
                if victim == "driver" and kill(process, pid, "main"):
                    return [*killed, victim]
                if victim == "raylet":
                    cluster.replace_second_node()
                    killed.append(victim)
                if victim == "worker" and cluster.kill_actor(draw):
                    killed.append(victim)
            return killed

        return self.launch(out, "ray", during=disturb, address=cluster.address)

    # Studies.

    def kill_server(self, path, draw, kills):
        """A served study whose server is killed while people click; everybody clicks until all images are done."""
        study, expected = self.find_study()
        database = f"sqlite:///{path}/answers.sqlite"
        counts = Counter({"launches": 1})
        server = Server(study.path, database, self.planted)
        server.start()
        crowd = Crowd(study, server.address)
        try:
            while counts["kills"] < kills:
                is_starting = draw.random() < 0.2
                if not is_starting:
                    server.wait()
                time.sleep(draw.uniform(0, 0.2 if is_starting else 0.6))
                if not crowd.thread.is_alive():
                    break
                server.kill()
                # At once, and not only in the end, when people may have sent again what was lost.
                counts["lost"] += len(set(crowd.acknowledged) - list_stored_keys(path / "answers.sqlite"))
                moment = "killed while it starts" if is_starting else "killed among answers"
                counts += Counter({"kills": 1, "kills of server": 1, "launches": 1, "resumed": 1, moment: 1})
                server.start()
            crowd.thread.join(LONGEST)
        finally:
            server.stop()
        counts["runs"] += 1
        audit, exported = summarise_study(study, database, crowd, path / "exported")
        if crowd.result is None or audit is None:
            counts["unfinished"] += 1
            (path / "errors").write_text(crowd.problem or "nobody came to an end")
            return counts
        counts["records"] += audit.acknowledged
        counts["lost"] += audit.lost
        counts["changed"] += audit.changed + audit.doubled + audit.twice + audit.beyond + audit.miscounted
        counts["changed"] += sum(exported[name] != expected[name] for name in expected)
        return counts

    def find_study(self):
        """A small study in which everybody sees every image, and what an undisturbed crowd gives."""
        if self.study is None:
            from hardlook.collect.study.folder import open_study

            folder = Path(tempfile.mkdtemp(prefix="study-", dir=self.folder)) / "study"
            init("clicks", folder, "--scenes", 12, "--training", 0, "--quiet")
            names = ("per_participant", "per_address", "open_batches_per_address")
            limits = dict.fromkeys(names, 1_000_000)
            timings = {"image": 0, "target": 0, "target_text": 0, "again": 0}
            change_settings(
                folder, timings=timings, limits=limits, devices=["pc"], batch_size=4, most_batches=1000,
                target_answers=PEOPLE, open_link=True, least_answer_seconds=0,
            )  # fmt: skip
            study, database = open_study(folder), f"sqlite:///{folder.parent}/answers.sqlite"
            server = Server(study.path, database)
            server.start()
            crowd = Crowd(study, server.address)
            crowd.thread.join(LONGEST)
            server.stop()
            audit, exported = summarise_study(study, database, crowd, folder.parent / "exported")
            assert audit is not None and audit.clean, (audit, crowd.problem)
            self.study = study, exported
        return self.study


SECONDS_PER_IMAGE = {"inline": 0.001, "processes": 0.001, "ray": 0.04}


def start_run(out, engine, *, seconds=None, call=0, log="", address="", **more):
    """Start `hardlook run`; the process and the number of the one that does the work, None where it ended before."""
    seconds = SECONDS_PER_IMAGE[engine] if seconds is None else seconds
    words = ["closed-miou", "--model", "killed_processes:Segmenter", "--model-arg", f"seconds={seconds}"]
    words += ["--scenes", str(SCENES), "--batch-size", str(BATCH), "--resamples", "50"]
    words += ["--engine", engine, "--workers", "2", *(["--address", address] if address else [])]
    variables = {"PYTHONPATH": str(SUPPORT), **({"KILL_WORKER": f"{call}:{log}"} if call else {})}
    code = f"import killed_processes; killed_processes.run({str(out)!r}, {words!r}, log={str(log)!r}, **{more!r})"
    process = subprocess.Popen(
        [*python_command(), "-c", code], env={**os.environ, **variables},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return process, int(process.stdout.readline() or 0)


def finish(process, pid):
    _, message = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, message


def kill(process, pid, victim):
    """Kill a run's process, its group or one of its workers; whether there was one."""
    if process.poll() is not None:
        return False
    with contextlib.suppress(ProcessLookupError):
        if victim == "worker":
            workers = list_workers(pid)
            if workers:
                os.kill(workers[len(workers) // 2], signal.SIGKILL)
            return bool(workers)
        if victim == "group":
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
        process.wait(LONGEST)
        return process.returncode == -signal.SIGKILL
    return False


def list_children(pid):
    """The child processes of a process with their command lines."""
    found = {}
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in file.read_text().split():
                with contextlib.suppress(OSError):
                    found[int(child)] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
    return found


def list_workers(pid):
    """The worker processes of a run."""
    return sorted(child for child, command in list_children(pid).items() if "spawn_main" in command)


def describe_state(out):
    """How far a run has come that was killed."""
    if (out / "scores.json").exists():
        return "after its scores"
    parts = list((out / "records").glob("part-*"))
    try:
        units = set(all_records(out)["unit"]) if parts else set()
    except pl.exceptions.PolarsError:
        return "among damaged records"
    return (
        "before its first record" if not units else "among its records" if len(units) < SCENES else "before its scores"
    )


def compare_runs(out, reference):
    """How many records are lost, and how many changed or doubled, the scores counting as one."""
    expected = {row["unit"]: row for row in all_records(reference).iter_rows(named=True)}
    try:
        rows = list(all_records(out).iter_rows(named=True))
        scores = scores_text(out)
    except (OSError, pl.exceptions.PolarsError, ValueError):
        return len(expected), 1
    units = Counter(row["unit"] for row in rows)
    changed = sum(row != expected.get(row["unit"]) for row in rows) + sum(units.values()) - len(units)
    return len(expected.keys() - units.keys()), changed + (scores != scores_text(reference))


class TwoNodes:
    """A Ray cluster of two nodes with one processor each, kept for the whole campaign; the second one may be killed."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self.variables = {"PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, sys.path)])}
        with changed_environment(self.variables):
            node = {"num_cpus": 1, "include_dashboard": False}
            self.cluster = Cluster(initialize_head=True, connect=False, head_node_args=node)
            self.second = self.cluster.add_node(num_cpus=1)

    @property
    def address(self):
        return self.cluster.address

    def list_actors(self):
        nodes = [self.cluster.head_node, self.second]
        raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
        return sorted(child for pid in raylets for child, name in list_children(pid).items() if "Evaluator" in name)

    def kill_actor(self, draw):
        actors = self.list_actors()
        with contextlib.suppress(ProcessLookupError):
            if actors:
                os.kill(draw.choice(actors), signal.SIGKILL)
                return True
        return False

    def replace_second_node(self):
        """Kill the raylet of the second node, and start another one."""
        os.kill(self.second.all_processes["raylet"][0].process.pid, signal.SIGKILL)
        self.cluster.remove_node(self.second, allow_graceful=False)
        with changed_environment(self.variables):
            self.second = self.cluster.add_node(num_cpus=1)

    def close(self):
        self.cluster.shutdown()


@contextlib.contextmanager
def changed_environment(variables):
    before = dict(os.environ)
    os.environ.update(variables)
    yield
    os.environ.clear()
    os.environ.update(before)


class Server:
    """`hardlook collect serve`, which can be killed and started again."""

    def __init__(self, folder, database, planted=""):
        self.folder, self.database, self.planted, self.port = folder, database, planted, free_port()
        self.address = f"http://127.0.0.1:{self.port}/"
        self.process = None

    def start(self):
        arguments = f"{str(self.folder)!r}, {self.port}, planted={self.planted!r}"
        code = f"import killed_processes; killed_processes.serve({arguments})"
        variables = {"HARDLOOK_DATABASE": self.database, "PYTHONPATH": str(SUPPORT)}
        self.process = subprocess.Popen(
            [*python_command(), "-c", code], env={**os.environ, **variables},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def wait(self):
        assert wait_until(self.answers, LONGEST), "the server does not answer"

    def answers(self):
        assert self.process.poll() is None, f"the server has ended with {self.process.returncode}"
        try:
            with urllib.request.urlopen(self.address + "health", timeout=5):
                return True
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


class Crowd:
    """Simulated people who answer in a thread, and send what was not acknowledged again."""

    def __init__(self, study, address):
        self.study, self.address = study, address
        self.result, self.problem, self.acknowledged = None, "", []
        self.thread = threading.Thread(target=self.take_part, daemon=True)
        self.thread.start()

    def take_part(self):
        from hardlook.collect.rehearsal import participants

        make_answer = participants.AcknowledgedAnswer

        def note(key, *rest):
            self.acknowledged.append(key)
            return make_answer(key, *rest)

        participants.AcknowledgedAnswer = note
        try:
            self.result = participants.simulate_crowd(self.study, self.address, participants=PEOPLE)
        except BaseException:
            self.problem = traceback.format_exc()
        finally:
            participants.AcknowledgedAnswer = make_answer


def list_stored_keys(file):
    """The keys of the answers in a database whose server is dead; none where it died before it had made the tables."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchall():
            return set()
        return {key for (key,) in database.execute("SELECT key FROM answers")}


def summarise_study(study, database, crowd, out):
    """The audit of a study's answers, and its exported results without what differs from crowd to crowd."""
    from hardlook.collect.rehearsal.rehearse import audit_answers
    from hardlook.collect.results.export import export_study
    from hardlook.collect.store.store import Store

    if crowd.result is None:
        return None, {}
    with Store.open(database) as store:
        audit = audit_answers(store, crowd.result.answers, target=PEOPLE)
        export_study(study, store, out)
    # Reaction times are drawn by the number of a trial, which is random.
    images = pl.read_csv(out / "images.csv").drop("reaction_ms").write_csv()
    return audit, {"clicks": sorted((out / "clicks.csv").read_text().splitlines()), "images": images}


def describe_rounds(rounds):
    """The table of a campaign, in Markdown."""
    victims = ("main", "worker", "group", "raylet", "driver", "server")
    columns = [*(f"kills of {one}" for one in victims), "kills", "runs", "resumed", "records", *WRONG]
    head = ["engine", *(name.removeprefix("kills of ") for name in columns)]
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for engine in (*ENGINES, "all"):
        counts = sum((count_round(one) for one in rounds if engine in (one["engine"], "all")), Counter())
        lines.append(" | ".join([engine, *(f"{counts[name]:,}" for name in columns)]))
    moments = sorted((name, count) for name, count in counts.items() if name.startswith("killed "))
    return "\n".join([*(f"| {line} |" for line in lines), "", *(f"{count:5} {name}" for name, count in moments)])


def count_round(played):
    return Counter({name: value for name, value in played.items() if isinstance(value, int) and name != "round"})


def read_journal(file):
    """The rounds that are done; a last line that was cut off is not."""
    rounds = []
    for line in file.read_text().splitlines() if file.exists() else []:
        with contextlib.suppress(ValueError):
            rounds.append(json.loads(line))
    return rounds
