"""Which batches go to which actors, and who starts and ends the cluster, on a Ray of one process."""

import time
from types import SimpleNamespace

import pytest

from hardlook.errors import RunError, RunWarning
from hardlook.harness.benchmark import Unit
from hardlook.harness.runs import ray_cluster
from hardlook.harness.runs.batch_queue import MAX_MOVES, MAX_TRIES
from hardlook.harness.runs.evaluation import Job, Outcome
from hardlook.harness.runs.ray_cluster import evaluate_on_ray


class ActorLost(Exception):
    """Named in place of Ray's."""


class ModelFailed(ActorLost):
    """Named in place of Ray's error of the code that an actor runs."""


class SmallRay:
    """Answers as Ray does.

    An actor is lost on a batch with a unit of `deadly`, as often as that says; `leaving` are units that take the node
    along, once for each time they stand there; `problem` is raised at every answer.
    """

    exceptions = SimpleNamespace(RayError=ActorLost, RayTaskError=ModelFailed)

    def __init__(self, deadly=None, *, initialised=False, resources=None, leaving="", problem=None, one_by_one=False):
        self.deadly, self.initialised, self.leaving, self.problem = dict(deadly or {}), initialised, leaving, problem
        self.resources, self.one_by_one = resources or {"CPU": 2.0}, one_by_one
        self.batches, self.actors, self.calls, self.asked, self.left = [], 0, [], {}, 0
        self.init_options = {}

    def is_initialized(self):
        return self.initialised

    def init(self, **options):
        self.calls.append("init")
        self.init_options = options

    def shutdown(self):
        self.calls.append("shutdown")

    def cluster_resources(self):
        return self.resources

    def nodes(self):
        gone = [{"NodeID": f"node {number}", "Alive": False, "Resources": {}} for number in range(self.left)]
        return [*gone, {"NodeID": f"node {self.left}", "Alive": True, "Resources": self.resources}]

    def remote(self, **options):
        return lambda evaluator: SimpleNamespace(remote=self.make_actor)

    def make_actor(self, job):
        self.actors += 1
        node = SimpleNamespace(remote=lambda: self.ask(f"node {self.left}"))
        evaluate = SimpleNamespace(options=lambda num_returns: SimpleNamespace(remote=self.submit))
        return SimpleNamespace(find_node=node, evaluate=evaluate)

    def submit(self, batch):
        self.batches.append("".join(unit.id for unit in batch))
        ids = tuple(unit.id for unit in batch)
        return iter([self.ask(unit) for unit in ids] if self.one_by_one else [self.ask(ids)])

    def ask(self, answer):
        self.asked[len(self.asked)] = answer
        return len(self.asked) - 1

    def wait(self, running, num_returns, timeout):
        return running[:num_returns], running[num_returns:]

    def get(self, number):
        if self.problem is not None:
            raise self.problem
        if str(self.asked[number]).startswith("node"):
            return self.asked[number]
        for unit in self.asked[number]:
            if unit in self.leaving:
                self.leaving = self.leaving.replace(unit, "", 1)
                self.left += 1
                raise ActorLost("the actor died")
            if self.deadly.get(unit, 0):
                self.deadly[unit] -= 1
                raise ActorLost("the actor died")
        return Outcome([{"unit": unit} for unit in self.asked[number]])

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
    ray = SmallRay(resources={"CPU": 9.0})
    assert evaluate(monkeypatch, ray, workers=5) == ("abcd", "")
    assert (sorted(ray.batches), ray.actors) == (["ab", "cd"], 2)


@pytest.mark.parametrize(
    ("resources", "gpus", "room"),
    [({"CPU": 3.0}, 0.0, 3), ({"CPU": 9.0, "GPU": 1.0}, 0.5, 2), ({"CPU": 1.0, "GPU": 4.0}, 0.5, 1)],
)
def test_no_more_actors_than_the_cluster_has_room_for_and_it_says_so(monkeypatch, resources, gpus, room):
    ray = SmallRay(resources=resources)
    with pytest.warns(RunWarning, match=f"has room for {room} of 8 workers"):
        assert evaluate(monkeypatch, ray, batches="abcdefgh", workers=8, gpus=gpus) == ("abcdefgh", "")
    assert ray.actors == room


