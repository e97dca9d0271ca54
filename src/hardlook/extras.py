"""Optional dependencies, imported when they are used; the error for a missing one names its extra.

>>> require("json", extra="none").dumps([1])
'[1]'
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from hardlook.errors import MissingExtra


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra which installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingExtra(
            f"this needs the package {module.split('.')[0]!r}, which is not installed",
            remedy=f'pip install "hardlook[{extra}]"',
        ) from None


def is_installed(module: str) -> bool:
    """Whether `module` is installed, checked without importing it."""
    return importlib.util.find_spec(module) is not None
