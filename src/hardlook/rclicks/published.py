"""Published numbers of RClicks, and which scores of a run are comparable with them.

All tables of "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (NeurIPS 2024) are in
`published/` as printed. Tables 9 (NoC), 10 (NoF), 11 (IoU-AuC) and 12 (one click, NSR) score 33 checkpoints of 11
methods on five datasets: clicks, instances, and the rest in percent. NoC is printed at 90 % alone. Means over datasets
are ours: Table 4, which speaks of them, prints DAVIS, COCO-MVal and TETRIS one by one.

What does not fit is kept as printed. Table 4 calls the small, base+ and large Hiera of both SAM 2 the next size up
(B+, L and H); checkpoints have the sizes of their names. The paper divides WD by width and height in its words and by
the box's diagonal in its numbers. It calls its network five times as fast as SAM, which Table 5 makes 6.5.

>>> mobile = find_checkpoint("mobile_sam")
>>> mobile.label, mobile.scores["grabcut"]["noc90-base"], round(mobile.mean()["dgr"], 3)
('MobileSAM ViT-Tiny (SA-1B)', 1.7, 15.48)
>>> len(list_checkpoints()), len(list_results())
(33, 198)
>>> published_click_models()["tetris"]["clickability"]["ks"]
0.55
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from hardlook.data.click_names import normalize_dataset_name
from hardlook.harness.published import Published, PublishedResult, PublishedTable, read_published
from hardlook.harness.scorecard import Scorecard
from hardlook.rclicks.options import NO_USERS, PLANTED_USERS, RClicksOptions, failure_reading, halves_reading

# Instances of each dataset, all of which the published scores count.
INSTANCES = {"grabcut": 50, "berkeley": 100, "davis": 345, "coco-mval": 800, "tetris": 2531}
DATASETS = tuple(INSTANCES)
TITLES = {"grabcut": "GrabCut", "berkeley": "Berkeley", "davis": "DAVIS", "coco-mval": "COCO-MVal", "tetris": "TETRIS"}
# Table and column of each score.
_PRINTED_IN = {
    score: (table, column)
    for table, columns, scores in (
        ("table-9", "Sample|std|Base|dSB %|dGR %|dHH %", "noc90|noc90-std|noc90-base|dsb|dgr|dhh"),
        ("table-10", "Sample|std|Base|dSB|dGR|dHH", "nof|nof-std|nof-base|dsb-nof|dgr-nof|dhh-nof"),
        ("table-11", "Sample|std|Base|dSB|dGR|dHH", "auc|auc-std|auc-base|dsb-iou|dgr-iou|dhh-iou"),
        ("table-12", "NSR@20|User@1|std of User@1|Sample@1", "nsr|user-iou1|user-iou1-std|sample-iou1"),
        ("table-12", "std of Sample@1|Base@1|NSR@1", "sample-iou1-std|base-iou1|nsr1"),
    )
    for column, score in zip(columns.split("|"), scores.split("|"), strict=True)
}
SCORE_NAMES = tuple(_PRINTED_IN)
# Our names of the paper's click models. Its saliency is a fixation network, on the object's crop as it is (SI) or with
# grey around the object (SM).
CLICK_MODEL_NAMES = {
    "UD": "uniform",
    "DT": "distance",
    "SI": "saliency grey=false",
    "SM": "saliency",
    "Ours": "clickability",
}
# The networks of Table 5 that are in Tables 9 to 12, by method and backbone.
_COSTED = {
    ("RITM", "HR32-IT"): "RITM HRNet-32",
    ("SimpleClick", "ViT-H"): "SimpleClick ViT-H",
    ("SAM", "ViT-H"): "SAM ViT-H",
}
LATENCY, CLICK_TIME, OPENING_TIME = "first mask, ms", "click, ms", "opening, ms"
"""Columns of times: opening an image and its first click together, as in Table 5, and both apart."""

COST_COLUMNS = {LATENCY: "ms", "GB": "GB", "M parameters": "M parameters", "GFLOPs": "GFLOPs"}
"""Columns of costs, and where they are in Table 5."""

CLICK_METRICS = ("ks", "pl1", "wd", "nss", "pde")
_NOTE = (
    "comparable with all {instances} instances of {where}, 20 rounds and ten groups of the threshold rule, drawn from "
    "the paper's own clickability network; scores of the centre rule need no click model"
)


def published_numbers() -> Published:
    """Every printed cell."""
    return read_published("hardlook.rclicks")


def list_tables() -> tuple[PublishedTable, ...]:
    """Tables 1 to 12 as printed; Tables 9 to 12 with a row per checkpoint and dataset.

    >>> [(table.name, len(table.rows)) for table in list_tables()][3:6]
    [('table-4', 33), ('table-5', 4), ('table-6', 25)]
    """
    return tuple(published_numbers().tables.values())


@dataclass(frozen=True)
class Checkpoint:
    """A published checkpoint: the authors' name for it, what it is, and its scores by dataset and name."""

    name: str
    method: str
    backbone: str
    trained_on: str
    scores: Mapping[str, Mapping[str, float]]

    @property
    def label(self) -> str:
        """Method, backbone and training data."""
        return f"{self.method} {self.backbone} ({self.trained_on})"

    @property
    def costs(self) -> dict[str, float]:
        """What Table 5 prints of its network, by `COST_COLUMNS`; empty for all but three networks.

        >>> find_checkpoint("sam_vit_h_4b8939").costs
        {'first mask, ms': 150.0, 'GB': 5.745, 'M parameters': 641.09, 'GFLOPs': 5473.0}
        """
        row = _COSTED.get((self.method, self.backbone))
        if row is None:
            return {}
        return {name: published_numbers().number("table-5", row, column) for name, column in COST_COLUMNS.items()}

    def mean(self, datasets: Iterable[str] = DATASETS) -> dict[str, float]:
        """Every score's plain mean over these datasets, each of which weighs alike."""
        chosen = [self.scores[dataset] for dataset in datasets]
        if not chosen:
            raise ValueError(f"expected at least one of {', '.join(DATASETS)}, got no dataset")
        return {name: sum(scores[name] for scores in chosen) / len(chosen) for name in SCORE_NAMES}


