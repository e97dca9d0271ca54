"""Who a request is meant for.

A page from elsewhere can make a browser send requests to this machine, and by a name of its own that points here
(DNS rebinding) even read the answers. So the Host header must be one that the user typed.
"""

from __future__ import annotations

import ipaddress
import re

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
# Whatever else stands in the header would end up in addresses that are made from it.
_HOST = re.compile(r"(?:\[(?P<number>[0-9a-f]*:[0-9a-f:.]*)\]|(?P<name>[^:\[\]/?#@\s]*))(?::[0-9]{1,5})?")


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets.

    >>> [host_name(text) for text in ("localhost:8000", "[::1]:8000", "Example.org", "::1", "[::1]:@evil.example")]
    ['localhost', '::1', 'example.org', '', '']
    """
    found = _HOST.fullmatch(header.strip(" \t").lower())
    return (found["number"] or found["name"]) if found else ""


def may_ask(header: str, host: str) -> bool:
    """Whether a request with that Host header is meant for a server on `host`.

    A server on all interfaces answers to any address in numbers, since no name of a stranger is among those.

    >>> may_ask("127.0.0.1:8000", "127.0.0.1"), may_ask("evil.example:8000", "127.0.0.1")
    (True, False)
    >>> may_ask("10.0.0.5", "0.0.0.0"), may_ask("evil.example", "0.0.0.0")
    (True, False)
    """
    name = host_name(header)
    return name in LOOPBACK or name == host.lower().strip("[]") or (host in EVERYWHERE and _is_number(name))


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
