"""Import paths of 0.1.0 that the documentation named keep working for one release, with a DeprecationWarning.

`moved_names.csv` has a row per name: `old_module,old_name,new_module,new_name`. A module of that table that is no
longer a file is made when it is imported; its names are looked up where they are now.

>>> import warnings
>>> with warnings.catch_warnings(record=True) as caught:
...     warnings.simplefilter("always")
...     from hardlook.contract.scorecard import Scorecard
>>> Scorecard.__module__, caught[0].category.__name__
('hardlook.harness.scorecard', 'DeprecationWarning')
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from hardlook.callable_packages import make_callable


@cache
def moved_names() -> dict[str, dict[str, tuple[str, str]]]:
    """By old module and old name: the new module and the new name."""
    import csv
    from importlib.resources import files

    found: dict[str, dict[str, tuple[str, str]]] = {}
    with files("hardlook").joinpath("moved_names.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["old_module"], {})[row["old_name"]] = (row["new_module"], row["new_name"])
    return found


class MovedModules(MetaPathFinder, Loader):
    """Finds the old modules and their packages; consulted last, for modules that no other finder knows."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec if the name is an old module or a package of one."""
        if name.startswith("hardlook.") and any(f"{old}.".startswith(f"{name}.") for old in moved_names()):
            return ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its old names, each looked up on access."""
        names = moved_names().get(module.__name__, {})

        def look_up(name: str) -> Any:
            if name not in names:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            place, now = names[name]
            warnings.warn(
                f"{module.__name__}.{name} is {place}.{now} now; the old path works for this release only",
                DeprecationWarning,
                stacklevel=3,
            )
            return getattr(importlib.import_module(place), now)

        module.__dict__["__getattr__"] = look_up
        # `hardlook.runs` was a package and is a function: the package, once imported, takes the function's place.
        public: dict[str, str] = vars(sys.modules["hardlook"])["_PLACES"]
        if function := public.get(module.__name__.removeprefix("hardlook.")):
            module.__doc__ = f"Names of the last release; a call is one of `{function}`."
            make_callable(module.__name__, function)
