"""Compiled loops of the metrics, imported when first called: loading numba takes a second."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def load_kernels(name: str) -> ModuleType | None:
    """The module `name` of compiled functions; None where numba cannot be imported, so that callers use numpy."""
    try:
        return import_module(f"{__name__}.{name}")
    except ImportError:
        return None
