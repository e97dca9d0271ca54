"""What is known of a model without building it, and how its code is reached.

>>> Found(ModelCard("shouting", summary="makes text loud"), "builtins:str.upper").factory()("ok")
'OK'
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hardlook.errors import HardlookError, ModelError

MARKS = {
    "GL": "pretrained on the labels of all training classes",
    "LL": "trained on tasks, with the labels of each task",
    "TT": "adapts to the supports when it is tested",
    "transductive": "answers all queries of a task together",
}
"""What a few-shot learner's marks mean; the letters are MetaCoCo's."""


@dataclass(frozen=True)
class ModelCard:
    """A model's name, roles and terms.

    `roles` may be empty (an outside model that does not say: then any is tried); `weights` are names of weight
    files to fetch; `origin` says where the name was found; `problem` why the model cannot be used, if so; `marks` are
    keys of `MARKS`.
    """

    name: str
    roles: tuple[str, ...] = ()
    summary: str = ""
    licence: str = ""
    extra: str = ""
    weights: tuple[str, ...] = ()
    origin: str = "built-in"
    problem: str = ""
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """A model's card and its factory, which may still be a dotted path that nobody has imported."""

    card: ModelCard
    target: Callable[..., Any] | str

    def factory(self) -> Callable[..., Any]:
        """The class or function that makes the model, imported now if need be."""
        return import_dotted(self.target) if isinstance(self.target, str) else self.target


def marks_of(target: Any) -> tuple[str, ...]:
    """The marks that a class says of itself in `flags` and `transductive`.

    >>> class Mine:
    ...     flags, transductive = ("GL", "TT"), True
    >>> marks_of(Mine), marks_of(str)
    (('GL', 'TT', 'transductive'), ())
    """
    flags = getattr(target, "flags", ())
    said = [flag for flag in flags if flag in MARKS] if isinstance(flags, tuple | list) else []
    return (*said, "transductive") if getattr(target, "transductive", False) is True else tuple(said)


def import_dotted(path: str) -> Callable[..., Any]:
    """The class or function at `package.module:attribute`."""
    module, _, attribute = path.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except HardlookError:
        raise
    except (Exception, SystemExit) as error:  # what outside code does when imported is anyone's guess
        raise ModelError(
            f"{path!r} could not be imported: {type(error).__name__}: {error}",
            remedy="write package.module:attribute, importable from where you are (see PYTHONPATH)",
        ) from error
    if not callable(value):
        raise ModelError(f"{path!r} is a {type(value).__name__}, not a class or function that makes a model")
    made: Callable[..., Any] = value
    return made
