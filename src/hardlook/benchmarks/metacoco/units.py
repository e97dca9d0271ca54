"""MetaCoCo's units: tasks, by mode, ways, shots and number."""

from __future__ import annotations

from dataclasses import dataclass

from hardlook.benchmarks.metacoco.image_source import ImageSource
from hardlook.benchmarks.metacoco.images import eligibility_of, open_images, source_of
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.contract.benchmark import Unit, UnitList
from hardlook.contract.scorecard import LeftOut


@dataclass(frozen=True)
class TaskSettings:
    """What all tasks of a run share."""

    source: ImageSource
    modes: tuple[str, ...]
    queries: int
    blind_supports: str
    support_contexts: tuple[str, ...]
    encoder: str
    encoder_args: str
    encoder_asked: bool
    keep_predictions: bool


@dataclass(frozen=True, slots=True)
class TaskUnit:
    """One task: everything else follows from these."""

    settings: TaskSettings
    mode: str
    ways: int
    shots: int
    index: int
    repeat: int


def list_tasks(options: MetaCocoOptions) -> UnitList:
    """Every task of every mode, ways and shots; classes that cannot take part are named."""
    shots, queries, tasks, repeats = options.resolved()
    source = source_of(options)
    settings = TaskSettings(
        source,
        options.modes,
        queries,
        options.blind_supports,
        options.support_contexts,
        options.encoder_name(),
        options.encoder_args,
        options.encoder_asked,
        options.keep_predictions,
    )
    units, left_out = [], list(open_images(source).left_out)
    for ways in options.ways:
        for shot in shots:
            eligible = eligibility_of(
                source, options.modes, ways, shot, queries, options.blind_supports, options.support_contexts
            )
            eligible.require()
            left_out += _left_out(eligible.left_out, ways, shot)
            units += [
                Unit(
                    f"{ways}way-{shot}shot-{mode}-{index:05d}",
                    TaskUnit(settings, mode, ways, shot, index, index // tasks),
                    group=f"{ways}-{shot}-{mode}",
                )
                for mode in options.modes
                for index in range(tasks * repeats)
            ]
    return UnitList(units, left_out)


def _left_out(reasons: tuple[tuple[str, str, str], ...], ways: int, shots: int) -> list[LeftOut]:
    """One note for each mode and reason, with all classes it concerns."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for mode, concept, why in reasons:
        grouped.setdefault((mode, why), []).append(concept)
    return [
        LeftOut(f"classes in {mode} tasks, {ways}-way {shots}-shot", len(names), why, tuple(names))
        for (mode, why), names in grouped.items()
    ]
