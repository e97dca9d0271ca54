"""What a check found, in words.

>>> Finding("order", False, "answer 0 differs").line()
'FAIL order: answer 0 differs'
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One check: its name, whether the model passed, and what was expected, what came, and where."""

    check: str
    passed: bool
    message: str

    def line(self) -> str:
        """The finding in one line."""
        return f"{'ok  ' if self.passed else 'FAIL'} {self.check}: {self.message}"


class Unanswered(Exception):
    """The model's answer cannot be taken apart into one answer an input; the text says why."""
