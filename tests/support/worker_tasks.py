"""What worker processes of tests do: importable by name, as a spawned process needs it."""

import os
import signal


class Unsendable(Exception):
    """An error that cannot be built from its text alone."""

    def __init__(self, number, name):
        super().__init__(f"{name} {number}")


def make_multiplier(factor):
    """A function of a task: a list gives the product of each number; a word ends the process or raises."""

    def work(task):
        if task == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "exit":
            os._exit(7)
        if task == "error":
            raise ValueError("no such task")
        if task == "unsendable":
            raise Unsendable(3, "broken")
        if task == "signals":
            return [signal.getsignal(one) is signal.SIG_IGN for one in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
        return [factor * number for number in task]

    return work


def fail_to_make(argument):
    raise ValueError(f"cannot build {argument}")
