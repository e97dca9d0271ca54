"""The command line in this process: what a user types, what is printed, how it exits."""

import sys
from dataclasses import dataclass

import pytest

from hardlook.cli.app import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


class CommandLine:
    """Call it with words, as after `hardlook`."""

    def __init__(self, capsys, monkeypatch):
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *words):
        self.monkeypatch.setattr(sys, "argv", ["hardlook", *map(str, words)])
        self.monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as left:
            main()
            raise SystemExit(0)
        printed = self.capsys.readouterr()
        code = left.value.code
        return Answer(code if isinstance(code, int) else int(code is not None), printed.out, printed.err)
