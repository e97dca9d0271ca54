"""Arguments from the command line: converted by annotation, refused with the list of what is accepted."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from hardlook.errors import ModelError
from hardlook.models.arguments import complete_arguments, convert_arguments, list_arguments


class Model:
    def __init__(
        self,
        size: int,
        scale: float = 1.0,
        flip: bool = False,
        file: Path | None = None,
        window: tuple[int, int] = (8, 8),
        scales: tuple[float, ...] = (),
        mode: Literal["fast", "exact"] = "fast",
        note: str = "",
        either: int | str = 0,
        names: list[str] | None = None,
        words: Sequence[str] = (),
        anything: Any = None,
        bare=3,
    ) -> None: ...


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("scale", "0.5", 0.5),
        ("scale", 1, 1.0),
        ("flip", "yes", True),
        ("flip", "off", False),
        ("file", "weights.pt", Path("weights.pt")),
        ("file", "none", None),
        ("window", "4,6", (4, 6)),
        ("window", "(4, 6)", (4, 6)),
        ("window", [4, 6], (4, 6)),
        ("scales", "0.5,1", (0.5, 1.0)),
        ("scales", "", ()),
        ("mode", "exact", "exact"),
        ("note", "7", "7"),
        ("either", "7", 7),
        ("either", "seven", "seven"),
        ("names", "a,b", ["a", "b"]),
        ("words", "a,b", ("a", "b")),
        ("words", "a", ("a",)),
        ("words", "", ()),
        ("anything", "as it is", "as it is"),
        ("bare", "4", 4),
    ],
)
def test_words_become_what_the_annotation_says(key, text, value):
    converted = convert_arguments("mine", Model, {"size": "1", key: text})[key]
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("size", "1.5", "a whole number was expected"),
        ("size", True, "a whole number was expected"),
        ("scale", "big", "a number was expected"),
        ("scale", [1], "a number was expected"),
        ("flip", "maybe", "true or false was expected"),
        ("window", "4", "2 values were expected, got 1"),
        ("window", "4,x", "a whole number was expected"),
        ("window", 4, "values with commas between them were expected"),
        ("mode", "slow", "one of fast, exact was expected"),
        ("note", 7, "text was expected"),
        ("file", 7, "Path | None was expected"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(key, text, expected):
    with pytest.raises(ModelError) as caught:
        convert_arguments("mine", Model, {"size": 1, key: text})
    assert expected in caught.value.what
    assert f"{key}={text!r}" in caught.value.what
    assert "scale: float = 1.0" in caught.value.remedy


def test_unknown_and_missing_arguments_are_named():
    with pytest.raises(ModelError, match="no argument 'sice'") as caught:
        convert_arguments("mine", Model, {"sice": "1"})
    assert caught.value.remedy.startswith("did you mean 'size'? it accepts size: int")
    with pytest.raises(ModelError, match="needs a value for 'size'") as caught:
        convert_arguments("mine", Model, {})
    assert caught.value.remedy.startswith("--model-arg size=VALUE; it accepts")
    assert "words: Sequence[str] = ()" in caught.value.remedy


def test_defaults_complete_the_arguments():
    def model(size: int = 3, flip: bool = False) -> None: ...

    assert (
        complete_arguments("mine", model, {})
        == complete_arguments("mine", model, {"size": "3"})
        == {"size": 3, "flip": False}
    )


def test_a_class_without_arguments_says_so():
    class Plain: ...

    assert list_arguments(Plain) == []
    with pytest.raises(ModelError) as caught:
        convert_arguments("plain", Plain, {"size": 1})
    assert caught.value.remedy == "it accepts no arguments"


def test_open_keywords_pass_through():
    def model(size: int = 1, **more: object) -> None: ...

    assert convert_arguments("mine", model, {"size": "2", "other": "x"}) == {"size": 2, "other": "x"}


def test_a_partial_converts_as_its_function_does():
    def build(name: str, size: tuple[int, ...] = (), scale: float | None = None) -> None: ...

    factory = functools.partial(build, "mine")
    assert convert_arguments("mine", factory, {"size": "4,6", "scale": "2"}) == {"size": (4, 6), "scale": 2.0}
    assert list_arguments(factory) == ["size: tuple[int, ...] = ()", "scale: float | None = None"]
