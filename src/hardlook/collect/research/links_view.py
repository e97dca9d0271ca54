"""Invitation links: as many as asked for, made on the spot and shown once, since nothing of them is stored."""

from __future__ import annotations

from typing import Any

from hardlook.collect.research.parameters import Asked
from hardlook.collect.research.refusals import Refused
from hardlook.collect.study.folder import Study
from hardlook.collect.web.invitations import invitation_links
from hardlook.collect.web.public_address import PublicAddress
from hardlook.errors import OptionError

MOST_LINKS, MOST_DAYS, FEW, DAYS = 1000, 3650, 20, 30
DAY = 86_400.0


def links_view(study: Study, base_url: str) -> dict[str, Any]:
    """What the template `links.html` shows before any link is made."""
    return {
        "links": [],
        "asked": {"count": FEW, "days": DAYS, "base_url": base_url},
        "most": MOST_LINKS,
        "most_days": MOST_DAYS,
        "open_link": study.settings.open_link,
        "base_url": base_url,
    }


def made_links(study: Study, asked: Asked, base_url: str, now: float) -> dict[str, Any]:
    """What it shows with new links; each lets one participant in."""
    count, days = asked.whole("count", FEW, 1, MOST_LINKS), asked.whole("days", DAYS, 1, MOST_DAYS)
    base = asked.text("base_url") or base_url
    try:
        origin = PublicAddress(url=base).origin
    except OptionError as error:
        raise Refused(f"{error.what}; {error.remedy}.") from None
    return {
        **links_view(study, base_url),
        "links": invitation_links(study.secret, origin, count=count, expires=now + days * DAY),
        "asked": {"count": count, "days": days, "base_url": origin},
    }
