"""People's clicks from `clicks.csv` and `previews.csv`, joined with the objects that they were made on.

What cannot be used is left out, and counted with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.data.click_names import format_instance_stem
from hardlook.data.object_instances import ObjectInstance, normalize_dataset_name, scale_points
from hardlook.data.previous_masks import PreviousMasks, compute_error_mask
from hardlook.errors import DataError, OptionError
from hardlook.harness.scorecard import LeftOut
from hardlook.metrics.click_sets import WassersteinReading
from hardlook.metrics.regions import find_bounding_box
from hardlook.rclicks.user_clicks.comparison import ClickSetComparison, ClickSets, compare_click_sets
from hardlook.rclicks.user_clicks.stems import ClickedSource, ClickedStem, StemWithDevices
from hardlook.report.formatting import format_count

if TYPE_CHECKING:
    from hardlook.data.click_file import ClickTable, StemClicks

FEWEST_CLICKS = 2

SHOWN = 5  # examples of what is left out

EXIT_SOME_UNREAD = 3

# Why something is left out, by what it is.
_NO_INSTANCE = ("stems without an instance", "no object of that name is in the data given")
_FEW_CLICKS = (f"stems with fewer than {FEWEST_CLICKS} clicks", "no test compares a single click")
_NO_MASK = ("stems of later rounds", "their previous masks are not given or not there (--previous-masks)")
_NO_DATA = ("datasets of the file", "not given as --data")
_AMBIGUOUS = ("stems of previews in several datasets", "it is not known which object was clicked")

_LeftOutNames = dict[tuple[str, str], list[str]]

Unread = Sequence[tuple[str, str]]
"""Names of stems that could not be read, each with the reason."""


@dataclass(frozen=True)
class ClickedData:
    """Stems to evaluate or train on, comparisons of display modes, what was left out, a fingerprint of the data."""

    sources: tuple[ClickedSource, ...]
    modes: Mapping[str, ClickSetComparison]
    left_out: tuple[LeftOut, ...]
    fingerprint: str
    planted: bool


def load_clicked_data(
    user_clicks: Path | None,
    data: Mapping[str, Path],
    previous_masks: Path | None,
    previews: Path | None,
    *,
    scenes: int,
    seed: int,
    split: str | None = None,
    wd: Any = "released",
) -> ClickedData:
    """The stems of `user_clicks` on the datasets of `data`; without a file, `scenes` of the planted world."""
    from hardlook.data.click_file import read_clicks
    from hardlook.data.object_instances import list_instances
    from hardlook.fingerprints import of_data, of_value
    from hardlook.rclicks.user_clicks.planted_users import planted_sources

    if user_clicks is None:
        check_options_without_clicks(
            {"--data": data, "--previous-masks": previous_masks, "--split": split, "--previews": previews}
        )
        return ClickedData(planted_sources(seed, scenes), {}, (), of_value(["planted", seed, scenes]), planted=True)
    files = {"--user-clicks": user_clicks, "--previous-masks": previous_masks, "--previews": previews, **data}
    there = {name: path for name, path in files.items() if path is not None}
    for name, path in there.items():
        if not path.exists():
            raise DataError(f"there is no such {'file' if path.suffix else 'folder'} ({name})", file=path)
    table = read_clicks(user_clicks)
    listed = list_instances(data, split=split)
    masks = PreviousMasks(previous_masks) if previous_masks else None
    joined = join_clicks(table, listed.instances, masks, file=user_clicks)
    left_out = [LeftOut(**asdict(note)) for note in listed.left_out] + [*joined.left_out]
    sources, modes = list(joined.sources), {}
    if previews:
        shown = join_previews(read_clicks(previews), listed.instances, file=previews)
        modes = compare_modes(shown.sources, file=previews, reading=wd)
        sources += shown.sources
        left_out += shown.left_out
    fingerprint = of_value({name: of_data(path) for name, path in there.items()})
    return ClickedData(tuple(sources), modes, tuple(left_out), fingerprint, planted=False)


def check_options_without_clicks(options: Mapping[str, Any]) -> None:
    """An `OptionError` that names those of the options, by flag, that are given though no clicks are."""
    given = [flag for flag, value in options.items() if value]
    if given:
        raise OptionError(
            f"{', '.join(given)} without --user-clicks",
            remedy=f"give the clicks, or leave {'it' if len(given) == 1 else 'them'} out for the planted world",
        )


@dataclass(frozen=True)
class StoredSource:
    """A stem of a file of clicks on an instance of a dataset; `display_mode` is empty outside of previews."""

    instance: ObjectInstance
    clicks: StemClicks
    previous: PreviousMasks | None = None
    display_mode: str = ""

    @property
    def key(self) -> str:
        """Dataset and full stem, and the display mode where there is one."""
        return "/".join(part for part in (self.display_mode, self.instance.dataset, self.clicks.full_stem) if part)

    @property
    def image(self) -> str:
        """The image's key."""
        return self.instance.image_key

    def read(self) -> StemWithDevices:
        """Clicks are moved to the size that the instance is read at."""
        clicks, dataset = self.clicks, self.instance.dataset
        target = self.instance.read_target().mask
        if self.previous is None:
            error = compute_error_mask(target, None, "first")
        else:
            error = self.previous.error(clicks.full_stem, target, clicks.click_type, dataset)
        stem = ClickedStem(
            clicks.full_stem,
            dataset,
            self.instance.read(),
            target,
            error,
            scale_points(clicks.points, clicks.size, self.instance.size(), unit=self.key),
            clicks.click_type,  # type: ignore[arg-type]  # checked when the file was read
            display_mode=self.display_mode,
            image_key=self.instance.image_key,
        )
        return StemWithDevices(stem, clicks.devices)