@cache
def list_checkpoints() -> tuple[Checkpoint, ...]:
    """The published checkpoints in the order of the paper."""
    numbers = published_numbers()
    names = dict.fromkeys(row.rpartition("|")[0] for row in numbers.rows("table-9"))
    # Only Table 4 prints the method; it has the checkpoints in the same order.
    methods = [row.partition("|")[0] for row in numbers.rows("table-4")]
    checkpoints = []
    for row, method in zip(names, methods, strict=True):
        name, backbone, trained_on = row.split("|")
        scores = {
            dataset: {
                score: numbers.number(table, f"{row}|{title}", column) for score, (table, column) in _PRINTED_IN.items()
            }
            for dataset, title in TITLES.items()
        }
        checkpoints.append(Checkpoint(name, method, backbone, trained_on, scores))
    return tuple(checkpoints)


def find_checkpoint(name: str) -> Checkpoint | None:
    """The checkpoint of that name, as the authors spell it; None where there is none."""
    return next((one for one in list_checkpoints() if one.name == name), None)


def published_click_models() -> dict[str, dict[str, dict[str, float]]]:
    """KS, PL1, WD, NSS and PDE of Table 6 by dataset and click model; of TETRIS the 500 images of its validation part.

    KS is the share of tests with p > .05; PL1 and WD are relative to the object's size, lower is better; NSS and PDE,
    higher is better. Table 3 repeats four of the rows for TETRIS.
    """
    titles = {**TITLES, "tetris": "TETRIS (val)"}
    numbers = published_numbers()
    return {
        dataset: {
            model: {metric: numbers.number("table-6", f"{title}|{short}", metric.upper()) for metric in CLICK_METRICS}
            for short, model in CLICK_MODEL_NAMES.items()
        }
        for dataset, title in titles.items()
    }


@cache
def list_results() -> tuple[PublishedResult, ...]:
    """The rows of leaderboards: each checkpoint's mean over the five datasets, then each dataset by itself."""
    everywhere = _NOTE.format(instances=f"{sum(INSTANCES.values()):,}", where="the five datasets")
    everywhere += "; our mean of the five, for the paper prints none"
    source = "Tables 9 to 12"
    rows = [
        PublishedResult(one.label, f"{source}, mean of five", one.mean(), everywhere, costs=one.costs)
        for one in list_checkpoints()
    ]
    for dataset, title in TITLES.items():
        note = _NOTE.format(instances=f"{INSTANCES[dataset]:,}", where=title)
        rows += [
            PublishedResult(one.label, f"{source}, {title}", one.scores[dataset], note, {"dataset": dataset}, one.costs)
            for one in list_checkpoints()
        ]
    return tuple(rows)


def published_slice(scorecard: Scorecard, options: RClicksOptions) -> dict[str, str]:
    """The slice that scores over all units belong to: the datasets that ran, or none for all five.

    >>> from hardlook.harness.scorecard import Score
    >>> scorecard = Scorecard("rclicks", "1", "", (Score("noc90", 2.0, 50, slice={"dataset": "grabcut"}),))
    >>> published_slice(scorecard, RClicksOptions())
    {'dataset': 'grabcut'}
    """
    ran = {score.slice["dataset"] for score in scorecard.scores if set(score.slice) == {"dataset"}}
    if ran == set(DATASETS):
        return {}
    return {"dataset": ", ".join(sorted(ran))} if ran else {}


