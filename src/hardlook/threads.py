"""Threads of numerical libraries: limits for a process, for those started from it, or for a block of code.

>>> import cv2
>>> with pinned_threads(1):
...     cv2.getNumThreads()
1
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hardlook.errors import OptionError

MOST_THREADS = 1024  # far more, and OpenMP ends the process without a word
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def check_threads(threads: int) -> None:
    """An `OptionError` for a number of threads that no library can be limited to."""
    if not 1 <= threads <= MOST_THREADS:
        raise OptionError(f"threads {threads}", remedy=f"threads is from 1 to {MOST_THREADS}")


def set_thread_variables(threads: int) -> None:
    """Limit the threads of libraries that are not loaded yet, also in processes started from here."""
    check_threads(threads)
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)


def pin_threads(threads: int) -> None:
    """Limit the threads of BLAS, OpenMP, OpenCV and torch, of those that are loaded."""
    import threadpoolctl

    check_threads(threads)
    threadpoolctl.threadpool_limits(threads)
    if (cv2 := sys.modules.get("cv2")) is not None:
        cv2.setNumThreads(threads)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """The same for a block; after it they are as before."""
    import threadpoolctl

    check_threads(threads)
    cv2, torch = sys.modules.get("cv2"), sys.modules.get("torch")
    # Before the limit of OpenMP, which torch's number follows.
    of_cv2 = cv2.getNumThreads() if cv2 is not None else 0
    of_torch = torch.get_num_threads() if torch is not None else 0
    with threadpoolctl.threadpool_limits(threads):
        pin_threads(threads)
        try:
            yield
        finally:
            if cv2 is not None:
                cv2.setNumThreads(of_cv2)
            if torch is not None:
                torch.set_num_threads(of_torch)
