"""Rules by which participants are excluded from the results, all off until a researcher sets them.

>>> people = pl.DataFrame({"participant": ["a", "b"], "number": [1, 2], "answers": [10, 10], "inside": [0.9, 0.4],
...     "reaction_ms": [900.0, None], "early_share": [0.0, 0.5], "late_ms": [3.0, 8.0], "dropped_batches": [0, 1]})
>>> find_excluded(people, ExclusionRules(least_inside=0.5, most_early_share=0.2))
{'b': 'share inside 0.4, below 0.5; share of answers with an early click 0.5, above 0.2'}
>>> find_excluded(people, ExclusionRules(participants=("1",)))
{'a': 'named'}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hardlook.errors import DataError
from hardlook.reading import read_json, reading

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

Milliseconds = Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]

Count = Annotated[int, Field(ge=0, le=1_000_000)]

# Rule, the column of the quality table, its description, and on which side of the rule a value is excluded.
_RULES = (
    ("least_answers", "answers", "answers", "below"),
    ("least_inside", "inside", "share inside", "below"),
    ("least_reaction_ms", "reaction_ms", "median reaction in ms", "below"),
    ("most_early_share", "early_share", "share of answers with an early click", "above"),
    ("most_late_ms", "late_ms", "median lateness in ms", "above"),
    ("most_dropped_batches", "dropped_batches", "dropped batches", "above"),
    ("most_quick_batches", "quick_batches", "batches done in less time than they take", "above"),
    ("most_failed_checks", "failed_checks", "failed attention checks", "above"),
    ("most_pointer_conflicts", "pointer_conflict_share", "share of answers by a pointer of another device", "above"),
)


class ExclusionRules(BaseModel):
    """Which participants to exclude; a rule that is null, or an empty list, is off."""

    # Participants may be named by number.
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    least_inside: Share | None = Field(None, description="least share of a participant's clicks inside their masks")
    least_reaction_ms: Milliseconds | None = Field(None, description="least median reaction, in milliseconds")
    most_early_share: Share | None = Field(None, description="most share of answers with a click that was too early")
    most_late_ms: Milliseconds | None = Field(
        None, description="most median deviation of measured phases from the plan, in milliseconds"
    )
    most_dropped_batches: Count | None = Field(None, description="most complete batches that were not valid")
    most_quick_batches: Count | None = Field(
        None, description="most batches that were done in less time than they take"
    )
    most_failed_checks: Count | None = Field(None, description="most attention checks that were failed")
    most_pointer_conflicts: Share | None = Field(
        None, description="most share of answers by touch on a computer, or by mouse on a phone"
    )
    least_answers: Count | None = Field(None, description="least answers of a participant")
    participants: tuple[Annotated[str, Field(max_length=64)], ...] = Field(
        (), max_length=100_000, description="participants by name: a number of the quality report, or an id"
    )

    def active_rules(self) -> dict[str, Any]:
        """The rules that are on, by name."""
        return {name: value for name, value in self.model_dump().items() if value not in (None, ())}


def find_excluded(quality: pl.DataFrame, rules: ExclusionRules) -> dict[str, str]:
    """The participants (by id) that the rules exclude, each with all reasons, in the frame's order.

    `quality` is the frame of `measure_participants`. A rule does not apply to a participant without a value.
    """
    found: dict[str, str] = {}
    for row in quality.iter_rows(named=True):
        reasons = ["named"] if {row["participant"], str(row["number"])} & set(rules.participants) else []
        for name, column, words, wrong in _RULES:
            limit, value = getattr(rules, name), row.get(column)
            if limit is not None and value is not None and (value < limit if wrong == "below" else value > limit):
                reasons.append(f"{words} {value:.4g}, {wrong} {limit:.4g}")
        if reasons:
            found[row["participant"]] = "; ".join(reasons)
    return found


def find_unknown_participants(quality: pl.DataFrame, rules: ExclusionRules) -> tuple[str, ...]:
    """The participants named by the rules that are not in the study."""
    known = set(quality["participant"]) | set(map(str, quality["number"]))
    return tuple(name for name in rules.participants if name not in known)


def parse_rules(value: Mapping[str, Any], *, file: Path | None = None) -> ExclusionRules:
    """Rules from JSON values; a `DataError` names the invalid rule.

    >>> parse_rules({"least_inside": 7})
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: least_inside: Input should be less than or equal to 1
      ...
    """
    try:
        return ExclusionRules.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "the rules"
        remedy = f"the rules are {', '.join(ExclusionRules.model_fields)}"
        raise DataError(f"{name}: {first['msg']}", file=file, remedy=remedy) from error


def read_rules(path: Path) -> ExclusionRules:
    """Rules from a JSON file such as {"least_inside": 0.6, "most_early_share": 0.2}."""
    if not path.is_file():
        raise DataError("the rules cannot be read", file=path, remedy="check --rules")
    value = read_json(path, what="not readable as JSON", remedy="correct it")
    with reading(path, "the rules cannot be read", remedy="check --rules"):
        return parse_rules(value, file=path)
