"""Options are held against the annotations of what they are for."""

from functools import partial
from typing import Literal

import pytest
from tiny_few_shot import make_data, make_recipe, train_tiny

from hardlook.errors import OptionError
from hardlook.training.constructor_options import check_options


class Base:
    def __init__(self, *, rate: float = 0.1, width: int | None = None, order: Literal["rows", "columns"] = "rows"):
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


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("dsn", {"option.released": "off"}, "the method dsn .* released='off' is not yes or no"),
        ("protonet", {"backbone.slope": "yes"}, "the backbone conv64f .* slope=True is not a finite number"),
    ],
)
def test_a_training_names_them(method, given, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        train_tiny(tmp_path, make_recipe(method, **given), make_data())
