"""Dataclasses that travel to workers with their fields alone, without what they have looked up.

>>> import pickle
>>> from dataclasses import dataclass
>>> from functools import cached_property
>>> @dataclass(frozen=True)
... class Folder(PickledByFields):
...     name: str
...     @cached_property
...     def files(self) -> list[str]:
...         return [self.name] * 9999
>>> folder = Folder("a")
>>> len(folder.files), sorted(folder.__getstate__())
(9999, ['name'])
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class PickledByFields:
    """Leaves cached properties of a dataclass behind when it is pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
