"""The address that participants type, where it is another than the one listened on: a proxy with https stands there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from hardlook.errors import OptionError
from hardlook.serving.hosts import host_name, may_ask


@dataclass(frozen=True)
class PublicAddress:
    """What is known of the way here: the public address ("" where there is none) and the proxy on it.

    `host` is what the server listens on. Only a proxy named as trusted is believed when it says who asks.
    """

    host: str = "127.0.0.1"
    url: str = ""
    trusted_proxy: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        plain = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
        if self.url and not (parts.scheme in ("http", "https") and parts.hostname and plain and _port_is_one(self.url)):
            raise OptionError(
                f"{self.url!r} is no public address", remedy="give one like https://study.example.org, without a path"
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
        return urlsplit(self.url).scheme == "https"

    @property
    def origin(self) -> str:
        """The public address without a slash at its end.

        >>> PublicAddress(url="https://study.example/").origin
        'https://study.example'
        """
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if self.url else ""

    def means_us(self, header: str) -> bool:
        """Whether a request with that Host header is meant for this study.

        >>> here = PublicAddress(url="https://study.example")
        >>> here.means_us("study.example"), here.means_us("127.0.0.1:8000"), here.means_us("evil.example")
        (True, True, False)
        """
        return may_ask(header, self.host) or (bool(self.url) and host_name(header) == urlsplit(self.url).hostname)


def _is_number(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _port_is_one(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
