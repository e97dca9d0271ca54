"""Threads of numerical libraries: a limit for a block of code.

>>> with pinned_threads(1):
...     cv2.getNumThreads()
1
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import cv2
import threadpoolctl


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Limit the threads of BLAS, OpenMP, OpenCV and, where it is loaded, torch; after the block they are as before."""
    torch = sys.modules.get("torch")
    # Before the limit of OpenMP, which torch's number follows.
    before = cv2.getNumThreads(), torch.get_num_threads() if torch is not None else 0
    with threadpoolctl.threadpool_limits(threads):
        cv2.setNumThreads(threads)
        if torch is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            cv2.setNumThreads(before[0])
            if torch is not None:
                torch.set_num_threads(before[1])
