"""Runs that end at their n-th change of a store: by a kill, or, in this process, by a store that is gone from then on.

`python killed_uploads.py ADDRESS N...` runs at ADDRESS/N, each in a child of a process that has imported everything,
and kills it right after the N-th object was written, created or deleted, or, with a minus, right before it.
"""

import contextlib
import importlib
import os
import signal
import sys
from unittest.mock import patch

import hardlook as hl
from hardlook.cloud.object_store import ObjectStore
from hardlook.harness.runs import record_store

SETTINGS = {
    "model": "planted-segmenter",
    "model_args": {"stranger": 0.3},
    "scenes": 6,
    "resamples": 20,
    "batch_size": 2,
    "progress": False,
    "report": False,
}

IMPORTED = (
    "polars", "s3fs", "cv2", "hardlook.open_vocabulary.closed_miou", "hardlook.metrics.kernels",
    "hardlook.harness.joined_runs.fold_models", "hardlook.models.planted.segmenters",
)  # fmt: skip


class Gone(BaseException):
    """This process is to be thought of as killed."""


def run(out, **more):
    return hl.run("closed-miou", out=out, **{**SETTINGS, **more})


@contextlib.contextmanager
def ending_at(number, end):
    """Call `end` at a change of the store, and at every request after it."""
    count, ended = 0, False

    def stop():
        nonlocal ended
        ended = True
        end()

    def watched(method, changes):
        def call(self, *args):
            nonlocal count
            if ended:
                end()
            count += changes
            if changes and -number == count:
                stop()
            answer = method(self, *args)
            if changes and number == count:
                stop()
            return answer

        return call

    with contextlib.ExitStack() as stack:
        for name in ("write", "create", "delete", "list", "read", "download"):
            changes = name in ("write", "create", "delete")
            stack.enter_context(patch.object(ObjectStore, name, watched(getattr(ObjectStore, name), changes)))
        # A part for each batch, as in runs that take longer.
        stack.enter_context(patch.object(record_store, "FLUSH_SECONDS", 0.0))
        yield


def raise_gone():
    raise Gone


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def main(address, numbers):
    for module in IMPORTED:
        importlib.import_module(module)
    for number in numbers:
        child = os.fork()
        if not child:
            os.environ["HARDLOOK_CACHE"] += f"/{number}"
            with ending_at(number, kill):
                run(f"{address}/{number}")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(number, "killed" if os.WIFSIGNALED(status) else f"ended {os.waitstatus_to_exitcode(status)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
