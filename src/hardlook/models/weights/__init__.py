"""Weights: what is known, how it is installed and located, and how files are read without unpickling.

Called like a function, it lists the weights that hardlook knows; `install_weights`, `locate_weights` and
`import_weights` do what `hardlook weights install|where|import` do.

>>> import hardlook as hl
>>> hl.weights()[0].purpose != "" and sorted(row.name for row in hl.weights() if row.small)[0]
'deeplabv3-voc'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hardlook.callable_packages import make_callable

if TYPE_CHECKING:
    from hardlook.models.weights.importing import import_weights as import_weights
    from hardlook.models.weights.install import install_weights as install_weights
    from hardlook.models.weights.install import list_weights as list_weights
    from hardlook.models.weights.install import locate_weights as locate_weights

_PLACES = {
    "import_weights": "hardlook.models.weights.importing",
    "install_weights": "hardlook.models.weights.install",
    "list_weights": "hardlook.models.weights.install",
    "locate_weights": "hardlook.models.weights.install",
}

__all__ = ["import_weights", "install_weights", "list_weights", "locate_weights"]

make_callable(__name__, "hardlook.models.weights.install:list_weights")


def __getattr__(name: str) -> Any:
    """The function, imported when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
