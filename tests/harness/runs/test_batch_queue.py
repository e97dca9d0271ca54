"""Which batch comes next, and what becomes of one whose worker or machine was lost or gave no answer."""

import pytest

from hardlook.harness.benchmark import Unit
from hardlook.harness.runs.batch_queue import MAX_MOVES, BatchQueue, BatchTask, collect_outcomes
from hardlook.harness.runs.evaluation import Outcome
from hardlook.harness.runs.record_store import Failure


def make_queue(*batches, **more):
    return BatchQueue([tuple(Unit(unit, None) for unit in batch) for batch in batches], **more)


def ids(task):
    return "".join(unit.id for unit in task.units)


def take_all(queue):
    return [ids(queue.take()) for _ in range(len(queue))]


def test_batches_come_in_their_order_and_are_counted():
    queue = make_queue("ab", "cd", "e")
    assert len(queue) == 3 and ids(queue.take()) == "ab" and len(queue) == 2
    assert take_all(queue) == ["cd", "e"] and len(queue) == 0 and not queue


def test_a_task_that_was_not_begun_comes_first_again():
    queue = make_queue("ab", "cd", "e")
    queue.give_back(queue.take())
    assert len(queue) == 3 and take_all(queue) == ["ab", "cd", "e"]


def test_a_lost_batch_is_tried_twice_whole_then_each_unit_twice():
    queue, failed, tried = make_queue("abc", "z"), [], []
    while queue:
        task = queue.take()
        tried.append(ids(task))
        # The worker dies on everything that holds unit b.
        if "b" in tried[-1] and (outcome := queue.note_lost(task, "it was ended by SIGKILL")):
            failed += outcome.failures
    assert tried == ["abc", "abc", "a", "b", "b", "c", "z"]
    assert [one.unit for one in failed] == ["b"]
    assert "the worker died on this unit every time: it was ended by SIGKILL" in failed[0].error


def test_a_batch_of_one_unit_is_tried_three_times():
    queue = make_queue("a")
    for _ in range(2):
        assert queue.note_lost(queue.take(), "gone") is None
    assert [one.unit for one in queue.note_lost(queue.take(), "gone").failures] == ["a"] and not queue


def test_of_a_task_without_units_nothing_is_left():
    queue = make_queue()
    assert queue.note_lost(BatchTask(()), "gone") is None and len(queue) == 0


def test_a_task_whose_machine_was_lost_is_no_suspect_until_many_were():
    queue = make_queue("a", "b")
    for _ in range(MAX_MOVES):
        task = queue.take()
        assert (ids(task), task.tries) == ("a", 1)
        assert queue.note_move(task) is None
    assert queue.note_move(queue.take()) is None
    task = queue.take()
    assert (ids(task), task.tries, task.moves) == ("a", 2, MAX_MOVES)


def test_a_batch_without_an_answer_is_split_and_a_unit_without_one_fails():
    queue = make_queue("abc", "z", unit_timeout=2.5)
    assert queue.note_timeout(queue.take()) is None
    tasks = [queue.take() for _ in range(len(queue))]
    assert [ids(task) for task in tasks] == ["a", "b", "c", "z"]
    # The run says once that the batch was split.
    assert [task.split for task in tasks] == [True, False, False, False]
    outcome = queue.note_timeout(tasks[0])
    assert outcome.split and [one.unit for one in outcome.failures] == ["a"]
    assert "no answer within 2.5 s (--unit-timeout)" in outcome.failures[0].error
    assert not queue.note_timeout(tasks[1]).split


@pytest.mark.parametrize(("timeout", "deadline"), [(0.0, float("inf")), (2.5, 107.5)])
def test_a_batch_has_time_for_each_of_its_units(timeout, deadline):
    queue = make_queue("abc", unit_timeout=timeout)
    assert queue.find_deadline(queue.take(), 100.0) == deadline


def test_what_came_of_a_batch_is_not_asked_for_again():
    task = BatchTask(tuple(Unit(unit, None) for unit in "abcd"), tries=2, split=True)
    part = Outcome([{"unit": "a"}], [Failure("c", "evaluate", "broken", "")])
    left = task.without(part)
    assert (ids(left), left.tries, left.split) == ("bd", 2, False)
    assert task.mark(part).split and not left.mark(part).split


class SmallTeam:
    """Answers a batch at a time, and notes who was asked when."""

    def __init__(self, batches):
        self.batches, self.steps = list(batches), []

    def fill(self):
        self.steps.append("fill")
        return bool(self.batches)

    def collect(self):
        return [self.batches.pop(0)]


def test_workers_have_their_next_batch_before_the_last_one_is_worked_on():
    team = SmallTeam(["first", "second"])
    for outcome in collect_outcomes(team):
        team.steps.append(outcome)
    assert team.steps == ["fill", "fill", "first", "fill", "second"]


def test_a_task_is_given_back_among_its_kind():
    queue = make_queue("ab", "cd")
    first = queue.take()
    queue.give_back(first)
    assert list(queue.waiting) == [first] and not queue.suspects
    queue.note_lost(queue.take(), "gone")
    suspect = queue.take()
    assert suspect.tries == 2
    queue.give_back(suspect)
    assert list(queue.suspects) == [suspect] and not queue.waiting
