"""Recipes: every row parses and fits its method, changes by name, budgets and shares of stages."""

import csv

import pytest

from hardlook.errors import OptionError
from hardlook.networks.few_shot.catalogue import list_methods
from hardlook.training.recipes import (
    Budget,
    Recipe,
    StageRecipe,
    change_recipe,
    find_recipe,
    parse_budget,
    plan_stages,
    read_recipes,
)


def test_every_row_parses_and_names_its_source():
    keys = [(row["method"], row["backbone"], row["stage"]) for row in read_recipes()]
    assert len(keys) == len(set(keys)) > 40
    for row in read_recipes():
        recipe = find_recipe(row["method"], row["backbone"], (row["stage"],))
        assert row["source"] and recipe.source == row["source"]
        assert recipe.stages[0].lr == float(row["lr"])


@pytest.mark.parametrize("entry", list_methods(), ids=lambda entry: entry.name)
def test_every_method_has_a_recipe_for_each_of_its_stages(entry):
    for backbone in ("conv64f", "resnet12"):
        assert [one.stage for one in find_recipe(entry.name, backbone, entry.stages).stages] == list(entry.stages)


def test_facts_of_the_toolkit_and_the_paper():
    protonet = find_recipe("protonet", "resnet12", ("episodes",)).stages[0]
    assert (protonet.optimiser, protonet.lr, protonet.weight_decay) == ("adam", 1e-3, 5e-4)
    assert (protonet.schedule.gamma, protonet.schedule.every, protonet.episodes) == (0.5, 10, 2000)
    plus = find_recipe("baseline++", "conv64f", ("classes",)).stages[0]
    assert (plus.optimiser, plus.lr, plus.momentum, plus.schedule.kind, plus.batch) == ("sgd", 0.01, 0.9, "cosine", 128)
    rfs = find_recipe("rfs", "resnet12", ("classes",)).stages[0]
    assert rfs.schedule.milestones == (60, 80) and rfs.batch == 64
    assert find_recipe("covamnet", "resnet12", ("episodes",)).stages[0].betas == (0.5, 0.9)
    assert find_recipe("deepbdc", "resnet12", ("classes",)).stages[0].part_lr == {
        "emb_func.bdc_pool.temperature": 0.001
    }


def test_changes_reach_one_stage_or_all():
    recipe = find_recipe("frn", "resnet12", ("classes", "episodes"))
    changed = change_recipe(recipe, {"epochs": 3, "classes.lr": "0.2", "milestones": "1 2", "option.released": "yes"})
    assert [one.epochs for one in changed.stages] == [3, 3]
    assert [one.lr for one in changed.stages] == [0.2, 1e-3]
    assert changed.stages[1].schedule.milestones == (1, 2) and changed.options == {"released": True}
    assert changed.changed == ("epochs", "classes.lr", "milestones", "option.released")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speed": 1}, "no 'speed'"),
        ({"lr": "fast"}, "lr=fast: not a value like"),
        ({"lr": 0}, "lr 0.0"),
        ({"classes.lr": 0.1}, "no 'classes.lr'"),
        ({"optimiser": "lion"}, "optimiser 'lion'"),
        ({"ways": 1}, "at least 2 ways"),
        ({"tasks": 3, "accumulate": 2}, "has no 2 parts"),
        ({"ema": 1}, "ema 1.0"),
        ({"shots": 1.5}, "shots=1.5: not a value like 1"),
        ({"tasks": True}, "tasks=True: not a value like"),
        ({"gamma": "nan"}, "gamma nan"),
        ({"every": -3}, "epochs between two steps"),
        ({"milestones": "-5"}, r"milestones \(-5,\)"),
        ({"warm_up": -1}, "warm_up -1"),
    ],
)
def test_wrong_changes_are_named(given, message):
    with pytest.raises(OptionError, match=message):
        change_recipe(find_recipe("protonet", "conv64f", ("episodes",)), given)


def test_budgets():
    assert parse_budget("") == Budget() and not parse_budget("")
    assert parse_budget("1.5h").seconds == 5400 and parse_budget("90s").seconds == 90
    assert parse_budget("300_000images").images == 300_000
    # Less than an image would be no budget, and train for as long as the recipe says.
    for wrong in ("10", "ten min", "-5min", "0images", "0.5images", "1.5images"):
        with pytest.raises(OptionError, match="not a budget"):
            parse_budget(wrong)


def test_stages_share_a_budget_as_their_recipes_do():
    stages = (StageRecipe("classes", epochs=10, batch=50), StageRecipe("episodes", epochs=2, episodes=100, tasks=2))
    recipe = Recipe("any", "conv64f", stages, ways=5, shots=1, queries=4)
    own = plan_stages(recipe, 1000)
    # 10 epochs of 20 batches; 2 epochs of 50 steps with 2 tasks of 25 images.
    assert [(plan.first, plan.steps, plan.images) for plan in own] == [(0, 200, 50), (200, 100, 50)]
    half = plan_stages(recipe, 1000, 7500)
    assert [(plan.first, plan.steps) for plan in half] == [(0, 100), (100, 50)]
    # 99.7 and 49.9 steps.
    assert [plan.steps for plan in plan_stages(recipe, 1000, 7480)] == [100, 50]
    assert [plan.steps for plan in plan_stages(recipe, 1000, 10)] == [1, 1]


