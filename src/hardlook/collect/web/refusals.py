"""Requests that are refused: a status, a code for programs and a sentence for people, never a path or a traceback."""

from __future__ import annotations

import json
import logging
import math

from hardlook.collect.store.records import Refusal
from hardlook.errors import HardlookError

# A refusal under these paths is JSON, for scripts; under all others it is a page.
JSON_PATHS = ("/api/", "/pictures/")


class RequestRefused(Exception):
    """A request that is refused: HTTP status, code and sentence; `wait` is the seconds after which to try again."""

    def __init__(self, status: int, code: str, message: str, *, wait: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.wait = status, code, message, wait

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response.

        >>> RequestRefused(429, "too-many", "Too many requests.", wait=2.5).headers
        {'retry-after': '3'}
        """
        return {"retry-after": str(max(1, math.ceil(self.wait)))} if self.wait > 0 else {}

    def to_json(self, message: str = "") -> bytes:
        """The refusal as JSON, with this message or its own.

        >>> RequestRefused(404, "unknown-trial", "There is no such trial.").to_json()
        b'{"error": "unknown-trial", "message": "There is no such trial."}'
        """
        return json.dumps({"error": self.code, "message": message or self.message}).encode()


def to_request_refused(error: Exception) -> RequestRefused:
    """Any error as a refusal; errors that are not the client's fault are logged, and their text is not sent.

    >>> to_request_refused(Refusal("already-answered", "There is an answer.")).status
    409
    """
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, Refusal):
        return RequestRefused(404 if error.code.startswith("unknown") else 409, error.code, error.message)
    logging.getLogger(__name__).error("a request failed", exc_info=error)
    if isinstance(error, HardlookError | OSError):
        message = "The study cannot do this right now. Please try again in a while."
        return RequestRefused(503, "not-now", message, wait=5)
    return make_internal_error()


def make_internal_error() -> RequestRefused:
    """The refusal for an unexpected error."""
    return RequestRefused(500, "failed", "This should not have happened. The server's log says more.")
