"""The scores of RClicks in words."""

from __future__ import annotations

from hardlook.contract.benchmark import ScoreMeaning


def _lower(name: str, title: str, meaning: str, headline: bool = False) -> ScoreMeaning:
    return ScoreMeaning(name, title, meaning, higher_is_better=False, headline=headline)


def _higher(name: str, title: str, meaning: str, headline: bool = False) -> ScoreMeaning:
    return ScoreMeaning(name, title, meaning, headline=headline)


SCORES = (
    _lower("noc90", "NoC@90, sampled clicks", "clicks to 90 % IoU, mean over the clicking groups", True),
    _lower(
        "noc90-base", "NoC@90, centre clicks", "clicks to 90 % IoU when every click is the centre of the error", True
    ),
    _lower("dsb", "dSB", "how many more clicks the groups need than the centre rule, in % of it", True),
    _lower("dgr", "dGR", "how many more clicks the least probable group needs than the most probable one, in %", True),
    _lower(
        "nsr",
        "NSR of IoU-AuC",
        "NSR@20 when there are 20 rounds: spread of IoU-AuC between groups over its mean, in %",
        True,
    ),
    _lower("dhh", "dHH", "how many more clicks the improbable half needs than the probable one, in %"),
    _lower("noc90-std", "NoC@90, spread", "standard deviation between groups, mean over instances"),
    _lower("noc85", "NoC@85, sampled clicks", "clicks to 85 % IoU, mean over the clicking groups"),
    _lower("noc85-base", "NoC@85, centre clicks", "clicks to 85 % IoU when every click is the centre of the error"),
    _lower("noc95", "NoC@95, sampled clicks", "clicks to 95 % IoU, mean over the clicking groups"),
    _lower("noc95-base", "NoC@95, centre clicks", "clicks to 95 % IoU when every click is the centre of the error"),
    _lower("nof", "NoF, sampled clicks", "instances that fail to reach 90 %, mean over the clicking groups"),
    _lower("nof-std", "NoF, spread", "standard deviation of that number between groups"),
    _lower("nof-base", "NoF, centre clicks", "instances that fail to reach 90 % by clicks at the centre of the error"),
    _lower("dsb-nof", "dSB of NoF", "failures of the groups less those of the centre rule"),
    _lower("dgr-nof", "dGR of NoF", "failures of the least probable group less those of the most probable one"),
    _lower("dhh-nof", "dHH of NoF", "failures of the improbable half less those of the probable one"),
    _higher("auc", "IoU-AuC, sampled clicks", "area under IoU against clicks, mean over the clicking groups, x 100"),
    _lower("auc-std", "IoU-AuC, spread", "standard deviation between groups, mean over instances, x 100"),
    _higher("auc-base", "IoU-AuC, centre clicks", "area under IoU against clicks at the centre of the error, x 100"),
    _higher("dsb-iou", "dSB of IoU-AuC", "IoU-AuC of the groups less that of the centre rule, x 100"),
    _higher("dgr-iou", "dGR of IoU-AuC", "IoU-AuC of the least probable group less the most probable one's, x 100"),
    _higher("dhh-iou", "dHH of IoU-AuC", "IoU-AuC of the improbable half less the probable one's, x 100"),
    _higher("sample-iou1", "Sample@1", "IoU after one click of the click model, mean over groups, x 100"),
    _lower("sample-iou1-std", "Sample@1, spread", "standard deviation between groups, mean over instances, x 100"),
    _higher("base-iou1", "Base@1", "IoU after one centre click, x 100"),
    _higher("user-iou1", "User@1", "IoU after one click by people, x 100"),
    _lower("user-iou1-std", "User@1, spread", "standard deviation between people, mean over instances, x 100"),
    _lower("nsr1", "NSR@1 of people", "spread of IoU between people's first clicks over its mean, in %"),
)
