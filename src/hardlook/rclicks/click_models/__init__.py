"""Where people click: maps over an error region, from its shape, from what catches the eye, or learnt from clicks.

>>> registered_name("saliency"), registered_name("distance")
('saliency-clicks', 'distance')
"""

from __future__ import annotations

from functools import lru_cache

from hardlook.models.named_model import NamedModel, build_inner

# Among all models `saliency` is a one-shot segmenter; among click models it is this one.
_SHORT = {"saliency": "saliency-clicks"}


def registered_name(name: str) -> str:
    """The name that a click model is registered by."""
    return _SHORT.get(name, name)


@lru_cache(maxsize=2)
def build_click_model(name: str, args: str) -> NamedModel:
    """The click model of that name, built once per process."""
    return build_inner(registered_name(name), "click-model", args)


def describe_click_model(name: str, args: str) -> str:
    """The click model's name, its arguments and its own description.

    >>> describe_click_model("planted-clicks", "edge=1")
    'planted-clicks (edge=1)'
    """
    conduct = getattr(build_click_model(name, args).model, "conduct", "")
    return name + (f" ({args})" if args else "") + (f": {conduct}" if conduct else "")
