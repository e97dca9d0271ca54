"""Options are held against the annotations of what they are for."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import pytest
from tiny_few_shot import make_data, make_recipe, train_tiny

from hardlook.errors import OptionError
from hardlook.training.constructor_options import check_options
from hardlook.training.interactive.recipes import change_interactive_recipe, find_interactive_recipe
from hardlook.training.interactive.trainee import build_interactive
from hardlook.training.one_shot import build_one_shot
from hardlook.training.one_shot_recipes import change_one_shot_recipe, find_one_shot_recipe


class Base:
    def __init__(self, *, rate: float = 0.1, width: int | None = None, order: Literal["rows", "columns"] = "rows"):
        pass


class Wrapper:
    inner, inner_prefix = Base, "inner_"

    def __init__(self, *, order: int = 0, **options: Any):
        pass


class Held:
    def __init__(
        self, *, head: Base | None = None, sizes: tuple[int, ...] = (), draw: Callable[[int], int] = abs, extra: Any = 0
    ):
        pass


class Derived(Base):
    def __init__(self, *, fast: bool = False, rate: int = 1, **options: float):
        pass

    @classmethod
    def build(cls, *, name: str = "", **options):
        return cls(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"fast": "off"}, {"fast": 1}, {"rate": 2.5}, {"rate": True}, {"width": 1.5}, {"width": "wide"},
        {"order": "row"}, {"name": 3},
    ],
)  # fmt: skip
def test_values_of_another_type_are_refused(options):
    [(name, value)] = options.items()
    for made in (Derived, partial(Derived, name="x")):
        with pytest.raises(ValueError, match=f"{name}={value!r} is no"):
            check_options(made, options)


def test_values_that_fit_pass_and_unknown_names_are_left_to_the_constructor():
    check_options(Derived, {"fast": True, "rate": 3, "width": None, "order": "columns", "name": "x", "unknown": "?"})
    check_options(Base, {"rate": 3, "width": 4})
    for rate in (float("nan"), float("inf"), "fast"):
        with pytest.raises(ValueError, match="a finite number"):
            check_options(Base, {"rate": rate})


def test_words_are_no_objects_tuples_or_functions():
    check_options(Held, {"head": None, "sizes": (1, 2), "draw": len, "extra": "x"})
    check_options(Held, {"head": Base()})
    for name, expected in (("head", "a Base"), ("sizes", "a tuple"), ("draw", "a Callable")):
        with pytest.raises(ValueError, match=f"{name}='x' is not {expected}$"):
            check_options(Held, {name: "x"})


def test_options_passed_on_are_those_of_the_class_inside():
    check_options(Wrapper, {"order": 2, "inner_order": "columns", "inner_rate": 0.5, "rate": "any"})
    for name, value in (("order", "rows"), ("inner_order", "row"), ("inner_rate", "fast")):
        with pytest.raises(ValueError, match=f"{name}='{value}' is no"):
            check_options(Wrapper, {name: value})


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("lp-ft-fb", {"option.head": "x"}, "the method lp-ft-fb .* head='x' is not a HeadTraining"),
        ("ata-gnn", {"option.inner_layers": "two"}, "the method ata-gnn .* inner_layers='two' is not a whole number"),
        ("ifsl-maml", {"option.inner_rate": "fast"}, "the method ifsl-maml .* inner_rate='fast' is not a finite"),
        ("ifsl-knn", {"option.k": 1.5}, "the method ifsl-knn .* k=1.5 is not a whole number"),
        ("dsn", {"option.released": "off"}, "the method dsn .* released='off' is not yes or no"),
        ("protonet", {"backbone.slope": "yes"}, "the backbone conv64f .* slope=True is not a finite number"),
    ],
)
def test_a_training_names_them(method, given, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        train_tiny(tmp_path, make_recipe(method, **given), make_data())


@pytest.mark.parametrize(
    ("network", "given", "message"),
    [
        ("pfenet", {"option.released": "off"}, "pfenet on resnet50-keras .* released='off' is not yes or no"),
        ("simpropnet", {"option.rounds": 2.5}, "simpropnet on .* rounds=2.5 is not a whole number"),
        ("hsnet", {"option.rounds": 2}, "hsnet on .* cannot be made with rounds=2"),
    ],
)
def test_one_shot_networks_name_them(network, given, message):
    recipe = change_one_shot_recipe(find_one_shot_recipe(network), given)
    with pytest.raises(OptionError, match=message):
        build_one_shot(recipe, classes=3, seed=0)


@pytest.mark.parametrize(
    ("backbone", "given", "message"),
    [
        ("hrnet18s", {"option.use_disks": "off"}, "ritm on hrnet18s .* use_disks='off' is not yes or no"),
        ("resnet50-keras", {"option.width": 8.5}, "ritm on resnet50-keras .* width=8.5 is not a whole number"),
    ],
)
def test_interactive_networks_name_them(backbone, given, message):
    recipe = change_interactive_recipe(find_interactive_recipe("ritm", backbone), given)
    with pytest.raises(OptionError, match=message):
        build_interactive(recipe, seed=0)