def test_a_batch_whose_actor_is_lost_once_goes_whole_to_a_new_one(monkeypatch):
    ray = SmallRay({"a": 1})
    assert evaluate(monkeypatch, ray) == ("abcd", "")
    assert (ray.batches, ray.actors) == (["ab", "ab", "cd"], 2)


def test_a_batch_is_tried_twice_whole_before_its_units_go_alone_and_the_deadly_one_fails(monkeypatch):
    ray = SmallRay({"a": 99})
    assert evaluate(monkeypatch, ray) == ("bcd", "a")
    assert MAX_TRIES == 2
    assert ray.batches == ["ab", "ab", "a", "a", "b", "cd"]


def test_a_batch_whose_node_leaves_is_not_to_blame(monkeypatch):
    ray = SmallRay(leaving="a" * MAX_MOVES)
    assert evaluate(monkeypatch, ray) == ("abcd", "")
    assert ray.batches == ["ab"] * (MAX_MOVES + 1) + ["cd"]


def test_a_unit_that_takes_every_node_along_fails_at_last(monkeypatch):
    ray = SmallRay(leaving="a" * 99)
    assert evaluate(monkeypatch, ray) == ("bcd", "a")


def test_a_batch_that_comes_in_parts_goes_on_where_its_actor_was_lost(monkeypatch):
    ray = SmallRay({"b": 1}, one_by_one=True)
    assert evaluate(monkeypatch, ray, batches=("abc",)) == ("abc", "")
    assert ray.batches == ["abc", "bc"]


def test_an_error_of_the_code_itself_is_raised(monkeypatch):
    with pytest.raises(ModelFailed, match="a bug"):
        evaluate(monkeypatch, SmallRay(problem=ModelFailed("a bug")))


def test_a_model_that_no_actor_can_build_is_an_error(monkeypatch):
    lost = ActorLost("the actor died because of an error in its creation task: __init__: no such weights")
    with pytest.raises(RunError, match=r"no Ray actor could build the model: .*no such weights"):
        evaluate(monkeypatch, SmallRay(problem=lost))


def test_actors_that_are_lost_before_they_are_ready_are_an_error_at_last(monkeypatch):
    ray = SmallRay(problem=ActorLost("out of memory"))
    with pytest.raises(RunError, match="no Ray actor could build the model: out of memory"):
        evaluate(monkeypatch, ray)
    assert ray.actors == ray_cluster.MAX_STARTS


def test_all_actors_are_ended(monkeypatch):
    ray = SmallRay(initialised=True)
    evaluate(monkeypatch, ray, workers=2)
    assert ray.calls == ["kill"] * 2


@pytest.mark.parametrize(("initialised", "calls"), [(False, ["init", "kill", "shutdown"]), (True, ["kill"])])
def test_a_cluster_is_ended_by_whoever_started_it(monkeypatch, initialised, calls):
    ray = SmallRay(initialised=initialised)
    assert evaluate(monkeypatch, ray) == ("abcd", "")
    assert ray.calls == calls


@pytest.mark.parametrize(
    ("given", "variable", "used"),
    [
        ("", "", "local"),
        ("10.0.0.1:6379", "", "10.0.0.1:6379"),
        ("", "auto", "auto"),
        ("10.0.0.1:6379", "auto", "10.0.0.1:6379"),
    ],
)
def test_a_cluster_is_joined_only_where_an_address_names_it(monkeypatch, given, variable, used):
    """Without an address Ray would look for a cluster on this machine, and refuse a number of processors for it."""
    monkeypatch.setenv("RAY_ADDRESS", variable)
    ray = SmallRay()
    evaluate(monkeypatch, ray, workers=2, address=given)
    assert ray.init_options["address"] == used
    assert ray.init_options.get("num_cpus") == (2 if used == "local" else None)


@pytest.mark.parametrize(
    ("resources", "gpus", "words"),
    [
        ({"CPU": 2.0}, 0.5, r"a worker needs 0\.5 GPU, the Ray cluster has 0"),
        ({"CPU": 2.0, "GPU": 1.0}, 2.0, "a worker needs 2 GPU, the Ray cluster has 1"),
        ({"CPU": 0.5}, 0.0, r"a worker needs 1 CPU, the Ray cluster has 0\.5"),
        ({"GPU": 4.0}, 1.0, "a worker needs 1 CPU, the Ray cluster has 0"),
    ],
)
def test_a_worker_that_no_node_can_hold_is_refused(monkeypatch, resources, gpus, words):
    with pytest.raises(RunError, match=f"{words}(\n|$)"):
        evaluate(monkeypatch, SmallRay(resources=resources), gpus=gpus)


