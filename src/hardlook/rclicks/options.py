"""The options and readings of RClicks."""

from __future__ import annotations

from typing import Any, Literal, cast

from pydantic import field_validator, model_validator

from hardlook.data.stored_files.columns import SUMMARY
from hardlook.data.stored_files.python_objects import take_objects
from hardlook.errors import OptionError
from hardlook.harness.options import BenchmarkOptions, option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.harness.stats.intervals import Method
from hardlook.metrics.click_robustness import FailureReading
from hardlook.rclicks.time_to_mask import parse_click_times

# What the values of each reading mean; the first is the default.
READINGS = {
    "group-rule": {
        "threshold": "all pixels whose probability lies between the bin's two quantiles; ties are shared",
        "exact": "each pixel's share of the bin's mass, so that every group has exactly its part",
    },
    "perfect": {
        "ours": "a perfect mask ends the clicking and keeps its IoU",
        "released": "clicking goes on, negative at (0, 0), as in the published code",
    },
    "nof": {"released": "NoC equal to the last round, reached or not", "ours": "the IoU is not reached in any round"},
    "dhh": {
        "released": "each group of the improbable half against its counterpart in the probable one",
        "paper": "two further courses that click in the lower and in the upper half of the mass",
    },
}
PLANTED_USERS = "planted"
NO_USERS = "none"


class RClicksOptions(BenchmarkOptions):
    """Options of `hardlook run rclicks`."""

    clicks: str = option(
        "distance", "Who clicks: distance, uniform, saliency, clickability, or any other click model.",
        changes="answers",
    )  # fmt: skip
    clicks_args: str = option("", "The click model's arguments, such as path=click.safetensors.", changes="answers")
    groups: int = option(10, "Clicking groups, from the least probable clicks to the most.", changes="answers", ge=2)
    draws: int = option(
        1, "Draws per group: so often each group clicks its course, with other random numbers.", changes="answers",
        added=True, ge=1, le=100,
    )  # fmt: skip
    rounds: int = option(20, "Clicks per course.", changes="answers", ge=1, le=100)
    group_rule: Literal["threshold", "exact"] = option(
        "threshold", "Which pixels a group clicks: threshold (as published) or exact (equal masses).",
        changes="answers",
    )  # fmt: skip
    perfect: Literal["ours", "released"] = option(
        "ours", "After a perfect mask: ours stops, released clicks on.", changes="answers"
    )
    halves: bool = option(
        False, "Let two more courses click in each half of the mass, for --reading dhh=paper.", changes="answers"
    )
    first_prompt: Literal["click", "box"] = option(
        "click", "The first prompt: a click, or the object's box, for models that take boxes.", changes="answers",
        added=True,
    )  # fmt: skip
    boundary: bool = option(
        False, "Also count boundary pixels, for boundary IoU and boundary F.", changes="answers", added=True
    )
    user_clicks: str = option(
        "", "People's clicks: a clicks.csv, or planted for simulated people (the planted world's default), or none.",
        changes="units",
    )  # fmt: skip
    at_most: int | None = option(
        None, "At most this many instances per dataset, drawn at random.", changes="units", ge=1
    )
    min_area: int = option(0, "Leave out objects of fewer pixels.", changes="units", ge=0)
    split: str | None = option(
        None, "Which list of a VOC devkit, or split of a Hugging Face dataset, if it has several.", changes="units"
    )
    columns: str = option("", SUMMARY, changes="units", added=True)
    prompts_a_call: int = option(64, "Most prompts that the model answers in one call.", changes="answers", ge=1)
    scenes: int = option(24, "Scenes of the planted world, without --data.", changes="units", ge=2, le=100_000)
    cost: str = option(
        "", "For time to a mask: cost.json of `hardlook clicks cost`, or opening=MS,click=MS.", changes="scores"
    )
    resamples: int = option(1000, "Bootstrap resamples (of images) behind the intervals.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)
    interval: Method = option("jackknife", "Interval: jackknife, percentile or bca.", changes="scores")

    @model_validator(mode="before")
    @classmethod
    def _take_objects(cls, given: Any) -> Any:
        """The options with a path in place of a dataset object."""
        return take_objects(given)

    @field_validator("cost")
    @classmethod
    def _read_cost(cls, text: str) -> str:
        # The times instead of the file, which may be gone when the run is scored again.
        return str(parse_click_times(text)) if text else text

    @property
    def planted(self) -> bool:
        """Whether the planted world is used instead of data."""
        return not self.data

    @property
    def users(self) -> str:
        """Where people's clicks come from: a path, `planted` or `none`.

        >>> RClicksOptions().users, RClicksOptions(data={"grabcut": "x"}).users
        ('planted', 'none')
        """
        return self.user_clicks or (PLANTED_USERS if self.planted else NO_USERS)


def failure_reading(options: RClicksOptions) -> FailureReading:
    """When a course counts as failed."""
    return cast("FailureReading", read_reading(options, "nof", READINGS["nof"], "released"))


def halves_reading(options: RClicksOptions) -> str:
    """What the two halves of the mass are."""
    value = read_reading(options, "dhh", READINGS["dhh"], "released")
    if value == "paper" and not options.halves:
        raise OptionError("--reading dhh=paper needs the clicks of the two halves", remedy="run with --halves")
    return value


def get_readings(options: RClicksOptions) -> tuple[Reading, ...]:
    """Every reading that ran; the first two take effect when the clicks are made."""
    values = (options.group_rule, options.perfect, failure_reading(options), halves_reading(options))
    return tuple(
        Reading(name, value, choices[value], tuple(choices), default=next(iter(choices)))
        for value, (name, choices) in zip(values, READINGS.items(), strict=True)
    )
