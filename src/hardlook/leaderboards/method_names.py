"""What each run is called in a table: its model, and what tells it from other runs of that model.

>>> name_runs([("net", {"k": 1, "seed": 0}, "a"), ("net", {"k": 2, "seed": 0}, "b"), ("other", {}, "c")])
['net k=1', 'net k=2', 'other']
>>> name_runs([("net", {}, "a"), ("net", {}, "b")])
['net (a)', 'net (b)']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Named = tuple[str, Mapping[str, Any], str]


def name_runs(runs: Sequence[Named]) -> list[str]:
    """A name for each (model, arguments, folder): arguments that differ are told, then the folder, where needed."""
    values: dict[str, dict[str, set[str]]] = {}
    counts = Counter(model for model, _, _ in runs)
    for model, arguments, _ in runs:
        for key, value in arguments.items():
            values.setdefault(model, {}).setdefault(key, set()).add(str(value))
    names = []
    for model, arguments, _ in runs:
        telling = [key for key in arguments if len(values[model][key]) > 1]
        names.append(" ".join([model, *(f"{key}={arguments[key]}" for key in telling)]) if counts[model] > 1 else model)
    repeated = Counter(names)
    return [f"{name} ({run[2]})" if repeated[name] > 1 else name for name, run in zip(names, runs, strict=True)]
