"""What a model costs, measured once for a run and stored in its folder as `cost.json`; no score depends on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import DataError
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import Section
from hardlook.reading import read_json, reading

if TYPE_CHECKING:
    from hardlook.models.named_model import NamedModel

COST_FILE = "cost.json"


@dataclass(frozen=True)
class MeasuredRun:
    """A run under its name, and the content of its `cost.json`; None, and perhaps a `problem`, where it has none."""

    name: str
    scorecard: Scorecard
    cost: Mapping[str, Any] | None
    problem: str = ""


@dataclass(frozen=True)
class CostMeasure:
    """How a benchmark measures what a model costs, and shows it.

    - `measure(model, threads)`: the content of `cost.json`, with the model's facts under the key `model`. `threads` is
      what the process was set to, for the record.
    - `read(content)`: the cells of a leaderboard by the title of their column; any error of a wrong type, key or value
      where the content is not what `measure` returns.
    - `build_section(runs)`: costs and scores of runs beside each other; None where no run has a cost.
    """

    measure: Callable[[NamedModel, int], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any]], Mapping[str, float]]
    build_section: Callable[[Sequence[MeasuredRun]], Section | None]


def read_cost(folder: Path, measure: CostMeasure) -> Mapping[str, Any] | None:
    """The content of a run folder's `cost.json`; None where there is none, a `DataError` where it is damaged."""
    path = folder / COST_FILE
    if not path.is_file():
        return None
    what, remedy = "not a cost of `hardlook clicks cost`", "remove it: the same `hardlook run` measures it again"
    if not path.stat().st_size:
        raise DataError("the file is empty", file=path, remedy=remedy)
    content = read_json(path, what=what, remedy=remedy)
    with reading(path, what, remedy=remedy):
        measure.read(content)
    return dict(content)


def is_cost_of(content: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether a cost is of the model in a `run.json`: the same name, weights, device and arguments.

    A weights file that was moved stays the same file.

    >>> model = {"name": "net", "weights": {"a.pth": "1f"}, "device": "cpu", "args": {"weights": "new/a.pth"}}
    >>> moved = model | {"args": {"weights": "old/a.pth"}}
    >>> is_cost_of({"model": moved}, model), is_cost_of({"model": moved | {"weights": {"a.pth": "2e"}}}, model)
    (True, False)
    """
    return _identify(content["model"]) == _identify(model)


def _identify(model: Mapping[str, Any]) -> list[Any]:
    weights = dict(model.get("weights") or {})
    arguments = {
        name: value for name, value in (model.get("args") or {}).items() if Path(str(value)).name not in weights
    }
    return [model.get("name"), weights, model.get("device"), arguments]
