"""How a team of worker processes shares batches, and what it does with processes that die, stall or never start.

The workers here are scripted, so that every order of events can be had at once; tests/harness/runs/test_lost_work.py
has real ones.
"""

import pytest

from hardlook.errors import RunError
from hardlook.harness.benchmark import Unit
from hardlook.harness.runs import engines
from hardlook.harness.runs.batch_queue import BatchQueue
from hardlook.harness.runs.evaluation import Job, Outcome
from hardlook.harness.runs.worker_processes import WorkerLost


class ScriptedWorker:
    """A worker whose messages a test puts in; an exception among them is raised."""

    def __init__(self, make, job):
        self.ready, self.task, self.messages, self.killed, self.refuses = False, None, [], False, False

    def submit(self, task, content):
        if self.refuses:
            raise WorkerLost("it ended with exit code 1")
        self.task = task

    def receive(self):
        messages, self.messages = self.messages, []
        for message in messages:
            if isinstance(message, Exception):
                raise message
            self.ready = True
            yield message

    def answer(self):
        """Answer the task at once, unit by unit."""
        outcomes = [("result", Outcome([{"unit": unit.id}])) for unit in self.task.units]
        self.messages += [*outcomes, ("done", None)]

    def kill(self):
        self.killed = True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(engines, "WorkerProcess", ScriptedWorker)
    monkeypatch.setattr(engines.time, "monotonic", lambda: now[0])
    waited = []
    monkeypatch.setattr(engines, "wait_for_workers", lambda workers, seconds: waited.append(seconds))
    now.append(waited)
    return now


def make_team(*batches, size=2, unit_timeout=0.0):
    units = [tuple(Unit(name, None) for name in batch) for batch in batches]
    return engines._Team(Job("closed-miou"), BatchQueue(units, unit_timeout), size)


def start(team):
    """Let the team start its workers, and let these be ready."""
    assert team.fill()
    for worker in team.workers:
        worker.messages.append(("ready", None))
    assert team.collect() == []
    assert team.fill()
    return team.workers


def names(task):
    return "".join(unit.id for unit in task.units)


def test_no_more_workers_than_batches_and_each_has_one(clock):
    team = make_team("ab", "cd", size=5)
    assert [names(worker.task) for worker in start(team)] == ["ab", "cd"]
    for worker in team.workers:
        worker.answer()
    outcomes = team.collect()
    assert [outcome.records[0]["unit"] for outcome in outcomes] == list("abcd")
    assert all(worker.task is None for worker in team.workers) and team.deadlines == {}
    assert team.fill() is False


def test_workers_that_are_not_ready_get_no_batch(clock):
    team = make_team("ab", "cd", "ef", size=2)
    assert team.fill() and len(team.workers) == 2
    assert [worker.task for worker in team.workers] == [None, None]
    team.workers[0].messages.append(("ready", None))
    team.collect()
    team.fill()
    assert [worker.task and names(worker.task) for worker in team.workers] == ["ab", None]


def test_a_batch_whose_worker_died_is_tried_again_by_one_worker_alone(clock):
    team = make_team("ab", "cd", "ef", size=2)
    first, second = start(team)
    first.messages = [("result", Outcome([{"unit": "a"}])), WorkerLost("it was ended by SIGKILL")]
    assert [outcome.records for outcome in team.collect()] == [[{"unit": "a"}]]
    assert first.killed and team.workers == [second]
    # While the other still works, nothing is started; then the rest of the batch goes to one new worker.
    assert team.fill() and team.workers == [second] and names(second.task) == "cd"
    second.answer()
    team.collect()
    assert team.fill() and len(team.workers) == 1
    [worker] = team.workers
    assert names(worker.task) == "b" and worker.task.tries == 2
    # Nor is another started beside it, although a batch waits.
    assert len(team.queue) == 1 and team.fill() and team.workers == [worker]
    worker.answer()
    team.collect()
    assert team.fill() and [names(one.task) for one in team.workers] == ["ef"]


def test_idle_workers_are_ended_before_a_suspect_batch_is_tried(clock):
    team = make_team("ab", "cd", size=3)
    workers = list(start(team))
    for worker in workers:
        worker.messages = [WorkerLost("gone")] if names(worker.task) == "ab" else worker.messages
        if names(worker.task) == "cd":
            worker.answer()
    team.collect()
    extra = ScriptedWorker(None, None)
    team.workers.append(extra)
    assert team.fill()
    assert extra.killed and all(worker.killed for worker in workers) and len(team.workers) == 1


def test_five_processes_in_a_row_that_die_before_they_are_ready_are_an_error(clock):
    team = make_team("ab", size=1)
    for number in range(5):
        team.fill()
        [worker] = team.workers
        worker.messages = [WorkerLost("it was ended by SIGKILL")]
        if number < 4:
            assert team.collect() == [] and team.workers == []
    with pytest.raises(RunError, match="5 worker processes in a row died before they had built the model: it was"):
        team.collect()


def test_a_process_that_starts_ends_the_row(clock):
    team = make_team("ab", size=1)
    for messages in (4 * [[WorkerLost("gone")]], [[("ready", None), WorkerLost("gone")]], 4 * [[WorkerLost("gone")]]):
        for some in messages:
            team.fill()
            team.workers[0].messages = list(some)
            assert team.collect() == []
    assert team.died_at_start == 4


def test_a_task_that_takes_too_long_is_ended_with_its_worker(clock):
    team = make_team("a", "bc", size=2, unit_timeout=10.0)
    one, two = start(team)
    assert (team.deadlines[one], team.deadlines[two]) == (110.0, 120.0)
    clock[0] = 109.5
    assert team.collect() == [] and clock[1][-1] == 0.5
    clock[0] = 110.0
    [outcome] = team.collect()
    assert [failure.unit for failure in outcome.failures] == ["a"] and one.killed and team.workers == [two]
    # What comes in time of a batch gives its rest the time of the units that are left.
    clock[0] = 115.0
    two.messages = [("result", Outcome([{"unit": "b"}]))]
    team.collect()
    assert names(two.task) == "c" and team.deadlines[two] == 125.0
    clock[0] = 118.0
    team.collect()
    assert clock[1][-1] == engines.LOOK_AFTER


def test_a_worker_that_is_gone_when_it_gets_a_batch_gives_it_back(clock):
    team = make_team("ab", size=1)
    team.fill()
    [worker] = team.workers
    worker.messages, worker.refuses = [("ready", None)], True
    team.collect()
    assert team.fill()
    assert worker.killed and team.workers == [] and len(team.queue) == 1


def test_the_end_of_a_team_is_the_end_of_all_its_workers(clock):
    team = make_team("ab", "cd", size=2)
    workers = list(start(team))
    team.end()
    assert all(worker.killed for worker in workers) and team.workers == [] and team.deadlines == {}
