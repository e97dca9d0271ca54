"""The names and arguments of several models in one command.

>>> names = parse_model_names("ridge, dn4")
>>> split_model_arguments(names, {"size": "9", "ridge.scale": "2"})
{'ridge': {'size': '9', 'scale': '2'}, 'dn4': {'size': '9'}}
"""

from __future__ import annotations

from hardlook.api.several_models import check_models as check_models
from hardlook.api.several_models import split_model_arguments as split_model_arguments
from hardlook.errors import OptionError


def parse_model_names(text: str | None) -> list[str]:
    """The names in `--model`, separated by commas; none where the flag is not given."""
    names = [word.strip() for word in (text or "").split(",") if word.strip()]
    if text is not None and not names:
        raise OptionError("--model names no model", remedy="`hardlook models` lists them")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise OptionError(
            f"--model names {', '.join(repeated)} more than once",
            remedy="name each model once; for other arguments run it again with another --out",
        )
    return names
