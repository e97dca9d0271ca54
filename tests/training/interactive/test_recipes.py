"""Recipes of interactive networks: found by backbone, changed by name, checked."""

import pytest

pytest.importorskip("torch")

from hardlook.errors import OptionError
from hardlook.training.interactive.recipes import (
    change_interactive_recipe,
    find_interactive_recipe,
    list_backbones,
)
from hardlook.training.recipes import plan_stage


def test_every_backbone_has_a_recipe_with_its_source():
    assert list_backbones() == ("hrnet18s", "hrnet18", "hrnet32", "resnet50-keras")
    for backbone in list_backbones():
        recipe = find_interactive_recipe("ritm", backbone)
        assert recipe.source and recipe.stage.stage == "clicks" and recipe.stage.optimiser == "adam"
        assert (recipe.stage.lr, recipe.backbone_rate) == (5e-4, 0.1)


def test_published_batches_and_milestones():
    batches = [find_interactive_recipe("ritm", name).stage.batch for name in ("hrnet18s", "hrnet18", "hrnet32")]
    assert batches == [32, 28, 32]
    schedule = find_interactive_recipe("ritm", "hrnet18").stage.schedule
    assert (schedule.kind, schedule.gamma, schedule.milestones) == ("multi-step", 0.1, (200, 220))


def test_changes_are_made_and_named():
    recipe = find_interactive_recipe("ritm", "resnet50-keras")
    changed = change_interactive_recipe(recipe, {"size": "96", "zoomed": "0.25", "lr": "0.01", "option.stages": "2"})
    assert (changed.size, changed.zoomed, changed.stage.lr, changed.options) == (96, 0.25, 0.01, {"stages": 2})
    assert changed.changed == ("size", "zoomed", "lr", "option.stages")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"size": "x"}, "size=x: not a whole number"),
        ({"size": 16}, "size 16"),
        ({"most_clicks": 0}, "most_clicks 0"),
        ({"zoomed": 1.5}, "zoomed 1.5"),
        ({"shots": 1}, "a recipe has no 'shots'"),
    ],
)
def test_wrong_values_are_refused(changes, told):
    with pytest.raises(OptionError, match=told):
        change_interactive_recipe(find_interactive_recipe("ritm", "hrnet18"), changes)


def test_another_backbone_is_refused():
    with pytest.raises(OptionError, match="no recipe for ritm on 'vgg16'") as caught:
        find_interactive_recipe("ritm", "vgg16")
    assert "resnet50-keras" in caught.value.remedy


def test_steps_are_epochs_over_objects_or_a_budget():
    recipe = change_interactive_recipe(find_interactive_recipe("ritm", "resnet50-keras"), {"epochs": 3, "batch": 4})
    assert plan_stage(recipe.stage, 10)[0].steps == 9
    assert plan_stage(recipe.stage, 10, budget_images=100)[0].steps == 25
