"""Functions compiled by numba, kept on disk so that only the first call ever on a machine waits.

Other threads go on while they run. Only modules of kernels import this one, and only functions import those: numba
takes a second to load, and where it is not installed the importing function has another way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function, compiled at its first call for each combination of types.

    Without a folder that can be written numba refuses to keep its work; it is then compiled in each process.

    >>> compiled(lambda number: number + 1)(2)
    3
    """
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(Function, numba.njit(nogil=True)(function))
