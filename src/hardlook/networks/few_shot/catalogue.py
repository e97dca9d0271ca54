"""The trainable few-shot methods by name, from `methods.csv`; what a class says of itself is read without importing it.

>>> find_method("protonet").family, find_method("protonet").stages
('metric', ('episodes',))
"""

from __future__ import annotations

import ast
import csv
import importlib
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.networks.few_shot.method import FewShotMethod

PACKAGE = "hardlook.networks.few_shot"
_READ = ("stages", "transductive", "learner", "inputs", "adapts")


@dataclass(frozen=True)
class MethodEntry:
    """A row of `methods.csv` and what the class says: its stages, whether it is transductive, its test-time learner.

    `golden` names the golden numbers of released code that it is checked against, empty for none.
    """

    name: str
    target: str
    family: str
    golden: str
    citation: str
    facts: dict[str, Any] = field(repr=False)

    @property
    def stages(self) -> tuple[str, ...]:
        """What it trains on, in order: classes, episodes."""
        return tuple(self.facts.get("stages", ("episodes",)))

    @property
    def transductive(self) -> bool:
        """Whether it answers all queries of a task together."""
        return bool(self.facts.get("transductive", False))

    @property
    def learner(self) -> str | None:
        """The registered few-shot learner that classifies on its features, if that is how it classifies."""
        return self.facts.get("learner")

    @property
    def adapts(self) -> bool:
        """Whether it learns from the supports when it is tested: by an inner loop, a solver or a new head.

        Versa's head comes out of one pass; a method trained on classes alone has to learn the classes of a task.
        """
        learns_head = self.stages == ("classes",) and self.learner is None
        return bool(self.facts.get("adapts", learns_head or (self.family == "meta" and self.name != "versa")))

    @property
    def flags(self) -> tuple[str, ...]:
        """GL where it trains on the labels of all classes, LL where on those of tasks, TT where it adapts in a test.

        The learner of an entry that has one is not asked.
        """
        labelled = self.family != "self-supervised"
        held = ("classes" in self.stages and labelled, "GL"), ("episodes" in self.stages, "LL"), (self.adapts, "TT")
        return tuple(flag for holds, flag in held if holds)

    def load(self) -> type[FewShotMethod]:
        """The class, imported now; it needs torch."""
        module, _, name = self.target.partition(":")
        found: type[FewShotMethod] = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
        return found


@lru_cache(maxsize=1)
def list_methods() -> tuple[MethodEntry, ...]:
    """All methods, sorted by name."""
    text = files(PACKAGE).joinpath("methods.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    entries = (
        MethodEntry(row["name"], row["class"], row["family"], row["golden"], row["citation"], _read_class(row["class"]))
        for row in rows
    )
    return tuple(sorted(entries, key=lambda entry: entry.name))


def find_method(name: str) -> MethodEntry:
    """The method of that name; an error with similar names where there is none."""
    known = {entry.name: entry for entry in list_methods()}
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise OptionError(f"there is no method {name!r} to train", remedy=f"{hint}one of {', '.join(known)}")
    return known[name]


def _read_class(target: str) -> dict[str, Any]:
    """The literal values that a class, or one that it inherits from in this package, gives to the names in `_READ`."""
    order = _list_classes(target)
    # Of a class that is inherited twice the last place counts, as in Python's own order.
    order = [one for place, one in enumerate(order) if one not in order[place + 1 :]]
    found: dict[str, Any] = {}
    for one in reversed(order):
        found |= _read_literals(one)
    return found


def _find_class(target: str) -> ast.ClassDef | None:
    module, _, name = target.partition(":")
    return next((one for one in _parse(module).body if isinstance(one, ast.ClassDef) and one.name == name), None)


def _list_classes(target: str) -> list[str]:
    """The class and those of this package that it inherits from, depth first; some may come twice."""
    module = target.partition(":")[0]
    node = _find_class(target)
    if node is None:
        return []
    found = [target]
    for base in node.bases:
        parent = base.id if isinstance(base, ast.Name) else ""
        if _find_class(f"{module}:{parent}") is not None:
            found += _list_classes(f"{module}:{parent}")
        for one in _parse(module).body:
            if isinstance(one, ast.ImportFrom) and (one.module or "").startswith(f"{PACKAGE}."):
                if parent in [alias.name for alias in one.names]:
                    found += _list_classes(f"{(one.module or '').removeprefix(f'{PACKAGE}.')}:{parent}")
    return found


def _read_literals(target: str) -> dict[str, Any]:
    """The literal values in the body of a class itself."""
    node = _find_class(target)
    found: dict[str, Any] = {}
    for one in node.body if node is not None else ():
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        names = [part.id for part in targets if isinstance(part, ast.Name) and part.id in _READ]
        value = one.value if isinstance(one, ast.Assign | ast.AnnAssign) else None
        if names and value is not None:
            try:
                found |= dict.fromkeys(names, ast.literal_eval(value))
            except ValueError:  # computed: unknown without importing
                continue
    return found


@lru_cache(maxsize=256)
def _parse(module: str) -> ast.Module:
    return ast.parse(files(PACKAGE).joinpath(f"{module}.py").read_text(encoding="utf-8"))
