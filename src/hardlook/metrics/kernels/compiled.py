"""Functions compiled by numba and cached on disk, so that only the first call on a machine waits for the compiler.

They release the global interpreter lock. Only kernel modules import this one, and kernel modules are imported inside
functions: numba takes a second to load, and where it is not installed the importing function falls back to numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function, compiled at its first call for each combination of types.

    Where numba finds no writable cache folder, each process compiles anew.

    >>> compiled(lambda number: number + 1)(2)
    3
    """
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(Function, numba.njit(nogil=True)(function))
