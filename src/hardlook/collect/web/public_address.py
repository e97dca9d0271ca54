"""The address that participants type, where it is another than the one listened on: a proxy with https stands there."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from hardlook.errors import OptionError
from hardlook.serving.hosts import host_name, may_ask

_USUAL_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>https?)://(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?/?")


@dataclass(frozen=True)
class PublicAddress:
    """What is known of the way here: the public address ("" where there is none) and the proxy on it.

    `host` is what the server listens on. Only a proxy named as trusted is believed when it says who asks.
    """

    host: str = "127.0.0.1"
    url: str = ""
    trusted_proxy: str = ""

    def __post_init__(self) -> None:
        if self.url and not self.origin:
            raise OptionError(
                f"{self.url!r} is no public address",
                remedy="give one like https://study.example.org, without a path; a name with other letters as xn--...",
            )
        if self.trusted_proxy and not self.url:
            raise OptionError("a trusted proxy without a public address", remedy="give --public-url as well")
        if self.trusted_proxy and not _is_number(self.trusted_proxy):
            raise OptionError(
                f"{self.trusted_proxy!r} is no address of a proxy", remedy="give it in numbers, such as 127.0.0.1"
            )

    @property
    def secure(self) -> bool:
        """Whether participants come over https.

        >>> PublicAddress(url="https://study.example").secure, PublicAddress().secure
        (True, False)
        """
        return self.origin.startswith("https:")

    @property
    def origin(self) -> str:
        """The public address as browsers name it: in small letters, without the usual port and the last slash.

        >>> PublicAddress(url="https://Study.Example:443/").origin, PublicAddress().origin
        ('https://study.example', '')
        """
        found = _URL.fullmatch(self.url.lower())
        if found is None or not 0 < int(found["port"] or 80) < 2**16 or not host_name(found["name"]):
            return ""
        usual = found["port"] is None or int(found["port"]) == _USUAL_PORTS[found["scheme"]]
        return f"{found['scheme']}://{found['name']}" + ("" if usual else f":{int(found['port'])}")

    def means_us(self, header: str) -> bool:
        """Whether a request with that Host header is meant for this study.

        >>> here = PublicAddress(url="https://study.example")
        >>> here.means_us("study.example"), here.means_us("127.0.0.1:8000"), here.means_us("evil.example")
        (True, True, False)
        """
        return may_ask(header, self.host) or is_host_of(self.origin, header)


def is_host_of(origin: str, header: str) -> bool:
    """Whether a Host header names an origin's host; none is named where there is no origin.

    >>> is_host_of("https://study.example", "STUDY.example:443"), is_host_of("", "")
    (True, False)
    """
    return bool(origin) and host_name(header) == host_name(origin.partition("://")[2])


def _is_number(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
