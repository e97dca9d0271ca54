"""Every network has a recipe that names its source; what is changed is checked and remembered."""

import pytest

pytest.importorskip("torch")

from hardlook.errors import OptionError
from hardlook.networks.one_shot.catalogue import find_network, list_networks
from hardlook.training.one_shot_recipes import (
    change_one_shot_recipe,
    find_one_shot_recipe,
    plan_training,
)


@pytest.mark.parametrize("entry", list_networks(), ids=lambda entry: entry.name)
def test_every_network_has_a_recipe(entry):
    recipe = find_one_shot_recipe(entry.name)
    assert recipe.source and (recipe.size, recipe.fit) == (entry.size, entry.fit)
    assert recipe.stage.stage in entry.load().stages


def test_published_numbers():
    """From the facts of the released settings."""
    pfenet, rpmm, hsnet, repri = (find_one_shot_recipe(name).stage for name in ("pfenet", "rpmm", "hsnet", "repri"))
    assert (pfenet.lr, pfenet.batch, pfenet.epochs, pfenet.weight_decay) == (0.0025, 4, 200, 1e-4)
    assert (rpmm.lr, rpmm.batch, rpmm.weight_decay) == (3.5e-4, 8, 5e-4)
    assert (hsnet.optimiser, hsnet.lr, hsnet.batch) == ("adam", 1e-3, 20)
    assert (repri.nesterov, repri.lr, repri.batch, repri.epochs) == (True, 0.0025, 12, 100)
    assert find_one_shot_recipe("repri").novel == "ignored"
    assert find_one_shot_recipe("hsnet", reading="released").void == "background"


def test_changes_are_checked_and_remembered():
    recipe = find_one_shot_recipe("pfenet")
    changed = change_one_shot_recipe(recipe, {"lr": "0.1", "augment": "none", "shots": "5", "option.steps": "3"})
    assert (changed.stage.lr, changed.augment, changed.shots, changed.options) == (0.1, "none", 5, {"steps": 3})
    assert changed.changed == ("lr", "augment", "shots", "option.steps")
    for given, what in (
        ({"augment": "spin"}, "augment 'spin'"),
        ({"size": 320}, "size 320"),
        ({"size": "big"}, "not a whole number"),
        ({"tasks": 3}, "no 'tasks'"),
        ({"shots": 0}, "at least 1"),
    ):
        with pytest.raises(OptionError, match=what):
            change_one_shot_recipe(recipe, given)


def test_unknown_networks_and_readings():
    with pytest.raises(OptionError, match="no one-shot network 'pfnet'") as caught:
        find_network("pfnet")
    assert "did you mean pfenet?" in caught.value.remedy
    with pytest.raises(OptionError, match="no recipe for 'canet'"):
        find_one_shot_recipe("canet")
    with pytest.raises(OptionError, match="no reading 'mine'"):
        find_one_shot_recipe("pfenet", reading="mine")


def test_steps_of_epochs_and_of_budgets():
    recipe = change_one_shot_recipe(find_one_shot_recipe("rpmm"), {"batch": 8, "epochs": 3, "shots": 1})
    (plan,) = plan_training(recipe, 20)
    assert (plan.steps, plan.images) == (9, 16)
    assert plan_training(recipe, 20, budget_images=160)[0].steps == 10
    assert plan_training(recipe, 20, budget_images=1)[0].steps == 1
