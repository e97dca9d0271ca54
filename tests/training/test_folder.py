"""What all trainings say of themselves, and how long they are."""

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
    fit_to_budget,
    is_finished,
    make_identity,
    train_in_folder,
)
from hardlook.training.recipes import Budget, StagePlan, StageRecipe
from hardlook.training.state import Progress, check_identity, cut_lines

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
