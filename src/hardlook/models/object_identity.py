"""Fingerprints of models that are given as objects: their source, and everything they hold.

A model with a name is known by its code, arguments and weights files. An object, such as a network that was built in a
notebook, is known by the source of its classes and functions and by a hash of its state: parameters, buffers and all
other attributes.

>>> import functools
>>> scale = lambda image, by: image * by
>>> hash_object(functools.partial(scale, by=2)) == hash_object(functools.partial(scale, by=3))
False
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.errors import ModelError
from hardlook.models.identity import ModelIdentity, hash_weights, sources_of

_LOCKS = (type(threading.Lock()), type(threading.RLock()))

# Attributes that change while a model runs, and change no answer.
_NOT_STATE = ("_forward_hooks_always_called", "_is_full_backward_hook", "_version")


@dataclass(frozen=True)
class ObjectIdentity:
    """An object's hash, its class or function as text, and how many parameters (numbers) it holds."""

    digest: str
    kind: str
    parameters: int

    def describe(self) -> str:
        """What was hashed, in one sentence.

        >>> ObjectIdentity("ab12", "mine.Net", 1200).describe()
        'the model is an object of mine.Net, known by a hash of its source and of its 1,200 parameters'
        """
        held = f"its {self.parameters:,} parameters" if self.parameters else "what it holds"
        return f"the model is an object of {self.kind}, known by a hash of its source and of {held}"


def identify_object(model: object) -> ObjectIdentity:
    """The identity of a model that is given as an object."""
    hasher = _ObjectHasher()
    hasher.add(model)
    named = model if isinstance(model, type | types.FunctionType) else type(model)
    return ObjectIdentity(hasher.digest.hexdigest(), f"{named.__module__}.{named.__qualname__}", hasher.numbers)


def identify_given(model: object, *, name: str, role: str) -> tuple[ModelIdentity, str, str]:
    """The identity of a model that is given as an object, a hash of its class's source, and what was hashed in words.

    A model's own `fingerprint()` takes the place of the hash.
    """
    own = getattr(model, "fingerprint", None)
    if callable(own):
        source, words = str(own()), "the model is an object, known by its own fingerprint"
    else:
        found = identify_object(model)
        source, words = f"object:{found.digest}", found.describe()
    device = str(getattr(model, "device", ""))
    identity = ModelIdentity(name, role, {}, source, hash_weights(model, name), device)
    code = hash_object(model) if isinstance(model, types.FunctionType) else _hash_class(type(model))
    return identity, code, words


def hash_object(value: object) -> str:
    """Hash of an object: equal for equal source and equal state, also in another process."""
    return identify_object(value).digest


def name_object(model: object) -> str:
    """The name of a model that is given as an object: its attribute `name`, else that of its class or function.

    >>> name_object(len), name_object(np.zeros(2))
    ('len', 'ndarray')
    """
    own = getattr(model, "name", None)
    if isinstance(own, str) and own.strip():
        return own
    if isinstance(model, functools.partial):
        return name_object(model.func)
    return str(getattr(model, "__name__", type(model).__name__))


