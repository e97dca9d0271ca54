"""Threads of loaded libraries: limited within a block, as before after it."""

import sys
from contextlib import suppress

import cv2
import pytest
import threadpoolctl

from hardlook.threads import pinned_threads


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
