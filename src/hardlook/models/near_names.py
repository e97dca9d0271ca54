"""What may have been meant by a model's name: models of the wanted role come before all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from hardlook.models.card import ModelCard

_MOST, _ALIKE = 3, 0.5


def meant(name: str, role: str | None, cards: Iterable[ModelCard], others: Sequence[str] = ()) -> str:
    """A question that names what is near, with a space at its end; nothing where nothing is.

    `others` are names whose role is not known. Near names of another role are given only where there are no better
    ones, and are called that.

    >>> cards = [ModelCard("u2netp", ("saliency",)), ModelCard("deeplab-voc", ("semantic-segmenter",))]
    >>> meant("deeplab", "semantic-segmenter", cards)
    "did you mean 'deeplab-voc'? "
    >>> meant("u2net", "semantic-segmenter", cards)
    "'u2netp' is near, but a saliency; "
    """
    roles = {card.name: card.roles for card in cards}
    fitting = [known for known, own in roles.items() if role is None or not own or role in own]
    if near := get_close_matches(name, [*fitting, *others], n=_MOST, cutoff=_ALIKE):
        return f"did you mean {' or '.join(map(repr, near))}? "
    if wrong := get_close_matches(name, list(roles), n=1, cutoff=_ALIKE):
        return f"{wrong[0]!r} is near, but a {' and '.join(roles[wrong[0]])}; "
    return ""