@dataclass(frozen=True)
class JoinedClicks:
    """Sources in the order of datasets and stems, and what was left out."""

    sources: tuple[StoredSource, ...]
    left_out: tuple[LeftOut, ...]


def join_clicks(
    table: ClickTable,
    instances: Sequence[ObjectInstance],
    previous: PreviousMasks | None,
    *,
    file: Path,
    least: int = FEWEST_CLICKS,
) -> JoinedClicks:
    """The stems of the file that lie on an instance; none at all is a `DataError`."""
    names: _LeftOutNames = {}
    known = {(one.dataset, one.full_stem): one for one in instances}
    given = sorted({one.dataset for one in instances})
    sources: list[StoredSource] = []
    for dataset in given:
        stems = table.for_dataset(dataset).by_full_stem()
        unmasked = _stems_without_mask(stems, previous, dataset)
        for stem, clicks in stems.items():
            instance = known.get((dataset, format_instance_stem(clicks.image_stem, clicks.object_stem)))
            if instance is None:
                names.setdefault(_NO_INSTANCE, []).append(f"{dataset}/{stem}")
            elif len(clicks.points) < least:
                names.setdefault(_FEW_CLICKS, []).append(f"{dataset}/{stem}")
            elif stem in unmasked:
                names.setdefault(_NO_MASK, []).append(f"{dataset}/{stem}")
            else:
                sources.append(StoredSource(instance, clicks, previous if clicks.click_type != "first" else None))
    if absent := [name for name in table.datasets() if normalize_dataset_name(name) not in given]:
        names[_NO_DATA] = absent
    if not sources:
        why = "; ".join(_count_left_out(what, len(found)) for (what, _), found in names.items())
        raise DataError(
            f"no stem of the file can be used: {why or 'the file is empty'}",
            file=file,
            remedy=f"the file's datasets are {', '.join(table.datasets()) or 'none'}, those given {', '.join(given)}; "
            "stems are names of images",
        )
    moved = (LeftOut("clicks outside of their image", table.clipped, "moved to its edge and kept"),)
    return JoinedClicks(tuple(sources), (*_list_left_out(names), *(moved if table.clipped else ())))


def join_previews(table: ClickTable, instances: Sequence[ObjectInstance], *, file: Path) -> JoinedClicks:
    """The first-round stems of previews.csv, whose `dataset` is a display mode, found by their name alone."""
    names: _LeftOutNames = {}
    known: dict[str, list[ObjectInstance]] = {}
    for one in instances:
        known.setdefault(one.full_stem, []).append(one)
    sources: list[StoredSource] = []
    for mode in table.datasets():
        for stem, clicks in table.for_dataset(mode).first().by_full_stem().items():
            found = known.get(stem, [])
            if len(found) == 1 and len(clicks.points) >= FEWEST_CLICKS:
                sources.append(StoredSource(found[0], clicks, display_mode=normalize_dataset_name(mode)))
            else:
                why = _FEW_CLICKS if len(found) == 1 else _AMBIGUOUS if found else _NO_INSTANCE
                names.setdefault(why, []).append(f"{mode}/{stem}")
    if not sources:
        raise DataError(
            "no stem of the previews is an instance of the data",
            file=file,
            remedy="give the dataset that the previews show as --data",
        )
    return JoinedClicks(tuple(sources), _list_left_out(names))


