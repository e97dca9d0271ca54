"""Which batches go to which actors, and who starts and ends the cluster, on a Ray of one process."""

from types import SimpleNamespace

import pytest

from hardlook.errors import RunError
from hardlook.harness.benchmark import Unit
from hardlook.harness.runs import ray_cluster
from hardlook.harness.runs.evaluation import Job, Outcome
from hardlook.harness.runs.ray_cluster import MAX_TRIES, evaluate_on_ray


class ActorLost(Exception):
    """Named in place of Ray's."""


class SmallRay:
    """Answers as Ray does. An actor is lost on a batch with a unit of `deadly`, as often as that says."""

    exceptions = SimpleNamespace(RayActorError=ActorLost)

    def __init__(self, deadly=None, *, initialised=False, resources=None):
        self.deadly, self.initialised = dict(deadly or {}), initialised
        self.resources = resources or {"CPU": 2.0}
        self.batches, self.actors, self.calls = [], 0, []

    def is_initialized(self):
        return self.initialised

    def init(self, **options):
        self.calls.append("init")

    def shutdown(self):
        self.calls.append("shutdown")

    def cluster_resources(self):
        return self.resources

    def remote(self, **options):
        return lambda evaluator: SimpleNamespace(remote=self.make_actor)

    def make_actor(self, job):
        self.actors += 1
        return SimpleNamespace(evaluate=SimpleNamespace(remote=self.submit))

    def submit(self, batch):
        self.batches.append("".join(unit.id for unit in batch))
        return len(self.batches) - 1

    def wait(self, running, num_returns):
        return running[:num_returns], running[num_returns:]

    def get(self, number):
        for unit in self.batches[number]:
            if self.deadly.get(unit, 0):
                self.deadly[unit] -= 1
                raise ActorLost("the actor died")
        return Outcome([{"unit": unit} for unit in self.batches[number]])

    def kill(self, actor):
        self.calls.append("kill")


def evaluate(monkeypatch, ray, batches=("ab", "cd"), **more):
    """The answered and the failed units, in the order of their names."""
    monkeypatch.setattr(ray_cluster, "require", lambda name, extra: ray)
    listed = [tuple(Unit(unit, None) for unit in batch) for batch in batches]
    outcomes = list(evaluate_on_ray(Job("closed-miou"), listed, **{"workers": 1, **more}))
    answered = sorted(record["unit"] for outcome in outcomes for record in outcome.records)
    return "".join(answered), "".join(sorted(failure.unit for outcome in outcomes for failure in outcome.failures))


def test_every_batch_goes_out_once_and_no_more_actors_than_batches(monkeypatch):
    ray = SmallRay()
    assert evaluate(monkeypatch, ray, workers=5) == ("abcd", "")
    assert (ray.batches, ray.actors) == (["ab", "cd"], 2)


def test_a_batch_whose_actor_is_lost_once_goes_whole_to_a_new_one(monkeypatch):
    ray = SmallRay({"a": 1})
    assert evaluate(monkeypatch, ray) == ("abcd", "")
    assert (ray.batches, ray.actors) == (["ab", "ab", "cd"], 2)


def test_a_batch_is_tried_twice_whole_before_its_units_go_alone_and_the_deadly_one_fails(monkeypatch):
    ray = SmallRay({"a": 99})
    assert evaluate(monkeypatch, ray) == ("bcd", "a")
    assert MAX_TRIES == 2
    assert sorted(ray.batches) == ["a", "ab", "ab", "b", "cd"]
    assert ray.batches[:2] == ["ab", "ab"]


@pytest.mark.parametrize(("initialised", "calls"), [(False, ["init", "shutdown"]), (True, [])])
def test_a_cluster_is_ended_by_whoever_started_it(monkeypatch, initialised, calls):
    ray = SmallRay(initialised=initialised)
    assert evaluate(monkeypatch, ray) == ("abcd", "")
    assert ray.calls == calls


def test_a_worker_that_no_node_can_hold_is_refused(monkeypatch):
    with pytest.raises(RunError, match=r"a worker needs 0\.5 GPU, the Ray cluster has 0"):
        evaluate(monkeypatch, SmallRay(), gpus=0.5)