class _ObjectHasher:
    """Adds values to one hash; an object that was added before counts by its position only, so that cycles end."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=12)
        self.places: dict[int, int] = {}
        self.kept: list[object] = []  # so that no id is used twice
        self.numbers = 0
        self.path: list[str] = []

    def add(self, value: Any) -> None:
        """Add a value of any type."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | Path | range | slice):
            self._write(type(value).__name__, repr(value))
            return
        if id(value) in self.places:
            self._write("again", str(self.places[id(value)]))
            return
        self.places[id(value)] = len(self.places)
        self.kept.append(value)
        for fits, add in self._kinds():
            if fits(value):
                add(value)
                return

    def _kinds(self) -> Iterator[tuple[Callable[[Any], bool], Callable[[Any], None]]]:
        """Tests of a value and what adds it, in order."""
        yield lambda value: isinstance(value, np.ndarray | np.generic), self._add_array
        yield _is_tensor, self._add_tensor
        yield lambda value: isinstance(value, Enum), lambda value: self._write("enum", repr(value))
        yield lambda value: isinstance(value, Mapping), self._add_mapping
        yield lambda value: isinstance(value, list | tuple), self._add_sequence
        yield lambda value: isinstance(value, set | frozenset), self._add_set
        yield lambda value: isinstance(value, type), self._add_class
        yield lambda value: isinstance(value, types.ModuleType), lambda value: self._write("module", value.__name__)
        yield lambda value: isinstance(value, functools.partial), self._add_partial
        yield lambda value: isinstance(value, types.MethodType), self._add_method
        yield lambda value: isinstance(value, types.FunctionType), self._add_function
        yield lambda value: isinstance(value, types.BuiltinFunctionType), self._add_builtin
        yield _is_script, self._add_script
        yield lambda value: isinstance(value, _LOCKS), lambda value: self._write("lock")
        yield lambda value: True, self._add_instance

    def _write(self, *words: str) -> None:
        for word in words:
            data = word.encode("utf-8", "surrogatepass")
            self.digest.update(len(data).to_bytes(8, "little"))
            self.digest.update(data)

    def _add_array(self, value: Any) -> None:
        array = np.ascontiguousarray(value)
        self._write("array", array.dtype.str, str(array.shape))
        if array.dtype.hasobject:
            for item in array.ravel().tolist():
                self.add(item)
            return
        self.digest.update(array.tobytes())
        self.numbers += array.size

    def _add_tensor(self, value: Any) -> None:
        import torch

        tensor = value.detach().cpu().contiguous()
        self._write("tensor", str(tensor.dtype), str(tuple(tensor.shape)))
        # As bytes: numpy has no bfloat16.
        flat = tensor.reshape(-1).view(torch.uint8) if tensor.numel() and not tensor.is_quantized else tensor
        self.digest.update(bytes(flat.int_repr().numpy()) if tensor.is_quantized else flat.numpy().tobytes())
        self.numbers += tensor.numel()

    def _add_mapping(self, value: Mapping[Any, Any]) -> None:
        self._write("mapping", str(len(value)))
        for key in sorted(value, key=repr):
            self.add(key)
            self.add(value[key])

    def _add_sequence(self, value: Any) -> None:
        self._write(type(value).__name__, str(len(value)))
        for item in value:
            self.add(item)

    def _add_set(self, value: Any) -> None:
        self._add_sequence(sorted(value, key=repr))

    def _add_class(self, value: type) -> None:
        self._write("class", f"{value.__module__}.{value.__qualname__}", _hash_class(value))

    def _add_partial(self, value: functools.partial[Any]) -> None:
        for part in (value.func, value.args, value.keywords):
            self.add(part)

    def _add_method(self, value: types.MethodType) -> None:
        self.add(value.__func__)
        self.add(value.__self__)

    def _add_builtin(self, value: types.BuiltinFunctionType) -> None:
        self._write("builtin", f"{value.__module__}.{value.__qualname__}")

    def _add_function(self, value: types.FunctionType) -> None:
        self._write("function", value.__qualname__)
        if is_library(value.__module__):
            self._write(value.__module__)
            return
        self._write(_read_source(value))
        self.add(value.__defaults__)
        self.add(value.__kwdefaults__)
        for cell in value.__closure__ or ():
            self.add(cell.cell_contents if _is_filled(cell) else None)
        # The module's own names that it uses: other functions, classes, constants.
        for name in sorted(_list_names(value.__code__)):
            if name in value.__globals__:
                self._write(name)
                self.add(value.__globals__[name])

    def _add_script(self, value: Any) -> None:
        """A TorchScript module: its code as text, then its parameters."""
        self._write("script", str(getattr(value, "code", "")))
        self.add(dict(value.state_dict()) if hasattr(value, "state_dict") else {})

    def _add_instance(self, value: Any) -> None:
        self._add_class(type(value))
        state = _get_state(value)
        if state is None:
            raise ModelError(
                f"the model holds a {type(value).__module__}.{type(value).__qualname__}, whose changes cannot be "
                "detected",
                remedy="give the model a method fingerprint() that returns a string which changes when its answers do",
            )
        self.add(state)


def _hash_class(kind: type) -> str:
    """Hash of a class's source with that of its own bases; classes of installed packages count by their name."""
    from hardlook.fingerprints import hash_sources, hash_value

    parts = []
    for one in kind.__mro__:
        if is_library(one.__module__):
            parts.append(f"{one.__module__}.{one.__qualname__}")
        elif files := sources_of(one):
            parts.append(hash_sources(files))
        else:
            parts.append(_read_source(one))
    return hash_value(parts)


@functools.lru_cache(maxsize=1024)
def is_library(module: str | None) -> bool:
    """Whether a module belongs to Python or to an installed package, whose version is recorded with the run.

    >>> is_library("json"), is_library("numpy.linalg"), is_library("__main__")
    (True, True, False)
    """
    name = (module or "builtins").partition(".")[0]
    if name == "__main__":
        return False
    if name in sys.stdlib_module_names:
        return True
    found = sys.modules.get(name)
    file = str(getattr(found, "__file__", None) or "")
    return "site-packages" in file or "dist-packages" in file


def _read_source(value: Any) -> str:
    """The source of a class or function; its bytecode where there is none, as in `python -c`, and of a lambda.

    The source of a lambda is its line, which may hold others.
    """
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError):
        source = ""
    if source and getattr(value, "__name__", "") != "<lambda>":
        return source
    functions = [value] if isinstance(value, types.FunctionType) else _list_functions(value)
    return "\n".join(f"{one.__qualname__} {_describe_code(one.__code__)}" for one in functions)


def _list_functions(kind: type) -> list[types.FunctionType]:
    """The functions that a class itself defines, also those behind properties, static and class methods."""
    found = []
    for value in vars(kind).values():
        inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        if isinstance(inner, types.FunctionType):
            found.append(inner)
    return found


def _describe_code(code: types.CodeType) -> str:
    constants = [_describe_code(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def _list_names(code: types.CodeType) -> set[str]:
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*(_list_names(one) for one in inner))


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises where the variable has no value yet
    except ValueError:
        return False
    return True


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_script(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def _get_state(value: Any) -> Any:
    """What an instance holds: its attributes, or what it would pickle; None where it has neither."""
    slots = {name: getattr(value, name) for name in _list_slots(type(value)) if hasattr(value, name)}
    if hasattr(value, "__dict__") or slots:
        held = {name: inner for name, inner in getattr(value, "__dict__", {}).items() if name not in _NOT_STATE}
        return {**held, **slots}
    try:
        return value.__reduce_ex__(4)[1:]
    except Exception:  # every type has its own error for what cannot be pickled
        return None


def _list_slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        yield from (name for name in names if name not in ("__dict__", "__weakref__"))
