"""Read a torch file that pickles more than tensors, without importing or calling anything that it names.

The pickle inside is interpreted by a machine that knows containers, texts and numbers. A class or function of another
project is a `Name`; what the file would build with it is a `Record` that only remembers the name and what it was given.
Tensors are looked up in the archive afterwards. A file that names a function of Python itself (`os.system`, `eval`,
`getattr`) is refused, as no checkpoint needs one.

>>> import pickle, fractions
>>> interpret(pickle.dumps({"share": complex(1, 2), "steps": [1, 2]})).content["steps"]
[1, 2]
>>> class Attack:
...     def __reduce__(self):
...         return (eval, ("1 + 1",))
>>> interpret(pickle.dumps([Attack()]))
Traceback (most recent call last):
...
ValueError: it would call builtins.eval
"""

from __future__ import annotations

import io
import math
import pickletools
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from hardlook.extras import require

if TYPE_CHECKING:
    from torch import Tensor

MAX_PICKLE_BYTES = 1 << 24
"""Far more than the names and shapes of any network need."""

MAX_COPIED = 1 << 20
"""Elements that all calls of a pickle may be given together: a hundred thousand tensors need fewer."""

MAX_NAME, MAX_KEY_PARTS = 1000, 16
"""Characters of a dotted name, parts of a tuple that is a key. A file can recall both again and again."""

