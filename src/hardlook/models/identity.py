"""Which model it was: name, arguments, code, weights and device, in one fingerprint.

>>> from hardlook.models.registry import build
>>> def fingerprint(args):
...     model = build("planted-segmenter", "semantic-segmenter", args)
...     return identify(model, name="planted-segmenter", role="semantic-segmenter", args=args).fingerprint()
>>> fingerprint({}) == fingerprint({"sibling": "0"}), fingerprint({}) == fingerprint({"sibling": "0.1"})
(True, False)
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError
from hardlook.fingerprints import hash_file, hash_sources, hash_value
from hardlook.models.arguments import complete_arguments
from hardlook.models.registry import find


@dataclass(frozen=True)
class ModelIdentity:
    """All that a model's answers depend on.

    `args` with the defaults filled in; `source` the hash of the code (or what the model's own `fingerprint()`
    says); `weights` {file name: sha256}; `device` as the model names it, empty when it does not.
    """

    name: str
    role: str
    args: Mapping[str, Any]
    source: str
    weights: Mapping[str, str] = field(default_factory=dict)
    device: str = ""

    def fingerprint(self) -> str:
        """A short hash of all of it: equal for models that give the same answers."""
        return hash_value(asdict(self))


def identify(model: object, *, name: str, role: str, args: Mapping[str, Any] | None = None) -> ModelIdentity:
    """The identity of a model that was built as `name` for `role` with `args`.

    The model may define `fingerprint()`, which replaces the hash of its code, `weights_files`, the files it has read,
    and `device`, where it runs. A model made in a script may have any `name`.
    """
    own = getattr(model, "fingerprint", None)
    return ModelIdentity(
        name=name,
        role=role,
        args=_all_arguments(name, args or {}),
        source=str(own()) if callable(own) else hash_code(type(model)),
        weights=hash_weights(model, name),
        device=str(getattr(model, "device", "")),
    )


def _all_arguments(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    try:
        factory = find(name).factory()
    except ModelError:
        complete = dict(args)
    else:
        complete = complete_arguments(name, factory, args)
    return dict(sorted(complete.items()))


def hash_weights(model: object, name: str) -> dict[str, str]:
    """Hashes of the files that the model says it has read, by name."""
    files = [Path(path) for path in getattr(model, "weights_files", ())]
    if absent := [path for path in files if not path.is_file()]:
        raise ModelError(f"the model {name!r} names a weights file that is not there", file=absent[0])
    return {path.name: hash_file(path) for path in sorted(files)}


def hash_code(kind: type) -> str:
    """Hash of the source files of a class, as `sources_of` lists them."""
    return hash_sources(sources_of(kind))


def sources_of(kind: type) -> list[Path]:
    """Source files of a class, sorted: its own, those of the classes it inherits from, and what they import.

    Imports are read from the text and followed within the class's own top-level package, so the answer does not depend
    on what happens to be loaded; other packages count by their own version. A class typed into an interpreter has none.

    >>> from hardlook.models.content_keys import ContentKeys
    >>> sorted(path.name for path in sources_of(ContentKeys))
    ['content_keys.py', 'errors.py', 'file_hashes.py', 'fingerprints.py']
    """
    home = kind.__module__.partition(".")[0]
    waiting = [base.__module__ for base in kind.__mro__ if base is kind or base.__module__.partition(".")[0] == home]
    files: dict[str, Path | None] = {}
    while waiting:
        module = waiting.pop()
        if module not in files:
            path = files[module] = _file_of(module)
            waiting += [name for name in _imports(module, path) if name.partition(".")[0] == home]
    return sorted({path for path in files.values() if path is not None})


def _file_of(module: str) -> Path | None:
    """The source file of a module, if it has one; nothing is imported to find it."""
    parent, _, name = module.rpartition(".")
    if module in sys.modules:
        try:
            found = inspect.getsourcefile(sys.modules[module])
        except TypeError:  # built in, or an interpreter's own
            return None
    elif parent and parent not in sys.modules:
        # To ask Python for a module of this package would import the package, with all that it imports.
        initial = _file_of(parent)
        if initial is None or initial.name != "__init__.py":
            return None
        beside = (initial.parent / name / "__init__.py", initial.parent / f"{name}.py")
        return next((path for path in beside if path.is_file()), None)
    else:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
        found = spec.origin if spec is not None and spec.has_location else None
    path = Path(found) if found else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _imports(module: str, path: Path | None) -> list[str]:
    if path is None:
        return []
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for level, origin_name, imported in _parse_imports(path.read_bytes()):
        if level is None:
            names += imported
            continue
        above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
        origin = ".".join([*above, *([origin_name] if origin_name else [])])
        names.append(origin)
        if (_file_of(origin) or path).name == "__init__.py":
            # `from package import name` may mean a module; what is none is found to have no file.
            names += [f"{origin}.{name}" for name in imported]
    return names


@lru_cache(maxsize=1024)
def _parse_imports(text: bytes) -> tuple[tuple[int | None, str, tuple[str, ...]], ...]:
    """The import statements of a source text: level (None: no `from`), module after `from`, imported names."""
    found: list[tuple[int | None, str, tuple[str, ...]]] = []
    waiting: list[Any] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.append((None, "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            waiting += node.orelse  # imports for type checkers change no answer
        else:
            # Statements are in these lists only; to visit expressions too would take three times as long.
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting += getattr(node, block, ())
    return tuple(found)
