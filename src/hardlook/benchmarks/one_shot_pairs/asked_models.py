"""Models that a benchmark asks beside the one under test: what is salient in a query, how alike two images are.

>>> asked = AskedModel("planted-saliency")
>>> asked.identity("saliency") == AskedModel("planted-saliency", "").identity("saliency")
True
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hardlook.models.inner_model import InnerModel, build_inner


@dataclass(frozen=True)
class AskedModel:
    """A model by name, with its arguments in one text: `key=value` with commas between."""

    name: str
    args: str = ""

    def built(self, role: str) -> InnerModel:
        """The model, made once a process."""
        return _built(self, role)

    def identity(self, role: str) -> str:
        """What its answers depend on: name, arguments, code and weights."""
        return self.built(role).identity.fingerprint()


@lru_cache(maxsize=4)
def _built(asked: AskedModel, role: str) -> InnerModel:
    return build_inner(asked.name, role, asked.args)