def test_stages_share_a_budget_as_they_are_told():
    stages = (StageRecipe("classes", epochs=1, batch=50), StageRecipe("episodes", epochs=900, episodes=100, tasks=2))
    recipe = Recipe("any", "conv64f", stages, ways=5, shots=1, queries=4)
    equal = change_recipe(recipe, {"shares": "1,1"})
    # Half of 10,000 images in steps of 50 each; without a budget shares say nothing.
    assert [plan.steps for plan in plan_stages(equal, 1000, 10_000)] == [100, 100]
    assert [plan.steps for plan in plan_stages(equal, 1000)] == [plan.steps for plan in plan_stages(recipe, 1000)]
    one_to_three = change_recipe(equal, {"shares": (1, 3)})
    assert [plan.steps for plan in plan_stages(one_to_three, 1000, 10_000)] == [50, 150]
    for wrong in ("1", "1,0", "1,1,1", "-1,1"):
        with pytest.raises(OptionError, match=f"shares {wrong} for 2 stages of any") as raised:
            change_recipe(recipe, {"shares": wrong})
        assert "shares=1,1" in str(raised.value)
    with pytest.raises(OptionError, match="not a value like"):
        change_recipe(recipe, {"shares": "half"})
    # Trainings of earlier versions are the same ones without shares; an empty value takes them away.
    assert "shares" not in recipe.to_json() and equal.to_json()["shares"] == (1, 1)
    assert change_recipe(equal, {"shares": ""}).shares == ()


# The toolkit's names of the methods whose rows cite it, those of the stage on classes after a comma.
TOOLKIT = {
    "adm": "ADM", "adm-kl": "ADM_KL", "atl-net": "ATLNet", "baseline": "Baseline", "baseline++": "BaselinePlus",
    "boil": "BOIL", "can": "CAN", "covamnet": "ConvMNet", "cpea": "CPEANet", "deepbdc": "DeepBDC,DeepBDC_Pretrain",
    "deepbdc-stl": "DeepBDC,DeepBDC_Pretrain", "dsn": "DSN", "feat": "FEAT,FEAT_Pretrain", "fgfl": "GAINModel",
    "frn": "FRN,FRN_Pretrain", "leo": "LEO", "mcl": "MCL", "meta-baseline": "MetaBaseline,MetabaselinePretrain",
    "diffkendall": "MetaBaselineKendall,MetabaselineKendallPretrain", "metal": "METAL", "protonet": "ProtoNet",
    "r2d2": "R2D2", "relationnet": "RelationNet", "renet": "RENet", "rfs": "RFSModel", "rfs-distill": "RFSModel",
    "s2m2": "S2M2", "skd": "SKDModel", "skd-gen1": "SKDModel",
}  # fmt: skip
CITED = [row for row in read_recipes() if row["source"].startswith("LibFewShot")]


@pytest.mark.parametrize("row", CITED, ids=lambda row: "-".join((row["method"], row["backbone"], row["stage"])))
def test_rows_that_cite_the_toolkit_are_among_its_settings(row, shared_data):
    """Optimiser, rate, epochs and decay are those of one of its files, of the kind that the source names."""
    table = shared_data / "reference/networks/few_shot/recipes.csv"
    kind = "reproduce" if "validated settings" in row["source"] else "example config"
    with table.open() as stream:
        given = [one for one in csv.DictReader(stream) if one["kind"] == kind]
    names = TOOLKIT[row["method"]].split(",")
    wanted = names[-1] if row["stage"] == "classes" else names[0]
    settings = (row["optimiser"], float(row["lr"]), float(row["epochs"]))
    found = [
        one
        for one in given
        if one["method"] == wanted
        and one["lr"]
        and (one["optimiser"].lower(), float(one["lr"]), float(one["epochs"])) == settings
        and (row["backbone"] == "*" or one["backbone"].lower().startswith(row["backbone"]))
    ]
    assert found
    # A recipe for weights that were trained before is no recipe for random ones; two stages train them first.
    before = all(
        "pre-training" in one["pretrain_or_init"] or "init_weights" in one["pretrain_or_init"] for one in found
    )
    stages = {one["stage"] for one in read_recipes() if one["method"] == row["method"]}
    assert ("--start" in row["source"]) == (before and stages == {"episodes"})


def test_what_is_not_published_is_marked_as_our_default():
    """Every other source names a paper; a method without a row has the general one."""
    for row in read_recipes():
        known = ("LibFewShot 067efb7", "MetaCoCo (ICLR 2024)", "hardlook's defaults: ", "He et al.", "Tian et al.")
        assert row["source"].startswith(known), row
    rows = {row["method"] for row in read_recipes()}
    without = [entry for entry in list_methods() if entry.name not in rows]
    assert {entry.name for entry in without} >= {"cdkt-ml", "tsa"}
    for entry in without:
        assert find_recipe(entry.name, "conv64f", entry.stages).source.startswith("hardlook's defaults: ")
