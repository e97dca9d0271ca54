"""What `hardlook data inspect` finds out: sizes, concepts in two splits, duplicates, and what can form tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.benchmarks.metacoco.published_concepts import PublishedComparison
    from hardlook.data.concept_context import ConceptContextDataset, Duplicates

EVERY_MODE = "all of these"


@dataclass(frozen=True)
class TaskSettings:
    """The tasks that are asked for: every number of ways with every number of shots, in every mode."""

    modes: tuple[str, ...]
    ways: tuple[int, ...]
    shots: tuple[int, ...]
    queries: int


@dataclass(frozen=True)
class TaskFinding:
    """How many of a split's classes can take part in tasks of one kind, and why the others cannot: (concept, why).

    `mode` is `EVERY_MODE` for classes that take part in all modes of the run with the same supports.
    """

    split: str | None
    mode: str
    ways: int
    shots: int
    eligible: int
    classes: int
    left_out: tuple[tuple[str, str], ...]

    @property
    def possible(self) -> bool:
        """Whether there are enough classes for a task."""
        return self.eligible >= self.ways


@dataclass(frozen=True)
class Inspection:
    """All findings; `comparison` is None where nothing was compared."""

    dataset: ConceptContextDataset
    settings: TaskSettings
    duplicates: Duplicates
    shared_concepts: dict[str, tuple[str, ...]]
    tasks: tuple[TaskFinding, ...]
    comparison: PublishedComparison | None

    @property
    def parts(self) -> tuple[str | None, ...]:
        """The splits, or None for the whole dataset where there are none."""
        return self.dataset.splits or (None,)


def numbers(text: str, flag: str) -> tuple[int, ...]:
    """Positive whole numbers between commas, each once.

    >>> numbers("5,10", "--ways")
    (5, 10)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) for word in words):
        raise OptionError(f"{flag} {text}: expected whole numbers from 1", remedy=f"for example {flag} 5,10")
    return tuple(dict.fromkeys(int(word) for word in words))


def inspect_dataset(dataset: ConceptContextDataset, settings: TaskSettings, *, against_published: bool) -> Inspection:
    """Look at everything once; file contents are hashed, images are not decoded."""
    from hardlook.benchmarks.metacoco.published_concepts import compare_counts

    splits: dict[str, set[str]] = {}
    for row in dataset.rows:
        splits.setdefault(row.concept, set()).update([row.split] if row.split else [])
    parts = dataset.splits or (None,)
    return Inspection(
        dataset,
        settings,
        dataset.duplicates(),
        dataset.shared_concepts(),
        tuple(finding for part in parts for finding in _tasks(dataset, part, settings)),
        compare_counts(dataset.cells(), splits) if against_published else None,
    )


def _tasks(dataset: ConceptContextDataset, split: str | None, settings: TaskSettings) -> list[TaskFinding]:
    from hardlook.tasks.eligibility import eligible_classes
    from hardlook.tasks.image_table import ImageTable

    arrays = dataset.image_table(split)
    table = ImageTable(arrays.concepts, arrays.contexts, arrays.concept, arrays.context, arrays.content)
    asked: list[tuple[str, Sequence[str]]] = [(mode, (mode,)) for mode in settings.modes]
    if len(settings.modes) > 1:
        asked.append((EVERY_MODE, settings.modes))
    findings = []
    for ways in settings.ways:
        for shots in settings.shots:
            for name, modes in asked:
                found = eligible_classes(table, modes, ways, shots, settings.queries)
                why: dict[str, str] = {}
                for mode, concept, reason in found.left_out:
                    said = reason if len(modes) == 1 or mode == "all" else f"{mode}: {reason}"
                    why[concept] = f"{why[concept]}; {said}" if concept in why else said
                left_out = tuple(sorted(why.items()))
                eligible, classes = len(found.classes), len(table.concepts)
                findings.append(TaskFinding(split, name, ways, shots, eligible, classes, left_out))
    return findings
