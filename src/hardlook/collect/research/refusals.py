"""What is not answered: a status and a sentence for people."""

from __future__ import annotations


class Refused(Exception):
    """A request that gets no page: HTTP status and a sentence."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


def shortened(text: str, most: int = 60) -> str:
    """A text that came from outside, short enough to be told back.

    >>> shortened("a" * 100, 3)
    'aaa\N{HORIZONTAL ELLIPSIS}'
    """
    return text if len(text) <= most else f"{text[:most]}\N{HORIZONTAL ELLIPSIS}"
