"""Threads of loaded libraries: limited within a block, as before after it."""

import os
import sys
from contextlib import suppress

import cv2
import pytest
import threadpoolctl

from hardlook.errors import OptionError
from hardlook.threads import MOST_THREADS, pin_threads, pinned_threads, set_thread_variables


def count_threads():
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    torch = sys.modules.get("torch")
    return [*pools, cv2.getNumThreads(), *([torch.get_num_threads()] if torch is not None else [])]


@pytest.mark.parametrize("with_torch", [True, False])
def test_threads_are_as_before_also_after_an_error(monkeypatch, with_torch):
    if with_torch:
        pytest.importorskip("torch")
    else:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    try:
        outside = count_threads()
        with suppress(ValueError), pinned_threads(2):
            assert set(count_threads()) == {2}
            raise ValueError
        assert count_threads() == outside and ("torch" in sys.modules) == with_torch
    finally:
        cv2.setNumThreads(before)


@pytest.mark.parametrize("threads", [0, -1, MOST_THREADS + 1, 10**6])
def test_a_number_that_no_library_takes_is_refused(threads, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for limit in (pin_threads, set_thread_variables, pinned_threads(threads).__enter__):
        with pytest.raises(OptionError, match=f"threads {threads}\n.*1 to 1024"):
            limit() if limit not in (pin_threads, set_thread_variables) else limit(threads)
    assert "OMP_NUM_THREADS" not in os.environ
