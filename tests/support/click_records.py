"""Records of RClicks made from IoUs that a test states, in per cent."""

from hardlook.rclicks.evaluation import SCHEMA

GROUPS = tuple(f"G{number}" for number in range(1, 11))


def reaching(clicks, rounds=20, before=50, after=90):
    """IoUs in per cent that first reach 90 at that click."""
    return [before] * (clicks - 1) + [after] * (rounds - clicks + 1)


def record(unit, base, groups, *, dataset="grabcut", image="", size="medium", people=(), courses=None):
    """One instance of 100 pixels; `base` and each of `groups` are IoUs in per cent, a round each."""
    courses = courses or ("base", *GROUPS[: len(groups)])
    trajectories = [base, *groups]
    rounds = len(base)
    cells = len(trajectories) * rounds
    return {
        "unit": f"{dataset}/{unit}",
        "dataset": dataset,
        "size": size,
        "image": image or unit,
        "width": 50,
        "height": 40,
        "pixels": 100,
        "courses": ",".join(courses),
        "rounds": rounds,
        "x": [1] * cells,
        "y": [1] * cells,
        "positive": [1] * cells,
        "intersection": [value for trajectory in trajectories for value in trajectory],
        "union": [100] * cells,
        "fallbacks": 0,
        "people": "people" if people else "",
        "user_x": [2.0] * len(people),
        "user_y": [2.0] * len(people),
        "user_mobile": [0] * len(people),
        "user_intersection": list(people),
        "user_union": [100] * len(people),
        "opened": 1,
        "conduct": "",
        "clicks": "distance",
        "mean_mask": b"",
        "last_masks": "[]",
    }


def frame(records):
    return SCHEMA.frame(records).select(SCHEMA.light)
