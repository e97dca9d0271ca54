"""Objects that worker processes get as they are: a benchmark or a model that was made in a script or a notebook.

Python's own pickle names classes and functions by the module that defines them, which a worker cannot import where that
module is a notebook. cloudpickle sends those by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hardlook.errors import ModelError


@dataclass(frozen=True)
class ByValue:
    """A value that is pickled with the classes and functions of the running script or notebook that it needs."""

    value: Any

    def __reduce__(self) -> tuple[Any, ...]:
        import cloudpickle  # type: ignore[import-untyped]

        try:
            return _load, (cloudpickle.dumps(self.value),)
        except Exception as error:  # what cannot be pickled raises errors of many kinds
            raise ModelError(
                f"this {type(self.value).__qualname__} cannot be sent to other processes ({type(error).__name__}: "
                f"{error})",
                remedy="use engine='inline', or name a class that a worker can import: package.module:Class",
            ) from error


def _load(data: bytes) -> ByValue:
    import cloudpickle

    return ByValue(cloudpickle.loads(data))
