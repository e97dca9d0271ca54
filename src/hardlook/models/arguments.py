"""A model's arguments: what its constructor accepts, and words from the command line turned into that.

>>> def model(scale: float = 1.0, size: tuple[int, int] = (8, 8)) -> None: ...
>>> convert("mine", model, {"scale": "0.5", "size": "4,6"})
{'scale': 0.5, 'size': (4, 6)}
>>> accepted(model)
['scale: float = 1.0', 'size: tuple[int, int] = (8, 8)']
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from hardlook.errors import ModelError

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Unfit(ValueError):
    """A value that its annotation does not allow."""


def accepted(factory: Callable[..., Any]) -> list[str]:
    """One line an argument, `name: type = default`, as the factory's signature has it."""
    types_ = _annotations(factory)
    return [_line(parameter, types_) for parameter in _parameters(factory) if parameter.kind in _NAMED]


def convert(name: str, factory: Callable[..., Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for `factory`, strings converted by its annotations; a `ModelError` where one cannot be.

    A sequence is written with commas (`size=4,6`), a missing value `none`, a switch `true` or `false`.
    """
    parameters = {parameter.name: parameter for parameter in _parameters(factory) if parameter.kind in _NAMED}
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in _parameters(factory))
    remedy = "it accepts " + ("; ".join(accepted(factory)) or "no arguments")
    unknown = [] if open_ended else [key for key in args if key not in parameters]
    if unknown:
        raise ModelError(f"the model {name!r} has no argument {', '.join(map(repr, unknown))}", remedy=remedy)
    needed = [p.name for p in parameters.values() if p.default is inspect.Parameter.empty and p.name not in args]
    if needed:
        raise ModelError(f"the model {name!r} needs a value for {', '.join(map(repr, needed))}", remedy=remedy)
    annotations = _annotations(factory)
    converted = {}
    for key, value in args.items():
        wanted = annotations.get(key, _type_of_default(parameters.get(key)))
        try:
            converted[key] = _fitted(value, wanted)
        except _Unfit as error:
            raise ModelError(f"the model {name!r} cannot take {key}={value!r}: {error}", remedy=remedy) from None
    return converted


def complete(name: str, factory: Callable[..., Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """The same with every default filled in, so that saying a default and leaving it out are one model."""
    defaults = {
        parameter.name: parameter.default
        for parameter in _parameters(factory)
        if parameter.kind in _NAMED and parameter.default is not inspect.Parameter.empty
    }
    return defaults | convert(name, factory, args)


def _parameters(factory: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):  # compiled classes may hide their signature: anything may be passed then
        return [inspect.Parameter("args", inspect.Parameter.VAR_KEYWORD)]


def _annotations(factory: Callable[..., Any]) -> dict[str, Any]:
    annotated = factory.__init__ if inspect.isclass(factory) else factory
    try:
        return typing.get_type_hints(annotated)
    except (NameError, TypeError, AttributeError):  # names that only a type checker sees
        return {}


def _line(parameter: inspect.Parameter, types_: Mapping[str, Any]) -> str:
    wanted = types_.get(parameter.name, inspect.Parameter.empty)
    text = parameter.name if wanted is inspect.Parameter.empty else f"{parameter.name}: {_named(wanted)}"
    return text if parameter.default is inspect.Parameter.empty else f"{text} = {parameter.default!r}"


def _named(wanted: Any) -> str:
    plain = isinstance(wanted, type) and not typing.get_args(wanted)
    return wanted.__name__ if plain else str(wanted).replace("typing.", "").replace("pathlib.", "")


def _type_of_default(parameter: inspect.Parameter | None) -> Any:
    # An argument without an annotation still says what it wants by its default.
    simple = parameter is not None and type(parameter.default) in (bool, int, float, str)
    return type(parameter.default) if parameter is not None and simple else Any


def _fitted(value: Any, wanted: Any) -> Any:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _first_fit(value, inner, wanted)
    if origin is Literal:
        for choice in inner:
            if value == choice or value == str(choice):
                return choice
        raise _Unfit(f"one of {', '.join(map(str, inner))} was expected")
    if wanted is type(None):
        if value is None or value in ("none", "None", ""):
            return None
        raise _Unfit("none was expected")
    if wanted in (tuple, list) or origin in (tuple, list, Sequence):
        return _sequence(value, list if origin is list or wanted is list else tuple, inner)
    converters = {bool: _switch, int: _whole, float: _number, str: _text, Path: _path}
    return converters[wanted](value) if wanted in converters else value


def _first_fit(value: Any, choices: Sequence[Any], wanted: Any) -> Any:
    # Text fits everything that is written, so it comes last.
    for choice in sorted(choices, key=lambda choice: choice in (str, Path)):
        try:
            return _fitted(value, choice)
        except _Unfit:
            continue
    raise _Unfit(f"{_named(wanted)} was expected")


def _sequence(value: Any, container: Callable[[list[Any]], Any], inner: Sequence[Any]) -> Any:
    if isinstance(value, str):
        text = value.strip().removeprefix("(").removeprefix("[").removesuffix(")").removesuffix("]")
        items: list[Any] = [item.strip() for item in text.split(",") if item.strip()]
    elif isinstance(value, list | tuple):
        items = list(value)
    else:
        raise _Unfit("values with commas between them were expected")
    if container is tuple and inner and inner[-1] is not Ellipsis:
        if len(items) != len(inner):
            raise _Unfit(f"{len(inner)} values were expected, {len(items)} came")
        return container([_fitted(item, kind) for item, kind in zip(items, inner, strict=True)])
    kind = inner[0] if inner else Any
    return container([_fitted(item, kind) for item in items])


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    raise _Unfit("true or false was expected")


def _whole(value: Any) -> int:
    try:
        if isinstance(value, str) or (isinstance(value, Integral) and not isinstance(value, bool)):
            return int(value)
    except ValueError:
        pass
    raise _Unfit("a whole number was expected")


def _number(value: Any) -> float:
    try:
        if isinstance(value, str) or (isinstance(value, Real) and not isinstance(value, bool)):
            return float(value)
    except ValueError:
        pass
    raise _Unfit("a number was expected")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _Unfit("text was expected")


def _path(value: Any) -> Path:
    if isinstance(value, str | Path):
        return Path(value).expanduser()
    raise _Unfit("a path was expected")
