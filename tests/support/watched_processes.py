"""Whether processes live, and waiting for it."""

import time
from pathlib import Path


def wait_until(condition, seconds=60):
    """Whether the condition holds before the time is over."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def workers(log):
    """The processes that a model has written into its log, one in each line."""
    return {int(line.split()[0]) for line in log.read_text().split("\n")[:-1]} if log.exists() else set()


def alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
