"""How often somebody may ask: buckets of tokens in memory, filled by a clock that is passed in.

>>> buckets = Buckets(per_minute=2)
>>> buckets.take("a", 0.0), buckets.take("a", 0.0), buckets.take("a", 0.0), buckets.take("b", 0.0)
(0.0, 0.0, 30.0, 0.0)
>>> buckets.take("a", 30.0)
0.0
"""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from collections.abc import Iterable

MOST_KEYS = 50_000


class Buckets:
    """One bucket a key, full at first; `per_minute` is both what it holds and what flows in within a minute.

    The memory is bounded: of more than `most_keys` the one that asked longest ago is forgotten, which fills its bucket.
    """

    def __init__(self, per_minute: float, most_keys: int = MOST_KEYS) -> None:
        if per_minute <= 0 or most_keys < 1:
            raise ValueError(f"a bucket needs a positive rate and room for a key, not {per_minute} and {most_keys}")
        self.per_minute, self.most_keys = float(per_minute), most_keys
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str, now: float, tokens: float = 1.0) -> float:
        """Seconds to wait; 0 when the tokens were there and are taken. Who is refused has lost nothing."""
        cost = min(tokens, self.per_minute)
        with self._lock:
            left, since = self._left.pop(key, (self.per_minute, now))
            # A clock that is set back must not empty a bucket.
            left = min(self.per_minute, left + max(0.0, now - since) * self.per_minute / 60.0)
            enough = left >= cost
            self._left[key] = (left - cost if enough else left, now)
            while len(self._left) > self.most_keys:
                self._left.popitem(last=False)
        return 0.0 if enough else (cost - left) * 60.0 / self.per_minute

    def __len__(self) -> int:
        return len(self._left)


def address_key(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 of an IPv6 address, which one household has whole.

    >>> address_key("10.0.0.7"), address_key("2001:db8::7"), address_key("::ffff:10.0.0.7"), address_key("testclient")
    ('10.0.0.7', '2001:db8::', '10.0.0.7', 'unknown')
    """
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(number, ipaddress.IPv6Address):
        if number.ipv4_mapped:
            return str(number.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(number) >> 64 << 64, 64)).network_address)
    return str(number)


def asking_address(peer: str, forwarded: Iterable[str], trusted_proxy: str) -> str:
    """The address that asks: the peer, or what the one trusted proxy says of its own peer.

    `forwarded` are the X-Forwarded-For headers. Of their list only the last entry is the proxy's own word.

    >>> asking_address("10.0.0.1", ["1.1.1.1, 2.2.2.2"], "10.0.0.1"), asking_address("9.9.9.9", ["1.1.1.1"], "10.0.0.1")
    ('2.2.2.2', '9.9.9.9')
    """
    if not trusted_proxy or peer != trusted_proxy:
        return peer
    named = [word.strip() for header in forwarded for word in header.split(",")]
    return named[-1] if named and named[-1] else peer
