"""`hl.models`: the models that can be run, as a list that a notebook shows as a table."""

from __future__ import annotations

import html

from hardlook.errors import OptionError
from hardlook.models.registry import ModelCard, list_models
from hardlook.models.roles import ROLES


class ModelList(list[ModelCard]):
    """Cards of models; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(card.name)}</td><td>{html.escape(', '.join(card.roles) or 'any role')}</td>"
            f"<td>{html.escape(card.problem or card.summary)}</td><td>{html.escape(card.licence)}</td>"
            f"<td>{html.escape(card.extra)}</td></tr>"
            for card in self
        )
        head = "".join(f"<th>{name}</th>" for name in ("model", "roles", "summary", "licence", "extra"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def models(pattern: str = "*", *, role: str | None = None) -> ModelList:
    """The models whose names fit the pattern, with * and ?; of one role where given.

    >>> models("planted-seg*")[0].roles
    ('semantic-segmenter',)
    """
    if role is not None and role not in ROLES:
        raise OptionError(f"--role {role}: there is no such role", remedy=f"one of {', '.join(ROLES)}")
    return ModelList(list_models(pattern, role))
