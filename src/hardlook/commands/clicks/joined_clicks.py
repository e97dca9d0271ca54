"""A file of clicks joined with the instances it was made on: what can be used, and what is left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.commands.clicks.clicked_sources import StoredSource
from hardlook.contract.scorecard import LeftOut
from hardlook.data.full_stem import instance_stem
from hardlook.data.object_instances import ObjectInstance, dataset_name
from hardlook.errors import DataError
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.data.click_table import ClickTable, StemClicks
    from hardlook.data.previous_masks import PreviousMasks

LEAST = 2
SHOWN = 5


@dataclass(frozen=True)
class _Kind:
    """What is left out, a noun and what follows it, and why."""

    noun: str
    more: str
    why: str

    def counted(self, count: int) -> str:
        return f"{counted(count, self.noun)} {self.more}"


NO_INSTANCE = _Kind("stem", "without an instance", "no object of that name is in the data given")
FEW = _Kind("stem", f"with fewer than {LEAST} clicks", "no test compares a single click")
NO_MASK = _Kind("stem", "of later rounds", "their previous masks are not given or not there (--previous-masks)")
NO_DATA = _Kind("dataset", "of the file", "not given as --data")
TWINS = _Kind("stem", "of previews in several datasets", "it is not known which object was clicked")


@dataclass(frozen=True)
class JoinedClicks:
    """Sources in the order of datasets and stems, and what was left out."""

    sources: tuple[StoredSource, ...]
    left_out: tuple[LeftOut, ...]


class _Notes:
    def __init__(self) -> None:
        self._names: dict[_Kind, list[str]] = {}

    def add(self, kind: _Kind, name: str) -> None:
        self._names.setdefault(kind, []).append(name)

    def in_words(self) -> str:
        return "; ".join(kind.counted(len(names)) for kind, names in self._names.items())

    def listed(self) -> tuple[LeftOut, ...]:
        return tuple(
            LeftOut(f"{kind.noun}s {kind.more}", len(names), kind.why, tuple(names[:SHOWN]))
            for kind, names in self._names.items()
        )


def join_clicks(
    table: ClickTable,
    instances: Sequence[ObjectInstance],
    previous: PreviousMasks | None,
    *,
    file: Path,
    least: int = LEAST,
) -> JoinedClicks:
    """The stems of the file that lie on an instance; none at all is a `DataError`."""
    notes = _Notes()
    known = {(one.dataset, one.full_stem): one for one in instances}
    here = sorted({one.dataset for one in instances})
    sources: list[StoredSource] = []
    for dataset in here:
        stems = table.for_dataset(dataset).by_full_stem()
        unmasked = _without_mask(stems, previous, dataset)
        for stem, clicks in stems.items():
            instance = known.get((dataset, instance_stem(clicks.image_stem, clicks.object_stem)))
            if instance is None:
                notes.add(NO_INSTANCE, f"{dataset}/{stem}")
            elif len(clicks.points) < least:
                notes.add(FEW, f"{dataset}/{stem}")
            elif stem in unmasked:
                notes.add(NO_MASK, f"{dataset}/{stem}")
            else:
                sources.append(StoredSource(instance, clicks, previous if clicks.click_type != "first" else None))
    for name in table.datasets():
        if dataset_name(name) not in here:
            notes.add(NO_DATA, name)
    if not sources:
        left = notes.in_words() or "the file is empty"
        raise DataError(
            f"no stem of the file can be used: {left}",
            file=file,
            remedy=f"the file's datasets are {', '.join(table.datasets()) or 'none'}, those given {', '.join(here)}; "
            "stems are names of images",
        )
    moved = (LeftOut("clicks outside of their image", table.clipped, "moved to its edge and kept"),)
    return JoinedClicks(tuple(sources), (*notes.listed(), *(moved if table.clipped else ())))


def join_previews(table: ClickTable, instances: Sequence[ObjectInstance], *, file: Path) -> JoinedClicks:
    """The first-round stems of previews.csv, whose `dataset` is a display mode, found by their name alone."""
    notes = _Notes()
    known: dict[str, list[ObjectInstance]] = {}
    for one in instances:
        known.setdefault(one.full_stem, []).append(one)
    sources: list[StoredSource] = []
    for mode in table.datasets():
        for stem, clicks in table.for_dataset(mode).first().by_full_stem().items():
            found = known.get(stem, [])
            if len(found) == 1 and len(clicks.points) >= LEAST:
                sources.append(StoredSource(found[0], clicks, display_mode=dataset_name(mode)))
            else:
                notes.add(FEW if len(found) == 1 else TWINS if found else NO_INSTANCE, f"{mode}/{stem}")
    if not sources:
        raise DataError(
            "no stem of the previews is an instance of the data",
            file=file,
            remedy="give the dataset that the previews show as --data",
        )
    return JoinedClicks(tuple(sources), notes.listed())


def unmasked_in_words(notes: Iterable[LeftOut]) -> list[str]:
    """A sentence where stems of later rounds are left out for want of a previous mask, else none.

    >>> unmasked_in_words([LeftOut("stems of later rounds", 1, NO_MASK.why)])
    ['1 stem of later rounds was left out: the masks before it are not given or not there (--previous-masks).']
    """
    count = sum(note.count for note in notes if note.why == NO_MASK.why)
    if not count:
        return []
    was, them = ("was", "it") if count == 1 else ("were", "them")
    return [
        f"{NO_MASK.counted(count)} {was} left out: the masks before {them} are not given or not there "
        "(--previous-masks)."
    ]


def text_mode(modes: Iterable[str], *, file: Path) -> str:
    """The display mode that the others are compared with: the one that shows no mask, only words.

    >>> text_mode(["object-cutout", "text-description"], file=Path("previews.csv"))
    'text-description'
    """
    found = sorted({mode for mode in modes if "text" in mode})
    if len(found) != 1:
        raise DataError(
            f"expected one display mode with text in its name, got {', '.join(sorted(set(modes)))}",
            file=file,
            remedy="the modes stand in the column dataset",
        )
    return found[0]


def _without_mask(stems: Mapping[str, StemClicks], previous: PreviousMasks | None, dataset: str) -> set[str]:
    later = [stem for stem, clicks in stems.items() if clicks.click_type != "first"]
    if previous is None:
        return set(later)
    return set(previous.missing(later, dataset)) if later else set()
