"""The paper's own numbers as the bias studies show them beside ours."""

from __future__ import annotations

from hardlook.benchmarks.toss.published_biases import CLASSES, MUTUAL_INFORMATION, REMEDIES
from hardlook.bias.estimate_words import said
from hardlook.bias.information import ATTRIBUTES
from hardlook.bias.negatives import Association, associate
from hardlook.contract.sections import Dot, DotChart, ScatterChart, Section, Spot

NAMES = {"none": "alone", "leave-out": "leave-out", "sgtss": "SGTSS", "sssi": "SSSI"}


def published_information() -> dict[str, float]:
    """Mutual information in nats of each attribute, by the words that `bias.information` uses.

    >>> published_information()["salience"]
    0.21
    """
    return {name: MUTUAL_INFORMATION[column].printed for column, name in ATTRIBUTES.items()}


def remedies_section(remedy: str) -> Section:
    """What the paper gained by its remedies; `remedy`, a key of `NAMES`, is the one in the words."""
    rows = [Dot(name, REMEDIES[method][key].mean, group=method) for method in REMEDIES for key, name in NAMES.items()]
    gains = ", ".join(
        f"{method} {100 * values['none'].mean:.2f} to {100 * values[remedy].mean:.2f}"
        for method, values in REMEDIES.items()
    )
    chart = DotChart(
        "Published remedies, each on its own",
        "Mean IoU over the four folds of PASCAL-5i, as printed; the paper gives no intervals. Leave-out is an oracle.",
        rows,
        axis="mean IoU",
    )
    words = f"The published effect of {NAMES[remedy]}, in percent of mean IoU: {gains}."
    if remedy != "sssi":
        words += " These networks were trained again on the shorter list; a list alone changes nothing."
    return Section("What it did in the paper", words, (chart,))


def published_associations(seed: int = 0) -> dict[str, Association]:
    """How the published distractor share goes with the base IoU and with what leave-out training gains."""
    measured = {
        "base": [one.base for one in CLASSES],
        "base_gain": [one.base_leave_out - one.base for one in CLASSES],
        "rpmm_gain": [one.rpmm_leave_out - one.rpmm for one in CLASSES],
    }
    shares = [one.distractors for one in CLASSES]
    return {name: associate(shares, values, seed=seed, key=f"published {name}") for name, values in measured.items()}


def published_scatters(found: dict[str, Association]) -> tuple[ScatterChart, ScatterChart]:
    """The published classes: share as background against IoU, and against the gain of leave-out training."""
    base, gain, rpmm = (found[name] for name in ("base", "base_gain", "rpmm_gain"))
    x_axis = "published share as background"
    first = ScatterChart(
        "Published: share as background against one-shot IoU",
        f"The paper's own base network. Spearman {said(base.spearman)}, Pearson {said(base.pearson)}; the intervals "
        "resample classes.",
        [Spot(one.distractors, one.base, one.name, f"fold {one.fold}") for one in CLASSES],
        x_axis=x_axis,
        y_axis="published one-shot IoU",
    )
    second = ScatterChart(
        "Published: share as background against what leave-out training gains",
        f"Base: Spearman {said(gain.spearman)}, Pearson {said(gain.pearson)}. RPMM: Spearman {said(rpmm.spearman)}, "
        f"Pearson {said(rpmm.pearson)}. One class, person, lies far out on both axes and carries Pearson's value.",
        [
            *(Spot(one.distractors, one.base_leave_out - one.base, one.name, "Base") for one in CLASSES),
            *(Spot(one.distractors, one.rpmm_leave_out - one.rpmm, one.name, "RPMM") for one in CLASSES),
        ],
        x_axis=x_axis,
        y_axis="leave-out IoU minus base IoU",
    )
    return first, second
