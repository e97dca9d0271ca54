"""What all trainings say of themselves, and how long they are."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from hardlook.errors import ChangedRun, DataError
from hardlook.training import folder as folders
from hardlook.training.checkpoint import write_checkpoint
from hardlook.training.folder import (
    BUDGET,
    HISTORY,
    describe_plans,
    estimate_images,
    fingerprint_weights,
    fit_to_budget,
    is_finished,
    make_identity,
    train_in_folder,
)
from hardlook.training.loop import StepLoss
from hardlook.training.recipes import Budget, StagePlan, StageRecipe
from hardlook.training.state import Progress, check_identity, cut_lines
from hardlook.training.step_graphs import WARM_UPS

CPU = SimpleNamespace(device=torch.device("cpu"), world_size=1, global_rank=0)


def make_plans():
    stages = [StageRecipe(stage=name) for name in ("classes", "episodes")]
    return StagePlan(stages[0], 0, 3, 10), StagePlan(stages[1], 3, 2, 4)


def test_an_identity_has_what_weights_depend_on():
    shared = {"seed": 3, "budget": Budget(images=5), "precision": "float32", "validations": 2, "data": {"images": 7}}
    made = make_identity({"lr": 0.1}, CPU, further={"clicks": {"clicks": "centre"}}, **shared)
    assert made == {
        "recipe": {"lr": 0.1}, "seed": 3, "budget": [5, 0.0], "precision": "float32", "processes": 1, "validations": 2,
        "clicks": {"clicks": "centre"}, "data": {"images": 7}, "threads": torch.get_num_threads(),
    }  # fmt: skip
    gpu = SimpleNamespace(device=torch.device("cuda"), world_size=2)
    made = make_identity({}, gpu, **shared)
    assert (made["threads"], made["processes"]) == (None, 2) and "clicks" not in made


def test_weights_are_known_by_all_their_numbers_in_their_places():
    weights = {"a": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "b": torch.tensor(5)}
    found = fingerprint_weights(weights)
    assert found == fingerprint_weights(dict(reversed(weights.items()))) and fingerprint_weights(None) is None
    others = [{"a": weights["a"].T, "b": weights["b"]}, {"a": weights["a"].flip(0), "b": weights["b"]}]
    others += [{"a": weights["a"].flatten(), "b": weights["b"]}, {"a": weights["a"], "c": weights["b"]}]
    assert len({found, *map(fingerprint_weights, others)}) == 5


def test_plans_are_described_stage_by_stage():
    trainee = SimpleNamespace(plans=make_plans(), module=nn.Linear(4, 3))
    assert describe_plans(trainee) == {
        "parameters": 15,
        "steps": 5,
        "stages": [
            {"stage": "classes", "steps": 3, "images": 30},
            {"stage": "episodes", "steps": 2, "images": 8},
        ],
    }


@pytest.mark.parametrize(("budget", "images"), [(Budget(), 0), (Budget(images=9), 9)])
def test_a_budget_of_images_needs_no_timing(tmp_path, budget, images):
    network, made = nn.Linear(1, 1), []

    def make(module, count):
        made.append((module is network, count))
        return SimpleNamespace(module=module)

    assert fit_to_budget(network, make, tmp_path, budget, CPU, 2).module is network
    assert made == [(True, images)]


def test_a_budget_of_seconds_is_timed_on_a_copy_once(tmp_path, monkeypatch):
    network, made = nn.Linear(1, 1), []

    def make(module, count):
        made.append((module is network, count))
        return SimpleNamespace(module=module, plans=make_plans())

    monkeypatch.setattr("hardlook.training.folder.estimate_images", lambda trainee, plans, seconds, *_, **__: 70)
    for _ in range(2):
        fit_to_budget(network, make, tmp_path, Budget(seconds=2.0), CPU, 2)
    assert made == [(False, 0), (True, 70), (True, 70)]


def test_a_budget_that_was_timed_for_another_training_is_timed_again(tmp_path, monkeypatch):
    """A training that was killed before its first save leaves its budget; another command does not run by it."""
    images = []

    def make(module, count):
        images.append(count)
        return SimpleNamespace(module=module, plans=make_plans())

    monkeypatch.setattr("hardlook.training.folder.estimate_images", lambda *given, **_: int(35 * given[2]))
    for seconds in (2.0, 4.0, 4.0):
        given = {"identity": {"budget": [0, seconds]}}
        fit_to_budget(nn.Linear(1, 1), make, tmp_path, Budget(seconds=seconds), CPU, 2, **given)
    assert images == [0, 70, 0, 140, 140]
    (tmp_path / BUDGET).write_text('{"images": 3')
    with pytest.raises(DataError, match="not the budget of a training"):
        fit_to_budget(nn.Linear(1, 1), make, tmp_path, Budget(seconds=4.0), CPU, 2, identity={})


def test_a_folder_of_imported_weights_is_not_trained_into(tmp_path):
    card = {"kind": "backbone", "backbone": "conv64f", "selected": {"by": "import", "step": 0}, "finished": True}
    write_checkpoint(tmp_path, {"weight": torch.ones(1)}, card)
    with pytest.raises(ChangedRun, match="weights that no training wrote"):
        is_finished(tmp_path, {"seed": 0})


def test_what_differs_is_named_setting_by_setting():
    stage = {"lr": 0.1, "schedule": {"kind": "step", "milestones": [1, 2]}}
    before = {"seed": 0, "recipe": {"method": "dn4", "stages": [stage]}, "options": {}}
    check_identity(before, before)
    stages = [{**stage, "lr": 0.2}, stage]
    with pytest.raises(ChangedRun) as raised:
        check_identity(before, {**before, "recipe": {"method": "dn4", "stages": stages}, "options": {"a": None}})
    assert str(raised.value).splitlines()[0] == (
        "the folder holds another training: options was {}, is not set; options.a was not set, is None; "
        "recipe.stages.0.lr was 0.1, is 0.2; recipe.stages.1.lr was not set, is 0.1; 2 more differ"
    )


def test_a_history_of_other_lines_is_no_history(tmp_path):
    (tmp_path / HISTORY).write_text("[1]\n")
    with pytest.raises(DataError, match="not the history of a training"):
        cut_lines(tmp_path / HISTORY, 3)


@pytest.mark.parametrize("rank", [0, 1])
def test_one_of_several_processes_writes_and_all_wait_before_they_read(rank, tmp_path, monkeypatch):
    """Else one removes the unfinished file of another, or finishes while another still asks whether it is."""
    (tmp_path / HISTORY).write_text('{"step": 3}\n')
    calls = []
    for name in ("remove_leftovers", "finish"):
        monkeypatch.setattr(folders, name, lambda *given, name=name: calls.append(name))

    def run_loop(trainee, store, fabric, **given):
        calls.append("run_loop")
        assert store.read_progress() == Progress()
        return Progress()

    monkeypatch.setattr(folders, "run_loop", run_loop)
    fabric = SimpleNamespace(global_rank=rank, world_size=2, barrier=lambda: calls.append("barrier"))
    trainee = SimpleNamespace(plans=make_plans(), module=nn.Linear(1, 1))
    train_in_folder(trainee, tmp_path, fabric, {"identity": {}}, selections=["blind"], precision="float32")
    writer = ["remove_leftovers", "barrier", "run_loop", "finish", "barrier"]
    assert calls == (writer if rank == 0 else ["barrier", "run_loop", "barrier"])
    assert (tmp_path / HISTORY).read_text() == ("" if rank == 0 else '{"step": 3}\n')


class Timed:
    """A trainee whose steps and validation take times that a clock of its own says."""

    def __init__(self, seconds, validation, parts=1):
        self.module, self.plans = nn.Linear(1, 1), make_plans()
        self.stages = tuple(plan.recipe.stage for plan in self.plans)
        self.seconds, self.validation, self.parts, self.now, self.done = seconds, validation, parts, 0.0, []

    def start_stage(self, stage):
        self.stage, self.left = stage, iter(self.seconds[stage])
        self.module.eval()

    def draw_batches(self, first, last, rank, world):
        for step in range(first, last):
            yield [step] * self.parts

    def start_step(self, step, rank):
        self.started = step
        return 7

    def compute_loss(self, call, batch):
        assert self.module.training and batch == self.started
        if not any(step == batch for _, step, _ in self.done):
            assert self.module.weight.grad is None  # of the step before
        self.done.append((self.stage, batch, torch.backends.cudnn.deterministic))
        self.now += next(self.left)
        return StepLoss(call("", torch.ones(1, 1)).sum(), 1, {})

    def validate(self, module):
        assert module is self.module
        self.now += self.validation
        return {}


def estimate(monkeypatch, trainee, seconds, **given):
    drawn = torch.get_rng_state()
    monkeypatch.setattr(folders, "time", SimpleNamespace(perf_counter=lambda: trainee.now))
    fabric = SimpleNamespace(device=torch.device("cpu"), world_size=1, autocast=contextlib.nullcontext)
    found = estimate_images(trainee, trainee.plans, seconds, fabric, 2, precision="float32", **given)
    assert torch.equal(torch.get_rng_state(), drawn)
    return found


def test_images_are_estimated_from_the_time_of_steps_and_validations(monkeypatch):
    """Of the stages 3 steps of 10 images and 2 of 4: 38 images in 3 x 2 s and 2 x 1 s, if the shortest steps count."""
    seconds = {"classes": [9.0, 2.0, 3.0], "episodes": [1.0, 5.0]}
    trainee = Timed(seconds, 10.0)
    assert estimate(monkeypatch, trainee, 100.0) == 38 * (100 - 2 * 10) / 8
    names = ["classes"] * 3 + ["episodes"] * 2
    assert trainee.done == [(name, step, True) for step, name in enumerate(names)]
    # A fifth of the time is for steps, however long validations take.
    assert estimate(monkeypatch, Timed(seconds, 49.0), 100.0) == 38 * 20 / 8
    assert estimate(monkeypatch, Timed(seconds, 0.0), 100.0, tried=1) == int(38 * 100 / (3 * 9 + 2 * 1))
    assert estimate(monkeypatch, Timed(seconds, 0.0), 100.0, cost=max) == int(38 * 100 / (3 * 9 + 2 * 5))
    assert estimate(monkeypatch, Timed(seconds, 0.0), 0.001) == 1


@pytest.mark.parametrize("parts", [1, 2])
def test_graphs_are_timed_after_they_are_recorded(monkeypatch, parts):
    """Several batches of a step add their gradients, which a graph would write anew."""
    replayed = []

    class Graphs:
        def __init__(self, step, module):
            self.step = step

        def __call__(self, batch):
            replayed.append(batch)
            return self.step(batch)

    monkeypatch.setattr(folders, "may_replay", lambda *given: True)
    monkeypatch.setattr(folders, "StepGraphs", Graphs)
    trainee = Timed({"classes": [1.0] * 20, "episodes": [1.0] * 20}, 0.0, parts)
    trainee.plans = tuple(replace(plan, steps=10, first=10 * place) for place, plan in enumerate(trainee.plans))
    estimate(monkeypatch, trainee, 1.0, tried=2)
    steps = [*range(WARM_UPS + 3), *range(10, 10 + WARM_UPS + 3)]
    assert [step for _, step, _ in trainee.done] == [step for step in steps for _ in range(parts)]
    assert replayed == (steps if parts == 1 else [])
