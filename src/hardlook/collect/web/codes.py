"""The completion code: what a participant hands to a crowdsourcing platform, and only the study can make.

>>> code = completion_code(bytes(32), "participant")
>>> len(code), code == completion_code(bytes(32), "participant"), code == completion_code(bytes(32), "another")
(12, True, False)
"""

from __future__ import annotations

from hardlook.collect.web.tokens import mac

LENGTH = 12
# Without I, L, O and U: codes are read from a screen and typed. 32 letters, so that five bits are one.
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def completion_code(secret: bytes, participant_id: str) -> str:
    """Twelve letters and digits (60 bits) of one participant; it tells nothing of the id."""
    bits = int.from_bytes(mac(secret, "code", participant_id), "big")
    return "".join(LETTERS[(bits >> (5 * place)) & 31] for place in range(LENGTH))
