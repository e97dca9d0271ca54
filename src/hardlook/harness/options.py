"""Options of a benchmark: a pydantic model with a description of each field.

Each field declares what it changes: the `units`, their records (`answers`), or only the `scores`. A run can be resumed
where only score options differ.

>>> class Example(BenchmarkOptions):
...     shots: int = option(1, "Supports per class.", changes="units")
...     level: float = option(0.95, "Confidence level.", changes="scores")
>>> sorted(fields_that_change(Example, "scores"))
['level', 'reading']
"""

from __future__ import annotations

from pathlib import Path, PurePath
from types import UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hardlook.errors import OptionError, shorten

Changes = Literal["units", "answers", "scores"]


def option(default: Any, description: str, *, changes: Changes, added: bool = False, **limits: Any) -> Any:
    """A field with its default, its description and what it changes; `limits` are pydantic's (ge, le...).

    `added` marks an option that is newer than its benchmark: at its default it is not part of a run's fingerprint, so
    that earlier runs can be resumed.
    """
    extra: dict[str, Any] = {"changes": changes, **({"added": True} if added else {})}
    return Field(default, description=description, json_schema_extra=extra, **limits)


class BenchmarkOptions(BaseModel):
    """The options of every benchmark; a subclass adds its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    command: ClassVar[str] = "hardlook run BENCHMARK"
    """The command whose help lists the options, for errors."""

    data: dict[str, Path] = option({}, "Datasets as NAME=PATH; none means the planted world.", changes="units")
    gt: Path | None = option(None, "Ground truth of stored predictions.", changes="units")
    pred: Path | None = option(None, "Stored predictions, scored in place of a model.", changes="answers")
    seed: int = option(0, "Seed of everything that is drawn.", changes="units", ge=0)
    reading: dict[str, str] = option({}, "Readings as NAME=VALUE, where text and numbers differ.", changes="scores")

    def list_other_models(self, model: str) -> dict[str, str]:
        """By role the models besides `model` that a run's answers come from, as reports name them."""
        return {}


def fields_that_change(options: type[BenchmarkOptions], what: Changes) -> set[str]:
    """Names of the fields that change units, answers or scores."""
    extras = {name: field.json_schema_extra for name, field in options.model_fields.items()}
    return {name for name, extra in extras.items() if isinstance(extra, dict) and extra.get("changes") == what}


def is_unset_addition(options: BenchmarkOptions, name: str) -> bool:
    """Whether the field is an added one that has its default."""
    field = type(options).model_fields[name]
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("added")) and getattr(options, name) == field.default


def parse_options(
    kind: type[BenchmarkOptions], given: dict[str, Any], benchmark: str = "BENCHMARK"
) -> BenchmarkOptions:
    """Build the options, several values split at commas; an error names each option, what it got and what it takes.

    `benchmark` is the name of the benchmark whose help an error points to.
    """
    several = {name for name, field in kind.model_fields.items() if takes_several(field.annotation)}
    split = {name: value.split(",") for name, value in given.items() if name in several and isinstance(value, str)}
    try:
        return kind(**{**given, **split})
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = "--" + ".".join(str(part) for part in problem["loc"]).replace("_", "-")
            lines.append(f"{name}: {problem['msg'].lower()} (got {_describe_value(problem['input'])})")
        named = "models are options by name: @hl.register gives a class one; " if _has_object(error) else ""
        remedy = f"{named}see `{kind.command.replace('BENCHMARK', benchmark)} --help`"
        raise OptionError("\n".join(lines), remedy=remedy) from None


_PLAIN = (str, bytes, int, float, list, tuple, dict, set, PurePath, type(None))


def _describe_value(value: Any) -> str:
    """What an option got; an object by its class alone, since a network prints all its layers.

    >>> _describe_value("x"), _describe_value(object())
    ("'x'", 'an object of the class object')
    """
    return shorten(repr(value)) if isinstance(value, _PLAIN) else f"an object of the class {type(value).__qualname__}"


def _has_object(error: ValidationError) -> bool:
    """Whether an option that takes a text got an object."""
    problems = error.errors()
    return any(one["type"] == "string_type" and not isinstance(one["input"], _PLAIN) for one in problems)


def takes_several(annotation: Any) -> bool:
    """Whether the type is a list or tuple, or one of these or None.

    >>> takes_several(tuple[int, ...] | None), takes_several(int | None)
    (True, False)
    """
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return any(get_origin(kind) in (list, tuple) for kind in kinds)


def read_reading(options: BenchmarkOptions, name: str, choices: dict[str, str], default: str) -> str:
    """The chosen value of a reading; the error for an unknown value lists the choices."""
    value = options.reading.get(name, default)
    if value not in choices:
        known = ", ".join(f"{key} ({meaning})" for key, meaning in choices.items())
        raise OptionError(f"--reading {name}={value}: there is no such reading", remedy=f"choose one of: {known}")
    return value
