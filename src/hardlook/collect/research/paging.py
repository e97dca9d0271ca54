"""A long list in pages, with the addresses of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hardlook.collect.research.parameters import Asked
from hardlook.collect.research.refusals import Refused

One = TypeVar("One")


def page_of(found: Sequence[One], asked: Asked, address: str, size: int) -> tuple[Sequence[One], dict[str, Any]]:
    """The rows of the page that `asked` names, counted from 1, and its neighbours' addresses.

    >>> rows, pager = page_of("abcde", Asked([("page", "2")], ("page",)), "/here", 2)
    >>> rows, pager["last"], pager["before"], pager["after"]
    ('cd', 3, '/here?page=1', '/here?page=3')
    """
    last = max(1, -(-len(found) // size))
    page = asked.whole("page", 1, 1, 10_000_000)
    if page > last:
        raise Refused(f"There is no page {page}: this list has {last}.", 404)
    pager = {
        "page": page,
        "last": last,
        "before": asked.address(address, page=page - 1) if page > 1 else "",
        "after": asked.address(address, page=page + 1) if page < last else "",
    }
    return found[(page - 1) * size : page * size], pager
