"""Whether a score of RClicks may stand beside the paper's, and why not."""

from __future__ import annotations

from hardlook.benchmarks.rclicks.options import (
    NO_USERS,
    PLANTED_USERS,
    RClicksOptions,
    failure_reading,
    halves_reading,
)
from hardlook.benchmarks.rclicks.published import DATASETS, INSTANCES, SCORE_NAMES, TITLES
from hardlook.data.object_instances.dataset_names import dataset_name

ROUNDS, GROUPS, GROUP_RULE, CLICKS = 20, 10, "threshold", "clickability"
PEOPLES = ("user-iou1", "user-iou1-std", "nsr1")
# Folders that lie beside a dataset and are none.
BESIDE = {"images", "segments"}
# Neither who clicks nor the groups change these.
CENTRES = ("noc90-base", "nof-base", "auc-base", "base-iou1")
# One round makes these, however many are played.
FIRST_ROUND = ("base-iou1", "sample-iou1", "sample-iou1-std", *PEOPLES)
# An IoU of exactly 1 may be lost again in these by clicking on.
AREAS = ("auc", "auc-std", "auc-base", "dsb-iou", "dgr-iou", "dhh-iou", "nsr")


def comparable_words(dataset: str, instances: int, options: RClicksOptions, score: str = "") -> str:
    """One sentence for the scores of a dataset, or of all that ran ("").

    `instances` is how many were scored. Without the name of a score every setting counts; with it only those that the
    score depends on, so that the centre rule may be comparable where sampled clicks are not.

    >>> comparable_words("", 48, RClicksOptions())
    'not comparable: the images are of the planted world'
    >>> grabcut = RClicksOptions(data={"grabcut": "GrabCut"})
    >>> comparable_words("grabcut", 50, grabcut, "noc90")
    'not comparable: clicks are drawn by distance, the published ones by clickability'
    >>> comparable_words("grabcut", 50, grabcut, "noc90-base")
    'comparable with the published scores of GrabCut, which are those of 50 instances'
    """
    if options.planted:
        return "not comparable: the images are of the planted world"
    if score and score not in SCORE_NAMES:
        return "not in the paper: its tables have no such score"
    datasets = (dataset,) if dataset else ran_datasets(options)
    others = [name for name in datasets if name not in INSTANCES]
    if others:
        return f"not comparable: the paper has no scores of {', '.join(others)}"
    differs = [*_instances(datasets, instances), *_settings(score, options)]
    if differs:
        return f"not comparable: {'; '.join(differs)}"
    return f"comparable with the published scores of {_where(datasets)}{_provided(score, options)}"


def ran_datasets(options: RClicksOptions) -> tuple[str, ...]:
    """The names of the datasets that were given, those of the paper first, in its order.

    >>> ran_datasets(RClicksOptions(data={"mine": "a", "DAVIS": "b", "grabcut": "c"}))
    ('grabcut', 'davis', 'mine')
    """
    given = sorted({dataset_name(name) for name in options.data} - BESIDE)
    return (*(name for name in DATASETS if name in given), *(name for name in given if name not in DATASETS))


def _instances(datasets: tuple[str, ...], instances: int) -> list[str]:
    expected = sum(INSTANCES[name] for name in datasets)
    if instances != expected:
        return [f"{instances:,} instances were scored, and the published scores are those of {expected:,}"]
    return []


def _settings(score: str, options: RClicksOptions) -> list[str]:
    if score in PEOPLES:
        absent = {PLANTED_USERS: "the people are simulated", NO_USERS: "there are no people's clicks"}
        return [absent[options.users]] if options.users in absent else []
    differs = []
    if score not in CENTRES:
        if options.clicks != CLICKS:
            differs.append(f"clicks are drawn by {options.clicks}, the published ones by {CLICKS}")
        if options.groups != GROUPS:
            differs.append(f"{options.groups} groups clicked, and {GROUPS} did in the paper")
        if options.group_rule != GROUP_RULE:
            differs.append(f"groups follow group-rule={options.group_rule}, the published ones {GROUP_RULE}")
    if score not in FIRST_ROUND and options.rounds != ROUNDS:
        differs.append(f"{options.rounds} rounds were clicked, and {ROUNDS} in the paper")
    if (not score or "nof" in score) and failure_reading(options) != "released":
        differs.append("the published numbers of failures follow nof=released")
    if (not score or score.startswith("dhh")) and halves_reading(options) != "released":
        differs.append("the published dHH follows dhh=released")
    return differs


def _where(datasets: tuple[str, ...]) -> str:
    titles = [TITLES[name] for name in datasets]
    if len(titles) == 1:
        return f"{titles[0]}, which are those of {INSTANCES[datasets[0]]:,} instances"
    return f"{', '.join(titles[:-1])} and {titles[-1]}, in the mean over datasets"


def _provided(score: str, options: RClicksOptions) -> str:
    """What no option tells."""
    words = ""
    if score in PEOPLES:
        words += "; provided that the clicks are the published clicks.csv"
    elif score not in CENTRES:
        words += "; provided that the clickability network has the authors' weights"
    if (not score or score in AREAS) and options.perfect != "released":
        words += "; a perfect mask ends the clicking here, and the authors clicked on"
    return words
