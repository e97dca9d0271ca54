"""Files of the program that pages load: a fixed table, so that no name from outside is ever a path."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

from hardlook.collect.web.pages import static_files
from hardlook.collect.web.refusals import Refused

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def static(request: Request) -> Response:
    """A file by its name, or that the browser has it already."""
    from starlette.responses import Response

    name = str(request.path_params["name"])
    if name not in static_files():
        raise Refused(404, "nowhere", "There is no such page.")
    content, media = static_files()[name]
    headers = {"etag": etag(name)}
    if etag(name) in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media)


@cache
def etag(name: str) -> str:
    """What changes with the content of a file, and with nothing else.

    >>> etag("study.css") == etag("study.css"), etag("study.css") == etag("icon.svg")
    (True, False)
    """
    return f'"{hashlib.sha256(static_files()[name][0]).hexdigest()[:16]}"'
