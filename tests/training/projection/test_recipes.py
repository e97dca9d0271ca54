"""Recipes of semantic projections: rows by encoder and text, changes, refusals."""

import pytest

pytest.importorskip("torch")

from hardlook.errors import OptionError
from hardlook.training.projection.recipes import (
    change_projection_recipe,
    find_projection_recipe,
    read_rows,
)
from hardlook.training.recipes import plan_stage


def test_each_encoder_has_its_own_row_and_others_the_general_one():
    own, other = find_projection_recipe("resnet50-imagenet", "minilm"), find_projection_recipe("mine", "glove")
    assert own.encoder_args["layer"] == "stride16+stride32" and own.text == "minilm"
    assert other.encoder == "mine" and other.encoder_args == {}
    assert all(row["source"] for row in read_rows())


def test_changes_are_of_the_right_type_and_kept_by_name():
    changed = change_projection_recipe(
        find_projection_recipe(), {"lr": "0.5", "hidden": "8", "balance": 1, "novel": "background", "text.unknown": "x"}
    )
    assert (changed.stage.lr, changed.hidden, changed.balance, changed.novel) == (0.5, 8, 1.0, "background")
    assert changed.text_args == {"unknown": "x"} and changed.changed[:2] == ("lr", "hidden")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dropout": 1}, "dropout 1.0"),
        ({"balance": 2}, r"balance 2\.0"),
        ({"cells": "many"}, "cells=many: not a number"),
        ({"novel": "seen"}, "novel 'seen'"),
        ({"size": 3}, "a recipe has no 'size'"),
        ({"image.size": 3}, r"a recipe has no 'image\.size'"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(OptionError, match=message):
        change_projection_recipe(find_projection_recipe(), given)


def test_the_plan_is_of_epochs_or_of_a_budget():
    recipe = change_projection_recipe(find_projection_recipe(), {"epochs": 3, "batch": 4})
    assert plan_stage(recipe.stage, 9)[0].steps == 9 and plan_stage(recipe.stage, 9, budget_images=20)[0].steps == 5
