"""Options of a constructor that come from words: checked against its annotations.

Python itself does not look at these: `released="off"` would count as true, and a word that is none of a `Literal` as
whatever is compared last.

>>> from hardlook.networks.few_shot.boil import Boil
>>> check_options(Boil, {"test": "nil", "steps": 2})
>>> check_options(Boil, {"test": "nill"})
Traceback (most recent call last):
...
ValueError: test='nill' is none of update, directly, nil
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hardlook.errors import OptionError

_PLAIN: dict[Any, str] = {bool: "yes or no", int: "a whole number", float: "a finite number", str: "a word"}


def check_options(made: Any, options: Mapping[str, Any]) -> None:
    """Raise a `ValueError` for a value that does not have the type of its parameter.

    `made` is a class, whose base classes may take the rest of its options, or a `partial` of one; what is around
    something else says so: its `inner` class is held against the options whose names begin with its `inner_prefix`.
    Names that no parameter has are left to the constructor.
    """
    kind: Any = made.func if isinstance(made, partial) else made
    hints = _list_hints(kind)
    if (inner := getattr(kind, "inner", None)) is not None:
        hints = {f"{kind.inner_prefix}{name}": hint for name, hint in _list_hints(inner).items()} | hints
    for name, value in options.items():
        if name in hints and not _fits(value, hints[name]):
            raise ValueError(f"{name}={value!r} is {_describe(hints[name])}")


@contextmanager
def naming_options(what: str, options: Mapping[str, Any]) -> Iterator[None]:
    """An `OptionError` with the options in place of what a constructor raises when it does not take them."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        if not options:
            raise
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        raise OptionError(
            f"{what} cannot be made with {given}: {error}", remedy="change what --set gives it"
        ) from error


def _list_hints(kind: type) -> dict[str, Any]:
    """The annotations of what makes an object of the class, those of the class before those of its bases."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name in ("__init__", "build"):
            if name in vars(base):
                try:
                    found |= get_type_hints(getattr(base, name))
                except (NameError, TypeError):  # of names that exist for type checkers alone
                    continue
    return found


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if (origin := get_origin(hint)) is Callable:
        return callable(value)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) and kind is not Any else True


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"none of {', '.join(map(str, get_args(hint)))}"
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    words = [_PLAIN.get(one) or f"a {getattr(one, '__name__', one)}" for one in parts if one is not type(None)]
    return f"not {' or '.join(words)}"