PLAIN_NAMES = frozenset(
    {"collections.OrderedDict", "builtins.set", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter"}
    | {f"torch.{kind}Storage" for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Bool", "Byte")}
)
"""What a file of tensors in dictionaries names: torch's own safe reader takes no memory for others than its tensors."""

# Of Python itself these are data and no calls; all else is refused.
_HARMLESS = ("collections.", "pathlib.", "argparse.Namespace", "types.SimpleNamespace", "copyreg._reconstructor",
             "copy_reg._reconstructor", "_codecs.encode", "enum.", "datetime.", "decimal.Decimal")  # fmt: skip
_BUILTIN_TYPES = ("set", "frozenset", "list", "dict", "tuple", "int", "float", "bool", "str", "bytes", "bytearray",
                  "complex", "slice", "range", "object")  # fmt: skip

_DTYPES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
           "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
           "ComplexFloat": "complex64", "ComplexDouble": "complex128", "QInt8": "int8", "QUInt8": "uint8",
           "QInt32": "int32", "storage.Untyped": "uint8"}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A class or function by its dotted name; never looked up."""

    dotted: str


@dataclass(eq=False)
class Record:
    """What the file would have built by calling `name`: its arguments, its state, its items and elements."""

    name: str
    arguments: Any = field(default=(), repr=False)
    state: Any = field(default=None, repr=False)
    items: dict[Any, Any] = field(default_factory=dict, repr=False)
    elements: list[Any] = field(default_factory=list, repr=False)


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor's place in the archive: elements of a storage from `offset` on, by size and strides."""

    key: str
    dtype: str
    count: int
    offset: int
    size: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str
    count: int


@dataclass(frozen=True)
class Interpreted:
    """The content of a pickle and the dotted names in it."""

    content: Any = field(repr=False)
    names: frozenset[str]


def interpret(pickled: bytes | BinaryIO) -> Interpreted:
    """The content of a pickle; a `ValueError` for one that names a function of Python or is malformed."""
    machine = _Machine()
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "STOP":
            return Interpreted(machine.pop(), frozenset(machine.names))
        machine.step(opcode.name, argument)
    raise ValueError("it ends too early")


def list_names(path: Path) -> frozenset[str]:
    """The dotted names in a torch file from before 1.6, a row of pickles with the tensors behind them."""
    with path.open("rb") as stream:
        pickles = io.BytesIO(stream.read(MAX_PICKLE_BYTES))
    # Magic number, version, machine, content.
    return frozenset().union(*(interpret(pickles).names for _ in range(4)))


def check_costs(pickles: BinaryIO, count: int = 1) -> None:
    """A `ValueError` for `count` pickles in a row that would take far more memory than they are large."""
    for _ in range(count):
        interpret(pickles)


def list_parts(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """The parts of a torch file; a `ValueError` where they would be larger than the file once they are read."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("parts of it are compressed, which torch never does")
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise ValueError("its parts are larger than itself")
    return members


class InertArchive:
    """A torch file (since 1.6, an uncompressed zip archive): its content without tensors, then its tensors by place.

    Use as a context. Sizes are checked before memory is taken: nothing in the file can ask for more than its own size.
    """

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path)
        try:
            members = list_parts(self._file, path)
            # Torch finds the parts by names in any capitals, and would read another one than is read here.
            pickles = [member for member in members if member.filename.lower().rpartition("/")[2] == "data.pkl"]
            if len(pickles) != 1:
                raise ValueError(f"it has {len(pickles)} parts data.pkl instead of one")
            if pickles[0].file_size > MAX_PICKLE_BYTES:
                raise ValueError(f"more than {MAX_PICKLE_BYTES} bytes that are no tensors")
            self._folder = pickles[0].filename[: -len("data.pkl")]
            self._sizes = {member.filename: member.file_size for member in members}
            self._check_byte_order()
            found = interpret(self._file.read(pickles[0]))
        except BaseException:
            self._file.close()
            raise
        self.content, self.names = found.content, found.names
        self._storages: dict[tuple[str, str], Tensor] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def read_tensor(self, stored: StoredTensor) -> Tensor:
        """The tensor on the CPU; tensors of one storage share it."""
        return self._read_storage(stored).as_strided(stored.size, stored.strides, stored.offset)

    def _read_storage(self, stored: StoredTensor) -> Tensor:
        torch = require("torch", extra="torch")
        if (stored.key, stored.dtype) not in self._storages:
            dtype, name = getattr(torch, stored.dtype), f"{self._folder}data/{stored.key}"
            needed, there = stored.count * dtype.itemsize, self._sizes.get(name)
            if there is None or there < needed:
                raise ValueError(f"a tensor needs {needed} bytes in {name}, which has {there}")
            content = bytearray(needed)
            with self._file.open(name) as stream:
                if stream.readinto(content) != needed:  # type: ignore[attr-defined]
                    raise ValueError(f"{name} ends too early")
            self._storages[stored.key, stored.dtype] = (
                torch.frombuffer(content, dtype=dtype) if needed else torch.empty(0, dtype=dtype)
            )
        return self._storages[stored.key, stored.dtype]

    def _check_byte_order(self) -> None:
        name = f"{self._folder}byteorder"
        if name in self._sizes and (self._sizes[name] > 16 or self._file.read(name) != b"little"):
            raise ValueError("its numbers are not little-endian")


_MARK = object()


class _Machine:
    """The stack and the memory of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.names: set[str] = set()
        self.copied = 0

    def step(self, opcode: str, argument: Any) -> None:
        """Carry out one instruction."""
        if opcode in _IGNORED:
            return
        if opcode in _LITERALS:
            self.stack.append(argument)
        elif opcode in _CONSTANTS:
            self.stack.append(_CONSTANTS[opcode]())
        elif opcode in _STEPS:
            _STEPS[opcode](self, argument)
        else:
            raise ValueError(f"it has the instruction {opcode}, which torch does not write")

    def pop(self) -> Any:
        """The last value."""
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("it takes what is not there")
        return self.stack.pop()

    def top(self) -> Any:
        """The last value, which stays."""
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("it takes what is not there")
        return self.stack[-1]

    def pop_marked(self) -> list[Any]:
        """The values since the last mark."""
        values: list[Any] = []
        while self.stack:
            value = self.stack.pop()
            if value is _MARK:
                return values[::-1]
            values.append(value)
        raise ValueError("it takes what is not there")

    def put(self, place: int | None) -> None:
        """Remember the last value, at the next place by default."""
        self.memo[len(self.memo) if place is None else place] = self.top()

    def get(self, place: int) -> None:
        """Recall a value."""
        if place not in self.memo:
            raise ValueError("it recalls what it did not remember")
        self.stack.append(self.memo[place])

    def push_name(self, dotted: str) -> None:
        """Push the name of a class or function."""
        self.stack.append(self.name(dotted))

    def name(self, dotted: str) -> Name:
        """A name that is no function of Python itself."""
        dotted = dotted.replace("__builtin__.", "builtins.", 1) if dotted.startswith("__builtin__.") else dotted
        if len(dotted) > MAX_NAME:
            raise ValueError(f"a name of {len(dotted)} characters")
        if _is_refused(dotted):
            raise ValueError(f"it would call {dotted[:200]}")
        self.names.add(dotted)
        return Name(dotted)

    def stack_name(self) -> None:
        """Push the name whose module and name were pushed before."""
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name is no text")
        if (characters := len(module) + len(name)) > MAX_NAME:  # before they are joined
            raise ValueError(f"a name of {characters} characters")
        self.push_name(f"{module}.{name}")

    def call(self, called: Any, arguments: Any) -> Any:
        """What a call would give."""
        self.count_copies(arguments)
        if isinstance(arguments, tuple):
            for one in arguments:
                self.count_copies(one)
        return _call(called, arguments)

    def count_copies(self, value: Any) -> None:
        """Containers that calls copy: one that is recalled a thousand times would be there a thousand times."""
        self.copied += len(value) if isinstance(value, list | tuple | dict | set | frozenset) else 0
        if self.copied > MAX_COPIED:
            raise ValueError(f"its calls are given more than {MAX_COPIED} elements")

    def reduce(self) -> None:
        """Push what a call would give: a container, a tensor's place, or an inert record."""
        arguments, called = self.pop(), self.pop()
        self.stack.append(self.call(called, arguments))

    def new_object(self) -> None:
        """As a call, with keyword arguments."""
        keywords, arguments, called = self.pop(), self.pop(), self.pop()
        record = self.call(called, arguments)
        if isinstance(record, Record):
            record.state = keywords
        self.stack.append(record)

    def marked_object(self) -> None:
        """As a call of the first value since the mark with the others."""
        called, *arguments = self.pop_marked() or [None]
        self.stack.append(self.call(called, tuple(arguments)))

    def instance(self, argument: str) -> None:
        """As a call of the class named with the values since the mark."""
        arguments = tuple(self.pop_marked())
        self.stack.append(self.call(self.name(".".join(argument.split(" ", 1))), arguments))

    def build(self) -> None:
        """Give an object its state; that of a dictionary (a state dict's metadata) is not kept."""
        state, built = self.pop(), self.top()
        self.count_copies(state)
        if isinstance(built, Record):
            built.state = state
        elif not isinstance(built, dict):
            raise ValueError(f"it gives a state to a {type(built).__name__}")

    def append(self, values: list[Any]) -> None:
        """Append to a list."""
        target = self.top()
        if isinstance(target, Record):
            target.elements += values
        elif isinstance(target, list):
            target += values
        else:
            raise ValueError(f"it appends to a {type(target).__name__}")

    def add(self, values: list[Any]) -> None:
        """Add to a set."""
        target = self.top()
        if not isinstance(target, set):
            raise ValueError(f"it adds to a {type(target).__name__}")
        target.update(_check_key(value) for value in values)

    def set_items(self, values: list[Any]) -> None:
        """Set keys and values of a dictionary."""
        target = self.top()
        target = target.items if isinstance(target, Record) else target
        if not isinstance(target, dict) or len(values) % 2:
            raise ValueError(f"it sets keys of a {type(target).__name__}")
        target.update((_check_key(key), value) for key, value in zip(values[::2], values[1::2], strict=True))

    def load_storage(self) -> None:
        """Push a storage: ("storage", its type, its part of the archive, where it was, how many elements)."""
        given = self.pop()
        if not isinstance(given, tuple) or len(given) not in (5, 6) or given[0] != "storage":
            raise ValueError("it refers to something that is no storage")
        _, kind, key, _, count = given[:5]  # before torch 1.6 a sixth, a part of another storage
        if not isinstance(kind, Name):
            raise ValueError("it refers to something that is no storage")
        dtype = _DTYPES.get(kind.dotted.removeprefix("torch.").removesuffix("Storage"))
        if dtype is None or not kind.dotted.startswith("torch."):
            raise ValueError(f"there is no storage {kind.dotted[:200]}")
        if not isinstance(key, str) or not key.isalnum() or not _is_count(count):
            raise ValueError("a storage has no name or no size")
        self.stack.append(_Storage(key, dtype, count))


def _is_refused(dotted: str) -> bool:
    """Whether a name is one of Python itself that is more than data."""
    package, _, name = dotted.partition(".")
    if package == "builtins":
        return name not in _BUILTIN_TYPES
    return package in sys.stdlib_module_names and not dotted.startswith(_HARMLESS)


def _call(called: Any, arguments: Any) -> Any:
    """What a call would give. Nothing is called: a few names are known, all others give records."""
    if not isinstance(arguments, tuple):
        raise ValueError("the arguments of a call are no tuple")
    if isinstance(called, Record):
        return Record(called.name if called.name.endswith("(...)") else f"{called.name}(...)", arguments)
    if not isinstance(called, Name):
        raise ValueError(f"it calls a {type(called).__name__}")
    build = _KNOWN_CALLS.get(called.dotted)
    return Record(called.dotted, arguments) if build is None else build(arguments)


def _ordered_dictionary(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    pairs = arguments[0] if arguments else []
    if isinstance(pairs, dict):
        return dict(pairs)
    if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError("a dictionary is not made of pairs")
    return {_check_key(key): value for key, value in pairs}


def _set(arguments: tuple[Any, ...]) -> set[Any]:
    values = arguments[0] if arguments else []
    if not isinstance(values, list | tuple | set):
        raise ValueError("a set is not made of a list")
    return {_check_key(value) for value in values}


def _parameter(arguments: tuple[Any, ...]) -> Any:
    if not arguments or not isinstance(arguments[0], StoredTensor):
        raise ValueError("a parameter is no tensor")
    return arguments[0]


def _tensor(arguments: tuple[Any, ...]) -> StoredTensor:
    """A tensor's place, inside of its storage and not larger than it."""
    storage, offset, size, strides = (arguments + (None,) * 4)[:4]
    if not isinstance(storage, _Storage) or not _is_count(offset):
        raise ValueError("a tensor has no storage")
    for numbers in (size, strides):
        if not isinstance(numbers, tuple) or len(numbers) > 16 or not all(_is_count(number) for number in numbers):
            raise ValueError("a tensor has no shape")
    if len(size) != len(strides):
        raise ValueError("a tensor has other strides than axes")
    count = math.prod(size)
    last = offset + sum((length - 1) * stride for length, stride in zip(size, strides, strict=True))
    if count and (count > storage.count or last >= storage.count):
        raise ValueError(f"a tensor of shape {size} is larger than its storage of {storage.count}")
    if not count:
        offset = 0
    return StoredTensor(storage.key, storage.dtype, storage.count, offset, size, strides)


_KNOWN_CALLS: Mapping[str, Callable[[tuple[Any, ...]], Any]] = {
    "collections.OrderedDict": _ordered_dictionary,
    "builtins.set": _set,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _check_key(key: Any) -> Any:
    """A key whose hash is that of a text or number: nested tuples would be hashed without a limit of depth."""
    simple = str | bytes | int | float | bool | None | Record | Name
    if isinstance(key, simple):
        return key
    if isinstance(key, tuple) and len(key) <= MAX_KEY_PARTS and all(isinstance(part, simple) for part in key):
        return key
    raise ValueError(f"a key is a {type(key).__name__}")


_IGNORED = {"PROTO", "FRAME"}

_LITERALS = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
    "BINBYTES8",
}  # fmt: skip

_CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
    "MARK": lambda: _MARK,
}

_STEPS: Mapping[str, Callable[[_Machine, Any], Any]] = {
    "POP": lambda machine, _: machine.stack.pop() if machine.stack else machine.pop(),
    "POP_MARK": lambda machine, _: machine.pop_marked(),
    "DUP": lambda machine, _: machine.stack.append(machine.top()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_marked())),
    "TUPLE1": lambda machine, _: machine.stack.append((machine.pop(),)),
    "TUPLE2": lambda machine, _: machine.stack.append((machine.pop(), machine.pop())[::-1]),
    "TUPLE3": lambda machine, _: machine.stack.append((machine.pop(), machine.pop(), machine.pop())[::-1]),
    "LIST": lambda machine, _: machine.stack.append(machine.pop_marked()),
    "DICT": lambda machine, _: _new_dictionary(machine),
    "FROZENSET": lambda machine, _: machine.stack.append(frozenset(map(_check_key, machine.pop_marked()))),
    "APPEND": lambda machine, _: machine.append([machine.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.pop_marked()),
    "ADDITEMS": lambda machine, _: machine.add(machine.pop_marked()),
    "SETITEM": lambda machine, _: machine.set_items([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_marked()),
    "PUT": lambda machine, place: machine.put(place),
    "BINPUT": lambda machine, place: machine.put(place),
    "LONG_BINPUT": lambda machine, place: machine.put(place),
    "MEMOIZE": lambda machine, _: machine.put(None),
    "GET": lambda machine, place: machine.get(place),
    "BINGET": lambda machine, place: machine.get(place),
    "LONG_BINGET": lambda machine, place: machine.get(place),
    "GLOBAL": lambda machine, given: machine.push_name(".".join(given.split(" ", 1))),
    "STACK_GLOBAL": lambda machine, _: machine.stack_name(),
    "REDUCE": lambda machine, _: machine.reduce(),
    "NEWOBJ": lambda machine, _: machine.reduce(),
    "NEWOBJ_EX": lambda machine, _: machine.new_object(),
    "OBJ": lambda machine, _: machine.marked_object(),
    "INST": lambda machine, given: machine.instance(given),
    "BUILD": lambda machine, _: machine.build(),
    "BINPERSID": lambda machine, _: machine.load_storage(),
}


def _new_dictionary(machine: _Machine) -> None:
    values = machine.pop_marked()
    machine.stack.append({})
    machine.set_items(values)
