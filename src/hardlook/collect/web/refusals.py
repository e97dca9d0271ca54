"""What is not answered: a status, a code for programs, a sentence for people; never a path, a value or a traceback."""

from __future__ import annotations

import json
import logging
import math

from hardlook.collect.store.records import Refusal
from hardlook.errors import HardlookError

# What is spoken to by programs, which want JSON; all else by browsers, which want a page.
SPOKEN_JSON = ("/api/", "/pictures/")


class Refused(Exception):
    """A request that is not done: HTTP status, code and sentence; `wait` in seconds tells when to try again."""

    def __init__(self, status: int, code: str, message: str, *, wait: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.wait = status, code, message, wait

    @property
    def headers(self) -> dict[str, str]:
        """The headers that go with it.

        >>> Refused(429, "too-many", "Too many requests.", wait=2.5).headers
        {'retry-after': '3'}
        """
        return {"retry-after": str(max(1, math.ceil(self.wait)))} if self.wait > 0 else {}

    def body(self, words: str = "") -> bytes:
        """The refusal as JSON, in these words or its own.

        >>> Refused(404, "unknown-trial", "There is no such trial.").body()
        b'{"error": "unknown-trial", "message": "There is no such trial."}'
        """
        return json.dumps({"error": self.code, "message": words or self.message}).encode()


def speaks_json(path: str) -> bool:
    """Whether refusals under this path are JSON.

    >>> speaks_json("/api/state"), speaks_json("/join/x")
    (True, False)
    """
    return path.startswith(SPOKEN_JSON)


def as_refused(error: Exception) -> Refused:
    """Any error as a refusal; those that are no client's fault are logged, and say nothing of themselves.

    >>> as_refused(Refusal("already-answered", "There is an answer.")).status
    409
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, Refusal):
        return Refused(404 if error.code.startswith("unknown") else 409, error.code, error.message)
    logging.getLogger(__name__).error("a request could not be done", exc_info=error)
    if isinstance(error, HardlookError | OSError):
        return Refused(503, "not-now", "The study cannot do this right now. Please try again in a while.", wait=5)
    return failed()


def failed() -> Refused:
    """The refusal of what nobody foresaw."""
    return Refused(500, "failed", "This should not have happened. The server's log says more.")
