"""A finished training and its page: curves of loss and score, the recipe with its source, data and leak check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import format_duration
from hardlook.harness.sections import CurveChart, Line, Section, Table

PAGE, TABLE = "training.html", "history.parquet"
_SELECTED = {
    "few-shot": "Weights are chosen by blind accuracy; `by-iid` and `by-ood` in the folder hold those that the others "
    "choose.",
    "one-shot": "Weights are chosen by the mean IoU over training classes on images that do not train.",
    "interactive": "Weights are chosen by the mean IoU, over all clicks, on objects of images that do not train.",
    "projection": "Weights are chosen by the mean IoU over background and trained classes on images that do not train.",
}
_SCORE = "accuracy"


@dataclass(frozen=True)
class Training:
    """A finished training: its folder, what `checkpoint.json` says, and its history, one mapping per validation.

    `rank` is the number of this process among those that trained; only process 0 writes.
    """

    folder: Path
    card: Mapping[str, Any] = field(repr=False)
    history: Sequence[Mapping[str, Any]] = field(repr=False)
    rank: int = 0

    @property
    def score(self) -> float | None:
        """The validation score by which the weights were chosen; None without validation."""
        chosen = self.card["selected"]
        found: float | None = chosen["validation"].get(chosen["by"])
        return found

    @property
    def accuracy(self) -> float | None:
        """The score of a few-shot method, which is an accuracy."""
        return self.score

    def __str__(self) -> str:
        card, chosen = self.card, self.card["selected"]
        said = f"{card['method']} on {card['backbone']}, step {chosen['step']} of {card['steps']}"
        if self.score is None:
            why = card["identity"]["data"]["validation"].get("why", "none was asked for")
            return f"{said}, the last one; there was no validation: {why}"
        scores = ", ".join(f"{mode} {value:.3f}" for mode, value in chosen["validation"].items())
        return f"{said}, the best by {chosen['by']} validation {card.get('score', _SCORE)} ({scores})"


def write_training(training: Training) -> None:
    """Write the page and the history as Parquet into the training's folder."""
    import polars as pl

    import hardlook
    from hardlook.report.page import render_study

    card = training.card
    provenance = {name: card[name] for name in ("method", "backbone", "code", "identity")}
    page = render_study(
        build_sections(training),
        title=f"{card['method']} on {card['backbone']}",
        kind="Training",
        summary=f"{training}.",
        provenance={"hardlook": hardlook.__version__, **provenance},
    )
    write_atomically(training.folder / PAGE, page)
    pl.DataFrame(list(training.history), infer_schema_length=None).write_parquet(training.folder / TABLE)


def build_sections(training: Training) -> list[Section]:
    """Curves, recipe, data."""
    card = training.card
    return [
        Section("How it learnt", _describe(card), _build_curves(training)),
        Section("Every validation", "", (_build_history(training),)),
        Section("Recipe", f"Source: {card['identity']['recipe']['source']}.", (_build_recipe(card),)),
        Section("Data", "", (_build_data(card),)),
    ]


def _describe(card: Mapping[str, Any]) -> str:
    stages = " and ".join(f"{one['steps']} steps on {one['stage']} ({one['images']} images)" for one in card["stages"])
    chosen = card.get("selections", {})
    steps = {name: one["step"] for name, one in chosen.items()}
    words = [f"Trained in {stages}, {format_duration(card.get('seconds', 0))}."]
    if steps:
        picked = ", ".join(f"{name}: step {step} ({chosen[name]['accuracy']:.3f})" for name, step in steps.items())
        words.append(f"The best step by each kind of validation is {picked}.")
    else:
        words.append(f"There was no validation: {card['identity']['data']['validation'].get('why', '')}.")
    if card["validation_rule"] != "its own":
        words.append(f"Validation tasks were answered by this rule: {card['validation_rule']}.")
    return " ".join(words)


def _build_curves(training: Training) -> list[CurveChart]:
    history = training.history
    steps = [float(line["step"]) for line in history]

    def draw(title: str, key: str) -> Line | None:
        kept = [(step, line[key]) for step, line in zip(steps, history, strict=True) if key in line]
        return Line(title, [step for step, _ in kept], [value for _, value in kept]) if kept else None

    score = training.card.get("score", _SCORE)
    trained = [draw(f"training, {name.replace('_', ' ')}", name) for name in ("accuracy", "iou", "pixel_accuracy")]
    modes = dict.fromkeys(key for line in history for key in line if key.startswith("validation_"))
    lines = [*trained, *(draw(f"validation, {mode.removeprefix('validation_')}", mode) for mode in modes)]
    chosen = _SELECTED[training.card["kind"]]
    charts = [
        CurveChart(
            "Loss", "Mean since the validation before; lower is better.",
            [one for one in [draw("loss", "loss")] if one], "step", "loss",
        ),
        CurveChart(
            score[0].upper() + score[1:], f"Higher is better. {chosen}", [one for one in lines if one], "step", score
        ),
        CurveChart("Learning rate", "At each validation.", [one for one in [draw("rate", "lr")] if one], "step", "lr"),
    ]  # fmt: skip
    return [chart for chart in charts if chart.lines]


def _build_history(training: Training) -> Table:
    names = list(dict.fromkeys(key for line in training.history for key in line))
    best = training.card["selected"]["step"]
    rows = [
        (*(_show(name, line.get(name)) for name in names), "kept" if line["step"] == best else "")
        for line in training.history
    ]
    return Table("History", "One row per validation.", (*(name.replace("_", " ") for name in names), ""), rows, 4)


def _show(name: str, value: Any) -> Any:
    """A cell: rates have too many zeros for the decimals of the table."""
    return f"{value:.3g}" if name == "lr" else value


def _build_recipe(card: Mapping[str, Any]) -> Table:
    recipe = dict(card["identity"]["recipe"])
    changed = set(recipe.pop("changed"))
    stages = recipe.pop("stages", None) or [recipe.pop("stage")]
    rows: list[tuple[str | float | int | None, ...]] = []
    for stage in stages:
        settings = {**{key: value for key, value in stage.items() if key != "schedule"}, **stage["schedule"]}
        settings["schedule"] = settings.pop("kind")
        for name, value in settings.items():
            was = "changed" if {name, f"{stage['stage']}.{name}"} & changed else ""
            rows.append((stage["stage"], name, str(value), was))
    shown = [name for name in recipe if name not in ("method", "network", "backbone", "source", "views")]
    rows += [("all", name, str(recipe[name]), "changed" if name in changed else "") for name in shown]
    return Table("Settings", "What was changed by options is marked.", ("stage", "setting", "value", ""), rows)


def _build_data(card: Mapping[str, Any]) -> Table:
    data, rows = card["identity"]["data"], []
    for name, value in data.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        rows += [
            (f"{name} {key}".strip().replace("_", " "), ", ".join(map(str, one)) if isinstance(one, list) else str(one))
            for key, one in inner
        ]
    apart = "Classes of the splits differ, or the training would not have started."
    return Table("Images", apart if card["kind"] == "few-shot" else "", ("what", "value"), rows)
