"""Worker processes: what they answer, and how their end is noticed and named."""

import pytest
from watched_processes import wait_until
from worker_tasks import fail_to_make, make_multiplier

from hardlook.errors import RunError
from hardlook.harness.runs.worker_processes import WorkerLost, WorkerProcess, wait_for_workers


@pytest.fixture
def worker():
    made = WorkerProcess(make_multiplier, 3)
    yield made
    made.kill()


def receive(worker, until):
    """The messages up to one of a kind."""
    messages = []
    while until not in [kind for kind, _ in messages]:
        wait_for_workers([worker], 30)
        messages += worker.receive()
    return messages


def test_a_worker_answers_task_after_task_with_every_result(worker):
    assert not worker.ready and worker.task is None
    assert receive(worker, "ready") == [("ready", None)] and worker.ready
    for task, numbers, results in (("first", [1, 2], [3, 6]), ("second", [], []), ("third", [5], [15])):
        worker.submit(task, numbers)
        assert worker.task == task
        assert receive(worker, "done") == [*(("result", value) for value in results), ("done", None)]


def test_asking_waits_for_the_last_result(worker):
    assert worker.ask([4]) == 12
    assert worker.ask([]) is None
    assert worker.ask("signals") is True


def test_a_worker_is_deaf_to_signals_for_its_group(worker):
    worker.submit("all", "signals")
    assert [value for kind, value in receive(worker, "done") if kind == "result"] == [True] * 3


@pytest.mark.parametrize(
    ("task", "how"), [("killed", "it was ended by SIGKILL"), ("exit", "it ended with exit code 7")]
)
def test_how_a_worker_ended_is_said(worker, task, how):
    worker.submit("last", task)
    with pytest.raises(WorkerLost, match=f"^{how}$"):
        receive(worker, "done")
    with pytest.raises(WorkerLost, match=f"^{how}$"):
        worker.submit("next", [1])


def test_asking_a_worker_that_ends_says_how(worker):
    with pytest.raises(WorkerLost, match=r"^it ended with exit code 7$"):
        worker.ask("exit")


def test_errors_come_with_the_traceback_of_the_worker(worker):
    with pytest.raises(ValueError, match="no such task") as caught:
        worker.ask("error")
    assert "in a worker process:" in caught.value.__notes__[0] and "worker_tasks.py" in caught.value.__notes__[0]


def test_an_error_that_cannot_be_sent_comes_as_its_text(worker):
    worker.submit("last", "unsendable")
    with pytest.raises(RunError, match="a worker process failed: Unsendable: broken 3"):
        receive(worker, "done")


def test_what_cannot_be_built_is_raised_where_its_messages_are_read():
    worker = WorkerProcess(fail_to_make, "it")
    with pytest.raises(ValueError, match="cannot build it"):
        receive(worker, "ready")
    assert not worker.ready
    worker.kill()


def test_killing_ends_the_process_at_once(worker):
    receive(worker, "ready")
    worker.kill()
    wait_until(lambda: not worker.process.is_alive())
    assert worker.process.exitcode == -9 and worker.connection.closed


def test_a_killed_worker_says_how_it_ended_wherever_it_is_used(worker):
    worker.kill()
    for use in (lambda: list(worker.receive()), lambda: worker.submit("next", [1]), lambda: worker.ask([1])):
        with pytest.raises(WorkerLost, match=r"^it was ended by SIGKILL$"):
            use()
    assert worker.task is None


def test_waiting_ends_in_time_where_nobody_says_anything(worker):
    receive(worker, "ready")
    wait_for_workers([worker], -1.0)
    assert list(worker.receive()) == []
