"""Trainings that are killed at their saves until they end, at moments that no machine's speed decides."""

import json
import os
import signal

import torch

from hardlook.training.folder import FolderStore


def train_through_kills(folder, train, kills=3):
    """Call `train`, which trains into the folder, in processes that die at their second save; the number of kills.

    Every other one dies before that save is written, the others after it. Once all kills are made, `train` goes on to
    its end.
    """
    killed = 0
    while not is_finished(folder):
        child = os.fork()
        if not child:
            status = 1
            try:
                torch.set_num_threads(1)
                if killed < kills:
                    _die_at_second_save(before=bool(killed % 2))
                train()
                status = 0
            finally:
                # The child must never return into the test.
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the training raised an error"
        killed += os.WIFSIGNALED(status)
    return killed


def is_finished(folder):
    card = folder / "checkpoint.json"
    return card.is_file() and bool(json.loads(card.read_text()).get("finished"))


def _die_at_second_save(*, before):
    own, saves = FolderStore.save, 0

    def save(store, *given):
        nonlocal saves
        saves += 1
        if saves == 2 and before:
            os.kill(os.getpid(), signal.SIGKILL)
        own(store, *given)
        if saves == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    FolderStore.save = save
