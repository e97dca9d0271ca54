"""The files that a model's code is in: its class, the classes it inherits from, and what they import at home.

A network is seldom one file. The imports are read from the text and followed within the class's own top-level
package, so the answer does not depend on what happens to be loaded; other packages count by their own version.

>>> from hardlook.models.card import ModelCard
>>> sorted(path.name for path in sources_of(ModelCard))
['card.py', 'errors.py']
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path


def sources_of(kind: type) -> list[Path]:
    """Source files of a class, sorted; none for a class typed into an interpreter."""
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
    if module in sys.modules:
        try:
            found = inspect.getsourcefile(sys.modules[module])
        except TypeError:  # built in, or an interpreter's own
            return None
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
    names = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            names.append(origin)
            if (_file_of(origin) or path).name == "__init__.py":
                # `from package import name` may mean a module; what is none is found to have no file.
                names += [f"{origin}.{alias.name}" for alias in node.names]
    return names