class SlowRay(SmallRay):
    """Does not answer batches with a unit of `silent`; `wait` sleeps as Ray does when nothing else is left."""

    def __init__(self, silent, **more):
        super().__init__(**more)
        self.silent, self.waited, self.unanswered = silent, [], {}

    def submit(self, batch):
        stream = super().submit(batch)
        self.unanswered[stream] = any(unit.id in self.silent for unit in batch)
        return stream

    def wait(self, running, num_returns, timeout):
        self.waited.append(timeout)
        assert len(self.waited) < 100, "it waits for ever"
        ready = [one for one in running if not self.unanswered.get(one)]
        if not ready:
            time.sleep(timeout)
        return ready[:num_returns], []


def test_a_unit_without_an_answer_in_its_time_fails_and_its_actor_is_ended(monkeypatch):
    ray = SlowRay("b", initialised=True)
    assert evaluate(monkeypatch, ray, batches=("abc", "d"), unit_timeout=0.01) == ("acd", "b")
    assert sorted(ray.batches) == ["a", "abc", "b", "c", "d"]
    # One actor is lost with the batch, one with its unit, and the last is ended with the run.
    assert ray.actors == len(ray.calls) == 3
    assert min(ray.waited) >= 0 and max(ray.waited) <= ray_cluster.LOOK_AFTER


def test_without_a_time_limit_an_actor_that_is_slow_stays(monkeypatch):
    ray = SlowRay("a", initialised=True)
    monkeypatch.setattr(ray_cluster, "LOOK_AFTER", 0.01)
    waits = iter(range(3))
    monkeypatch.setattr(time, "sleep", lambda seconds: next(waits, None) is None and ray.unanswered.clear())
    assert evaluate(monkeypatch, ray, batches=("ab",)) == ("ab", "")
    assert (ray.batches, ray.actors) == (["ab"], 1)


class ChangingRay(SmallRay):
    """Its nodes hold as many processors as `rooms` says, one after the other each time they are counted."""

    def __init__(self, rooms, **more):
        super().__init__(**more)
        self.rooms = list(rooms)

    def nodes(self):
        room = self.rooms.pop(0) if len(self.rooms) > 1 else self.rooms[0]
        return [{"NodeID": "node 0", "Alive": True, "Resources": {"CPU": room}}]


def test_nodes_that_join_hold_more_actors(monkeypatch):
    monkeypatch.setattr(ray_cluster, "LOOK_AFTER", 0.0)
    ray = ChangingRay([1.0, 1.0, 3.0])
    with pytest.warns(RunWarning, match="room for 1 of 2 workers"):
        assert evaluate(monkeypatch, ray, batches="abcd", workers=2) == ("abcd", "")
    assert ray.actors == 2


def test_a_cluster_whose_nodes_have_left_is_given_up_after_a_while(monkeypatch):
    naps = []
    monkeypatch.setattr(ray_cluster, "LOOK_AFTER", 2.0)
    monkeypatch.setattr(ray_cluster, "WAIT_FOR_NODES", 3.0)
    clock = iter(range(0, 10_000, 5))
    fake = SimpleNamespace(monotonic=lambda: float(next(clock)), sleep=naps.append)
    monkeypatch.setattr(ray_cluster, "time", fake)
    with pytest.raises(RunError, match="no room for a worker for 3 s: its nodes have left") as caught:
        evaluate(monkeypatch, ChangingRay([1.0, 0.0]))
    assert naps == [0.5] * 6 and "run again (it resumes)" in caught.value.remedy


def test_actors_run_with_the_threads_and_the_path_of_this_process(monkeypatch):
    ray = SmallRay()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv(ray_cluster.OFFLINE, "1")
    evaluate(monkeypatch, ray)
    variables = ray.init_options["runtime_env"]["env_vars"]
    assert {variables[name] for name in ray_cluster.THREAD_VARIABLES} == {"1"}
    assert variables[ray_cluster.OFFLINE] == "1" and variables["PYTHONPATH"]
    assert ray.init_options["log_to_driver"] is ray.init_options["include_dashboard"] is False
