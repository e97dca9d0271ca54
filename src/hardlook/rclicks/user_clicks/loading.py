"""People's clicks from `clicks.csv` and `previews.csv`, joined with the objects that they were made on.

Stems that cannot be used are left out and counted, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.data.click_names import format_instance_stem
from hardlook.data.object_instances import ObjectInstance, normalize_dataset_name, scale_points
from hardlook.data.previous_masks import PreviousMasks
from hardlook.errors import DataError, OptionError
from hardlook.harness.scorecard import LeftOut
from hardlook.harness.sections import Block, Section, Table
from hardlook.metrics.click_sets import WassersteinReading
from hardlook.metrics.regions import find_bounding_box
from hardlook.rclicks.user_clicks.comparison import ClickSetComparison, ClickSets, compare_click_sets
from hardlook.rclicks.user_clicks.stems import ClickedSource, ClickedStem, StemWithDevices
from hardlook.report.formatting import format_count

if TYPE_CHECKING:
    from hardlook.data.click_file import ClickTable, StemClicks

MIN_CLICKS = 2
MAX_EXAMPLES = 5  # names of stems in a note on what is left out
EXIT_SOME_UNREAD = 3
# Notes on what is left out: what, and why.
_NO_INSTANCE = ("stems without an instance", "no object of that name is in the data given")
_FEW_CLICKS = (f"stems with fewer than {MIN_CLICKS} clicks", "no test compares a single click")
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
    wd: WassersteinReading = "released",
) -> ClickedData:
    """The stems of `user_clicks` on the datasets of `data`; without a file, those of `scenes` planted scenes."""
    from hardlook.data.click_file import read_clicks
    from hardlook.data.object_instances import list_instances
    from hardlook.fingerprints import hash_data, hash_value
    from hardlook.rclicks.user_clicks.planted_users import make_planted_sources

    if user_clicks is None:
        check_options_without_clicks(
            {"--data": data, "--previous-masks": previous_masks, "--split": split, "--previews": previews}
        )
        planted = make_planted_sources(seed, scenes)
        return ClickedData(planted, {}, (), hash_value(["planted", seed, scenes]), planted=True)
    files = {"--user-clicks": user_clicks, "--previous-masks": previous_masks, "--previews": previews, **data}
    given = {name: path for name, path in files.items() if path is not None}
    for name, path in given.items():
        if not path.exists():
            raise DataError(f"there is no such {'file' if path.suffix else 'folder'} ({name})", file=path)
    table = read_clicks(user_clicks)
    listed = list_instances(data, split=split)
    masks = PreviousMasks(previous_masks) if previous_masks else None
    sources, left_out = join_clicks(table, listed.instances, masks, file=user_clicks)
    left_out = [*(LeftOut(**asdict(note)) for note in listed.left_out), *left_out]
    modes: Mapping[str, ClickSetComparison] = {}
    if previews:
        shown, notes = join_previews(read_clicks(previews), listed.instances, file=previews)
        modes = compare_modes(shown, file=previews, reading=wd)
        sources, left_out = [*sources, *shown], [*left_out, *notes]
    fingerprint = hash_value({name: hash_data(path) for name, path in given.items()})
    return ClickedData(tuple(sources), modes, tuple(left_out), fingerprint, planted=False)


def check_options_without_clicks(options: Mapping[str, Any]) -> None:
    """Raise an `OptionError` that names the options (values by flag) that only make sense with clicks."""
    if given := [flag for flag, value in options.items() if value]:
        remedy = f"give the clicks, or leave {'it' if len(given) == 1 else 'them'} out for the planted world"
        raise OptionError(f"{', '.join(given)} without --user-clicks", remedy=remedy)


@dataclass(frozen=True)
class StoredSource:
    """A stem of `clicks.csv` or `previews.csv` and its instance; `display_mode` is empty outside of previews."""

    instance: ObjectInstance
    clicks: StemClicks
    previous: PreviousMasks | None = None
    display_mode: str = ""

    @property
    def key(self) -> str:
        """Dataset and full stem, and the display mode where there is one."""
        return "/".join(part for part in (self.display_mode, self.instance.dataset, self.clicks.full_stem) if part)

    def read(self) -> StemWithDevices:
        """The stem with its image, masks and clicks, whose coordinates are scaled to the size of the image read."""
        clicks, dataset = self.clicks, self.instance.dataset
        target = self.instance.read_target().mask
        error = target.copy()
        if self.previous is not None:
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


def join_clicks(
    table: ClickTable, instances: Sequence[ObjectInstance], previous: PreviousMasks | None, *, file: Path
) -> tuple[list[StoredSource], list[LeftOut]]:
    """The stems whose instance is in the data, and what was left out; a `DataError` if no stem can be used."""
    names: _LeftOutNames = {}
    known = {(one.dataset, one.full_stem): one for one in instances}
    given = sorted({one.dataset for one in instances})
    sources: list[StoredSource] = []
    for dataset in given:
        stems = table.for_dataset(dataset).by_full_stem()
        later = [stem for stem, clicks in stems.items() if clicks.click_type != "first"]
        unmasked = set(previous.missing(later, dataset) if previous and later else later)
        for stem, clicks in stems.items():
            instance = known.get((dataset, format_instance_stem(clicks.image_stem, clicks.object_stem)))
            if instance is None:
                names.setdefault(_NO_INSTANCE, []).append(f"{dataset}/{stem}")
            elif len(clicks.points) < MIN_CLICKS:
                names.setdefault(_FEW_CLICKS, []).append(f"{dataset}/{stem}")
            elif stem in unmasked:
                names.setdefault(_NO_MASK, []).append(f"{dataset}/{stem}")
            else:
                sources.append(StoredSource(instance, clicks, previous if clicks.click_type != "first" else None))
    if absent := [name for name in table.datasets() if normalize_dataset_name(name) not in given]:
        names[_NO_DATA] = absent
    if not sources:
        why = "; ".join(_count_left_out(what, len(found)) for (what, _), found in names.items())
        remedy = (
            f"the file's datasets are {', '.join(table.datasets()) or 'none'}, those given {', '.join(given)}; "
            "stems are names of images"
        )
        raise DataError(f"no stem of the file can be used: {why or 'the file is empty'}", file=file, remedy=remedy)
    return sources, [*_list_left_out(names), *note_kept_clicks(table)]


def note_kept_clicks(table: ClickTable, clicks: str = "clicks") -> list[LeftOut]:
    """Notes on the `clicks` of a file that count, and of which one should know."""
    notes = []
    if table.clipped:
        notes.append(LeftOut(f"{clicks} outside of their image", table.clipped, "moved to its edge", kept=True))
    if table.repeated:
        why = "two people may hit one pixel; if the file holds its rows twice, remove the copies"
        notes.append(LeftOut(f"{clicks} that equal an earlier row", table.repeated, why, kept=True))
    return notes


def join_previews(
    table: ClickTable, instances: Sequence[ObjectInstance], *, file: Path
) -> tuple[list[StoredSource], list[LeftOut]]:
    """The first-round stems of previews.csv, found by name alone, since its column `dataset` holds display modes."""
    names: _LeftOutNames = {}
    known: dict[str, list[ObjectInstance]] = {}
    for one in instances:
        known.setdefault(one.full_stem, []).append(one)
    sources: list[StoredSource] = []
    for mode in table.datasets():
        for stem, clicks in table.for_dataset(mode).first().by_full_stem().items():
            found = known.get(stem, [])
            if len(found) == 1 and len(clicks.points) >= MIN_CLICKS:
                sources.append(StoredSource(found[0], clicks, display_mode=normalize_dataset_name(mode)))
            else:
                why = _FEW_CLICKS if len(found) == 1 else _AMBIGUOUS if found else _NO_INSTANCE
                names.setdefault(why, []).append(f"{mode}/{stem}")
    if not sources:
        what = "no stem of the previews is an instance of the data"
        raise DataError(what, file=file, remedy="give the dataset that the previews show as --data")
    left_out = _list_left_out(names)
    if later := len(table) - len(table.first()):
        left_out.append(LeftOut("clicks of later rounds in the previews", later, "only first clicks are compared"))
    return sources, [*left_out, *note_kept_clicks(table, "clicks in the previews")]


def compare_modes(
    sources: Sequence[StoredSource], *, file: Path, reading: WassersteinReading = "released"
) -> dict[str, ClickSetComparison]:
    """Each display mode against the text mode, on the stems that both have."""
    modes = sorted({source.display_mode for source in sources})
    text = find_text_mode(modes, file=file)
    by_stem: dict[str, list[StoredSource]] = {}
    for source in sources:
        by_stem.setdefault(f"{source.instance.dataset}/{source.clicks.full_stem}", []).append(source)
    sets = [_collect_click_sets(of_stem) for of_stem in by_stem.values()]
    return {
        mode: compare_click_sets((one for one in sets if mode in one.clicks), mode, text, reading=reading)
        for mode in modes
        if mode != text
    }


def find_text_mode(modes: Sequence[str], *, file: Path) -> str:
    """The display mode that the others are compared with: the one that shows no mask, only words.

    >>> find_text_mode(["object-cutout", "text-description"], file=Path("previews.csv"))
    'text-description'
    """
    found = [mode for mode in modes if "text" in mode]
    if len(found) != 1:
        what = f"expected one display mode with text in its name, got {', '.join(modes)}"
        raise DataError(what, file=file, remedy="the modes are in the column dataset")
    return found[0]


def describe_missing_masks(left_out: Iterable[LeftOut]) -> list[str]:
    """A sentence that counts the stems of later rounds that have no previous mask; no sentence if there are none.

    >>> describe_missing_masks([LeftOut(_NO_MASK[0], 1, _NO_MASK[1])])
    ['1 stem of later rounds was left out: its previous mask is missing (--previous-masks).']
    """
    count = sum(note.count for note in left_out if note.why == _NO_MASK[1])
    if not count:
        return []
    verb, why = ("was", "its previous mask is") if count == 1 else ("were", "their previous masks are")
    return [f"{_count_left_out(_NO_MASK[0], count)} {verb} left out: {why} missing (--previous-masks)."]


def describe_unread(unread: Unread, done: str = "read") -> str:
    """A sentence that counts the stems and names the first few; `done` is the verb, such as `read` or `used`.

    >>> describe_unread([("grabcut/llama", "the mask is empty")], "used")
    '1 stem could not be used: grabcut/llama (the mask is empty).'
    """
    more = len(unread) - MAX_EXAMPLES
    end = f", and {more} more" if more > 0 else ""
    return f"{format_count(len(unread), 'stem')} could not be {done}: {', '.join(_format_examples(unread))}{end}."


def note_unread(unread: Unread, done: str = "read") -> LeftOut:
    """The note on these stems for the table of what was left out."""
    return LeftOut(f"stems that cannot be {done}", len(unread), "see the examples", _format_examples(unread))


def build_left_out_section(title: str, left_out: Sequence[LeftOut], *blocks: Block) -> Section:
    """A section with a table of what was left out, and the `blocks` after it."""
    columns = ("what", "count", "why", "for example")
    tables = []
    for name, caption, kept in (("Left out", "", False), ("Noted", "These are in the numbers.", True)):
        rows = [(one.what, one.count, one.why, ", ".join(one.examples)) for one in left_out if one.kept == kept]
        tables += [Table(name, caption, columns, rows)] if rows else []
    text = "" if any(not one.kept for one in left_out) else "Nothing was left out."
    return Section(title, text, (*tables, *blocks))


def _format_examples(unread: Unread) -> tuple[str, ...]:
    return tuple(f"{key} ({why})" for key, why in unread[:MAX_EXAMPLES])


def _count_left_out(what: str, count: int) -> str:
    nouns, rest = what.split(" ", 1)
    return f"{format_count(count, nouns.removesuffix('s'))} {rest}"


def _list_left_out(names: _LeftOutNames) -> list[LeftOut]:
    return [LeftOut(what, len(found), why, tuple(found[:MAX_EXAMPLES])) for (what, why), found in names.items()]


def _collect_click_sets(sources: Sequence[StoredSource]) -> ClickSets:
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