# The paper's settings.
_ROUNDS, _GROUPS, _GROUP_RULE, _CLICKS = 20, 10, "threshold", "clickability"
_USER_SCORES = ("user-iou1", "user-iou1-std", "nsr1")
# Neither the click model nor the groups change these.
_CENTRE_SCORES = ("noc90-base", "nof-base", "auc-base", "base-iou1")
# These need the first round only.
_FIRST_ROUND_SCORES = ("base-iou1", "sample-iou1", "sample-iou1-std", *_USER_SCORES)
# Clicking on after a perfect mask may lower these.
_AREA_SCORES = ("auc", "auc-std", "auc-base", "dsb-iou", "dgr-iou", "dhh-iou", "nsr")
# Folders given as --data that accompany a dataset.
_AUXILIARY = {"images", "segments"}


def describe_comparability(dataset: str, instances: int, options: RClicksOptions, score: str = "") -> str:
    """Whether scores of a dataset, or of all that ran (""), are comparable with the paper's, in one sentence.

    `instances` is how many were scored. Without the name of a score every setting counts; with it only those that the
    score depends on, so that the centre rule may be comparable where sampled clicks are not.

    >>> describe_comparability("", 48, RClicksOptions())
    'not comparable: the images are of the planted world'
    >>> grabcut = RClicksOptions(data={"grabcut": "GrabCut"})
    >>> describe_comparability("grabcut", 50, grabcut, "noc90")
    'not comparable: clicks are drawn by distance, the published ones by clickability'
    >>> describe_comparability("grabcut", 50, grabcut, "noc90-base")
    'comparable with the published scores of GrabCut, which are those of 50 instances'
    """
    if options.planted:
        return "not comparable: the images are of the planted world"
    if score and score not in SCORE_NAMES:
        return "not in the paper: its tables have no such score"
    datasets = (dataset,) if dataset else datasets_of_run(options)
    if others := [name for name in datasets if name not in INSTANCES]:
        return f"not comparable: the paper has no scores of {', '.join(others)}"
    differs = _differing_settings(score, options)
    expected = sum(INSTANCES[name] for name in datasets)
    if instances != expected:
        differs.insert(0, f"{instances:,} instances were scored, and the published scores are those of {expected:,}")
    if differs:
        return f"not comparable: {'; '.join(differs)}"
    titles = [TITLES[name] for name in datasets]
    where = f"{titles[0]}, which are those of {expected:,} instances"
    if len(titles) > 1:
        where = f"{', '.join(titles[:-1])} and {titles[-1]}, in the mean over datasets"
    return f"comparable with the published scores of {where}{_conditions(score, options)}"


def datasets_of_run(options: RClicksOptions) -> tuple[str, ...]:
    """The names of the datasets that were given, those of the paper first, in its order.

    >>> datasets_of_run(RClicksOptions(data={"mine": "a", "DAVIS": "b", "grabcut": "c"}))
    ('grabcut', 'davis', 'mine')
    """
    given = sorted({normalize_dataset_name(name) for name in options.data} - _AUXILIARY)
    return (*(name for name in DATASETS if name in given), *(name for name in given if name not in DATASETS))


def _differing_settings(score: str, options: RClicksOptions) -> list[str]:
    if score in _USER_SCORES:
        absent = {PLANTED_USERS: "the people are simulated", NO_USERS: "there are no people's clicks"}
        return [absent[options.users]] if options.users in absent else []
    differs = ["the first prompt is a box, and was a click in the paper"] if options.first_prompt == "box" else []
    if score not in _CENTRE_SCORES:
        if options.clicks != _CLICKS:
            differs.append(f"clicks are drawn by {options.clicks}, the published ones by {_CLICKS}")
        if options.groups != _GROUPS:
            differs.append(f"{options.groups} groups clicked, and {_GROUPS} did in the paper")
        if options.group_rule != _GROUP_RULE:
            differs.append(f"groups follow group-rule={options.group_rule}, the published ones {_GROUP_RULE}")
    if score not in _FIRST_ROUND_SCORES and options.rounds != _ROUNDS:
        differs.append(f"{options.rounds} rounds were clicked, and {_ROUNDS} in the paper")
    if (not score or "nof" in score) and failure_reading(options) != "released":
        differs.append("the published numbers of failures follow nof=released")
    if (not score or score.startswith("dhh")) and halves_reading(options) != "released":
        differs.append("the published dHH follows dhh=released")
    return differs


def _conditions(score: str, options: RClicksOptions) -> str:
    """What comparability depends on beyond the options."""
    conditions = ""
    if score in _USER_SCORES:
        conditions += "; provided that the clicks are the published clicks.csv"
    elif score not in _CENTRE_SCORES:
        conditions += "; provided that the clickability network has the authors' weights"
    if (not score or score in _AREA_SCORES) and options.perfect != "released":
        conditions += "; a perfect mask ends the clicking here, and the authors clicked on"
    return conditions
