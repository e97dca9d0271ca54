"""Readers with planted bugs, for the tests of the fuzz engine: they misbehave where the first byte is odd."""

import os

import numpy as np
from fuzz_engine import Reader

from hardlook.errors import DataError


def make(folder):
    (folder / "a").write_bytes(b"\x00" * 4)


def misbehaving(act):
    def read(folder):
        data = (folder / "a").read_bytes()
        if data and data[0] % 2:
            act(folder / "a")
        elif not data:
            raise DataError("the file is empty", file=folder / "a")

    return read


def leave(path):
    raise SystemExit(0)


def complain(path):
    raise DataError("something is wrong")


def allocate(path):
    np.ones(1_300_000_000, np.uint8)


def ask(path):
    try:
        np.zeros(1 << 50, np.uint8)
    except MemoryError as error:
        raise DataError("too large", file=path) from error


def place(folder, name, data):
    """Half of the inputs begin with an odd byte."""
    (folder / name).write_bytes(bytes([sum(data) % 2]) + data[1:])


ACTS = {
    "raises": lambda path: 1 / 0, "exits": leave, "aborts": lambda path: os.abort(), "nameless": complain,
    "allocates": allocate, "asks": ask, "sound": lambda path: None,
}  # fmt: skip


def hang(path):
    while True:
        pass


HANGING = (Reader("hangs", make, ("a",), misbehaving(hang), place=place),)
SHARES = {"allocates": 0.2}  # the slowest
READERS = tuple(
    Reader(name, make, ("a",), misbehaving(act), SHARES.get(name, 1.0), place) for name, act in ACTS.items()
)
