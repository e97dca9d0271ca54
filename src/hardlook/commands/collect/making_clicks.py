"""What `hardlook collect init clicks` does once its flags are read: objects listed, a study made and told of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hardlook.data.object_instances import LeftOutNote, list_instances
from hardlook.errors import OptionError
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.collect.study.folder import Study
    from hardlook.collect.study.instances_to_click import ClickableInstance
    from hardlook.collect.study.settings import StudySettings

Start = Callable[[int, int], Callable[[int, int], None]]
SHOWN = 3


@dataclass(frozen=True)
class Asked:
    """Of what the study is to be made; `masks`, `limit` and `errors` are a second round's."""

    data: Mapping[str, Path]
    at_most: int | None = None
    min_area: int = 0
    split: str | None = None
    scenes: int = 24
    seed: int = 0
    descriptions: Path | None = None
    skip_broken: bool = False
    round: int = 1
    masks: tuple[Path, ...] = ()
    limit: float = 0.95
    errors: str = "largest"

    def refuse(self, modes: Sequence[str]) -> None:
        """An `OptionError` for flags that mean nothing together."""
        chosen = {"--at-most": self.at_most is not None, "--min-area": self.min_area > 0, "--split": bool(self.split)}
        if not self.data and any(chosen.values()):
            named = ", ".join(flag for flag, given in chosen.items() if given)
            raise OptionError(f"{named} without --data", remedy="give --data; the planted world has --scenes")
        if self.descriptions and "text" not in modes:
            raise OptionError("--descriptions without --mode text", remedy="add --mode text, or leave them out")
        if self.round == 1 and self.masks:
            raise OptionError("--masks in a first round", remedy="add --round 2")
        if self.round == 2 and not self.masks:
            raise OptionError("a second round without --masks", remedy="give a finished run of `hardlook run rclicks`")
        if self.round == 2 and self.skip_broken:
            raise OptionError("--skip-broken in a second round", remedy="leave it out")


def make(study: Path, asked: Asked, settings: StudySettings, start: Start) -> Study:
    """Make the study; `start` begins a bar."""
    from hardlook.collect.study.click_tasks import click_study, region_study
    from hardlook.collect.study.descriptions import Descriptions

    asked.refuse(settings.modes)
    instances, left_out = instances_of(asked)
    describe = Descriptions(asked.data, asked.descriptions)
    facts = {
        "data": {name: str(path) for name, path in asked.data.items()} or {"planted": f"{asked.scenes} scenes"},
        **{name: getattr(asked, name) for name in ("at_most", "min_area", "split", "seed")},
    }

    def made() -> Mapping[str, Any]:
        unused = len(describe.unused)
        return {**facts, "round": asked.round, "descriptions_of_no_object": unused}

    if asked.round == 1:
        return click_study(
            study, instances, settings, describe=describe, left_out=left_out, facts=made,
            skip_broken=asked.skip_broken, progress=start,
        )  # fmt: skip
    from hardlook.collect.study.second_round import error_regions

    regions = error_regions(
        instances, asked.masks, limit=asked.limit, errors=cast(Any, asked.errors),
        describe=describe if "text" in settings.modes else lambda instance: "", progress=start,
    )  # fmt: skip

    def made_later() -> Mapping[str, Any]:
        found = regions.facts
        return {**made(), **found, "left_out": [*(asdict(note) for note in left_out), *found["left_out"]]}

    return region_study(study, regions, settings, facts=made_later)


def instances_of(asked: Asked) -> tuple[Sequence[ClickableInstance], tuple[LeftOutNote, ...]]:
    """The objects of the data, or of the planted world, and what was left out."""
    if not asked.data:
        from hardlook.collect.study.instances_to_click import planted_instances
        from hardlook.world.planted import PlantedWorld

        return planted_instances(PlantedWorld(seed=asked.seed, count=asked.scenes)), ()
    listed = list_instances(
        asked.data, at_most=asked.at_most, seed=asked.seed, min_area=asked.min_area, split=asked.split
    )
    return listed.instances, listed.left_out


def document_of(study: Study) -> dict[str, Any]:
    """What was made, as JSON."""
    settings, made = study.settings, study.made
    items = len(study.items)
    return {
        "study": str(study.path),
        "kind": settings.kind,
        "round": made["round"],
        "tasks": made["tasks"],
        "images": made["images"],
        "training": len(study.training),
        "modes": list(settings.modes),
        "devices": list(settings.devices),
        "clicks_wanted": items * len(settings.devices) * settings.target_answers,
        "left_out": made["left_out"],
        "counted": made["counted"],
        "descriptions_of_no_object": made["descriptions_of_no_object"],
        "next": f"hardlook collect serve {study.path}",
    }


def in_words(document: Mapping[str, Any], *, planted: bool = False) -> str:
    """The same for people; `planted` where no data was given."""
    modes, devices = (_listed(document[name]) for name in ("modes", "devices"))
    lines = [
        f"{counted(document['tasks'], 'task')} on {counted(document['images'], 'image')}, shown as {modes}; "
        f"{document['clicks_wanted']:,} valid clicks wanted, on {devices}.",
    ]
    if planted:
        lines.append("Note: these are drawn scenes of the planted world; --data takes your own images.")
    for name, says in (("left_out", "Left out"), ("counted", "Note")):
        for note in document[name]:
            examples = ", ".join(note["examples"][:SHOWN])
            lines.append(f"{says}: {note['count']} {note['what']} ({note['why']}), such as {examples}.")
    if unused := document["descriptions_of_no_object"]:
        lines.append(f"Note: {counted(unused, 'description')} of --descriptions fit no object of the study.")
    return "\n".join([*lines, f"Next: {document['next']}"])


def _listed(words: Sequence[str]) -> str:
    """Words with commas and an `and`.

    >>> _listed(["pc"]), _listed(["text", "cut-out", "shifted"])
    ('pc', 'text, cut-out and shifted')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
