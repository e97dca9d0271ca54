"""What all trainings say of themselves, and how long they are."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from hardlook.training.folder import describe_plans, fit_to_budget, make_identity
from hardlook.training.recipes import Budget, StagePlan, StageRecipe

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
