"""Arguments of a model: what its constructor accepts, and text from the command line converted to that.

>>> def model(scale: float = 1.0, size: tuple[int, int] = (8, 8)) -> None: ...
>>> convert_arguments("mine", model, {"scale": "0.5", "size": "4,6"})
{'scale': 0.5, 'size': (4, 6)}
>>> list_arguments(model)
['scale: float = 1.0', 'size: tuple[int, int] = (8, 8)']
>>> parse_arguments("size=4,6,scale=2")
{'size': '4,6', 'scale': '2'}
"""

from __future__ import annotations

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from hardlook.errors import ModelError, OptionError

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_EMPTY = inspect.Parameter.empty


def list_arguments(factory: Callable[..., Any]) -> list[str]:
    """One line per argument, `name: type = default`, from the factory's signature."""
    annotations = _annotations(factory)
    return [_format_parameter(parameter, annotations) for parameter in _parameters(factory) if parameter.kind in _NAMED]


def convert_arguments(name: str, factory: Callable[..., Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for `factory`, strings converted by its annotations; a `ModelError` where that fails.

    A sequence is written with commas (`size=4,6`), a missing value `none`, a switch `true` or `false`. `name` is the
    model's name in errors.
    """
    parameters = {parameter.name: parameter for parameter in _parameters(factory) if parameter.kind in _NAMED}
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in _parameters(factory))
    remedy = "it accepts " + ("; ".join(list_arguments(factory)) or "no arguments")
    unknown = [] if open_ended else [key for key in args if key not in parameters]
    if unknown:
        near = difflib.get_close_matches(unknown[0], parameters, n=1)
        remedy = f"did you mean {near[0]!r}? {remedy}" if near else remedy
        raise ModelError(f"the model {name!r} has no argument {', '.join(map(repr, unknown))}", remedy=remedy)
    if missing := [p.name for p in parameters.values() if p.default is _EMPTY and p.name not in args]:
        remedy = " ".join(f"--model-arg {each}=VALUE" for each in missing) + f"; {remedy}"
        raise ModelError(f"the model {name!r} needs a value for {', '.join(map(repr, missing))}", remedy=remedy)
    annotations = _annotations(factory)
    converted = {}
    for key, value in args.items():
        expected = annotations.get(key, _type_of_default(parameters.get(key)))
        try:
            converted[key] = _convert(value, expected)
        except _ConversionError as error:
            raise ModelError(f"the model {name!r} cannot take {key}={value!r}: {error}", remedy=remedy) from None
    return converted


def complete_arguments(name: str, factory: Callable[..., Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """The converted arguments with all defaults filled in: a default that is given and one left out are the same."""
    defaults = {
        parameter.name: parameter.default
        for parameter in _parameters(factory)
        if parameter.kind in _NAMED and parameter.default is not _EMPTY
    }
    return defaults | convert_arguments(name, factory, args)


def parse_arguments(text: str) -> dict[str, str]:
    """Arguments written as `key=value` with commas between; a comma within a value is kept."""
    arguments: dict[str, str] = {}
    last = ""
    for part in (part.strip() for part in text.split(",") if part.strip()):
        key, equals, value = part.partition("=")
        if not equals and last:
            arguments[last] += f",{part}"
            continue
        last = key.strip()
        if not equals or not last or last in arguments:
            what = f"{last!r} comes twice" if equals and last in arguments else f"{part!r} names no argument"
            raise OptionError(f"{what} in {text!r}", remedy="write key=value with commas between, each key once")
        arguments[last] = value.strip()
    return arguments


def _parameters(factory: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):  # compiled classes may hide their signature: anything may be passed then
        return [inspect.Parameter("args", inspect.Parameter.VAR_KEYWORD)]


def _annotations(factory: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(factory, functools.partial):
        factory = factory.func
    annotated = factory.__init__ if inspect.isclass(factory) else factory
    try:
        return typing.get_type_hints(annotated)
    except (NameError, TypeError, AttributeError):  # names that only a type checker sees
        return {}


def _format_parameter(parameter: inspect.Parameter, annotations: Mapping[str, Any]) -> str:
    expected = annotations.get(parameter.name, _EMPTY)
    text = parameter.name if expected is _EMPTY else f"{parameter.name}: {_format_type(expected)}"
    return text if parameter.default is _EMPTY else f"{text} = {parameter.default!r}"


def _format_type(expected: Any) -> str:
    plain = isinstance(expected, type) and not typing.get_args(expected)
    if plain:
        return str(expected.__name__)
    return str(expected).replace("typing.", "").replace("pathlib.", "").replace("collections.abc.", "")


def _type_of_default(parameter: inspect.Parameter | None) -> Any:
    # The default of an argument without an annotation still shows its type.
    kind = type(parameter.default) if parameter is not None else None
    return kind if kind in (bool, int, float, str) else Any


class _ConversionError(ValueError):
    """A value that its annotation does not allow."""


def _convert(value: Any, expected: Any) -> Any:
    origin, inner = typing.get_origin(expected), typing.get_args(expected)
    if origin in (typing.Union, types.UnionType):
        # Any value can be read as text, so text comes last.
        for choice in sorted(inner, key=lambda choice: choice in (str, Path)):
            try:
                return _convert(value, choice)
            except _ConversionError:
                continue
        raise _ConversionError(f"{_format_type(expected)} was expected")
    if origin is Literal:
        for choice in inner:
            if value == choice or value == str(choice):
                return choice
        raise _ConversionError(f"one of {', '.join(map(str, inner))} was expected")
    if expected is type(None):
        if value is None or value in ("none", "None", ""):
            return None
        raise _ConversionError("none was expected")
    if expected in (tuple, list) or origin in (tuple, list, Sequence):
        # A tuple without an ellipsis has a fixed length; any other sequence has any.
        every = (*inner, ...) if origin is Sequence else inner
        return _convert_sequence(value, list if origin is list or expected is list else tuple, every)
    return _convert_scalar(value, expected)


def _convert_sequence(value: Any, container: Callable[[list[Any]], Any], inner: Sequence[Any]) -> Any:
    if isinstance(value, str):
        text = value.strip().removeprefix("(").removeprefix("[").removesuffix(")").removesuffix("]")
        items: list[Any] = [item.strip() for item in text.split(",") if item.strip()]
    elif isinstance(value, list | tuple):
        items = list(value)
    else:
        raise _ConversionError("values with commas between them were expected")
    if container is tuple and inner and inner[-1] is not Ellipsis:
        if len(items) != len(inner):
            raise _ConversionError(f"{len(inner)} values were expected, got {len(items)}")
        return container([_convert(item, kind) for item, kind in zip(items, inner, strict=True)])
    kind = inner[0] if inner else Any
    return container([_convert(item, kind) for item in items])


def _convert_scalar(value: Any, expected: Any) -> Any:
    if expected is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
            return value.lower() in _TRUE
        raise _ConversionError("true or false was expected")
    if expected in (int, float):
        number = isinstance(value, Integral if expected is int else Real) and not isinstance(value, bool)
        try:
            if number or isinstance(value, str):
                return expected(value)
        except ValueError:
            pass
        raise _ConversionError("a whole number was expected" if expected is int else "a number was expected")
    if expected is str and not isinstance(value, str):
        raise _ConversionError("text was expected")
    if expected is Path:
        if isinstance(value, str | Path):
            return Path(value).expanduser()
        raise _ConversionError("a path was expected")
    return value
