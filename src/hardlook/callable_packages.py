"""Packages that can be called: `hardlook.models(role="encoder")` and `hardlook.similarity("coco80")`.

`import hardlook as hl` offers functions of the same names as two packages, and once a package is imported, Python puts
it in the function's place. So the packages themselves can be called.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class CallablePackage(types.ModuleType):
    """A package that, when called, calls one of its functions."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the function."""
        module, _, attribute = str(self.__dict__["__calls__"]).partition(":")
        return getattr(importlib.import_module(module), attribute)(*arguments, **keywords)


def make_callable(package: str, function: str) -> None:
    """Let a package that is being imported be called like `function`, a `module:attribute`, imported when called."""
    module = sys.modules[package]
    module.__dict__["__calls__"] = function
    module.__class__ = CallablePackage