def compare_modes(
    sources: Sequence[StoredSource], *, file: Path, reading: WassersteinReading = "released"
) -> dict[str, ClickSetComparison]:
    """Each display mode against the text mode, on the stems that both have."""
    modes = sorted({source.display_mode for source in sources})
    text = find_text_mode(modes, file=file)
    by_stem: dict[str, list[StoredSource]] = {}
    for source in sources:
        by_stem.setdefault(f"{source.instance.dataset}/{source.clicks.full_stem}", []).append(source)
    sets = [_click_sets(of_stem) for of_stem in by_stem.values()]
    return {
        mode: compare_click_sets((one for one in sets if mode in one.clicks), mode, text, reading=reading)
        for mode in modes
        if mode != text
    }


def find_text_mode(modes: Iterable[str], *, file: Path) -> str:
    """The display mode that the others are compared with: the one that shows no mask, only words.

    >>> find_text_mode(["object-cutout", "text-description"], file=Path("previews.csv"))
    'text-description'
    """
    found = sorted({mode for mode in modes if "text" in mode})
    if len(found) != 1:
        raise DataError(
            f"expected one display mode with text in its name, got {', '.join(sorted(set(modes)))}",
            file=file,
            remedy="the modes are in the column dataset",
        )
    return found[0]


def describe_missing_masks(left_out: Iterable[LeftOut]) -> list[str]:
    """A sentence where stems of later rounds are left out for want of a previous mask, else none.

    >>> describe_missing_masks([LeftOut(_NO_MASK[0], 1, _NO_MASK[1])])
    ['1 stem of later rounds was left out: the masks before it are not given or not there (--previous-masks).']
    """
    count = sum(note.count for note in left_out if note.why == _NO_MASK[1])
    if not count:
        return []
    was, them = ("was", "it") if count == 1 else ("were", "them")
    return [
        f"{_count_left_out(_NO_MASK[0], count)} {was} left out: the masks before {them} are not given or not there "
        "(--previous-masks)."
    ]


def describe_unread(unread: Unread, done: str = "read") -> str:
    """A sentence with the first few names; `done` is what was tried.

    >>> describe_unread([("grabcut/llama", "the mask is empty")], "used")
    '1 stem could not be used: grabcut/llama (the mask is empty).'
    """
    more = len(unread) - SHOWN
    end = f", and {more} more" if more > 0 else ""
    return f"{format_count(len(unread), 'stem')} could not be {done}: {', '.join(_first_names(unread))}{end}."


def unread_left_out(unread: Unread, done: str = "read") -> LeftOut:
    """The same for a page's table of what was left out."""
    return LeftOut(f"stems that cannot be {done}", len(unread), "see the examples", _first_names(unread))


def _first_names(unread: Unread) -> tuple[str, ...]:
    return tuple(f"{key} ({why})" for key, why in unread[:SHOWN])


def _count_left_out(what: str, count: int) -> str:
    nouns, rest = what.split(" ", 1)
    return f"{format_count(count, nouns.removesuffix('s'))} {rest}"


def _list_left_out(names: _LeftOutNames) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(what, len(found), why, tuple(found[:SHOWN])) for (what, why), found in names.items())


def _stems_without_mask(stems: Mapping[str, StemClicks], previous: PreviousMasks | None, dataset: str) -> set[str]:
    later = [stem for stem, clicks in stems.items() if clicks.click_type != "first"]
    if previous is None:
        return set(later)
    return set(previous.missing(later, dataset)) if later else set()


def _click_sets(sources: Sequence[StoredSource]) -> ClickSets:
    """The clicks on one stem by display mode."""
    instance = sources[0].instance
    box = find_bounding_box(instance.read_target().mask)
    if box is None:
        raise DataError("the object's mask is empty", unit=instance.full_stem, remedy="leave the stem out")
    size = instance.size()
    points = {one.display_mode: scale_points(one.clicks.points, one.clicks.size, size, unit=one.key) for one in sources}
    return ClickSets(
        instance.dataset, instance.full_stem, (box.width, box.height), points, image_key=instance.image_key
    )
