"""Click models judged on every stem: a map a stem and model, scored for everybody's clicks and for each device's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hardlook.clicks.click_distribution import ClickDistribution, click_distribution
from hardlook.clicks.clicked_stem import ClickedStem
from hardlook.clicks.device_comparison import ClickSets, Comparison, PairScores, compare_crowds
from hardlook.clicks.evaluation import Readings, StemScores, score_stem
from hardlook.commands.clicks.answer_file import AnswerFile, Rows
from hardlook.commands.clicks.clicked_sources import DEVICES, ClickedSource, Crowd
from hardlook.commands.clicks.joined_clicks import LEAST
from hardlook.errors import DataError, HardlookError
from hardlook.fingerprint import of_value
from hardlook.models.identity import ModelIdentity
from hardlook.models.roles import ClickModel

Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class NamedClickModel:
    """A click model and which one it is."""

    model: ClickModel
    identity: ModelIdentity

    def facts(self) -> dict[str, Any]:
        """The identity as JSON values; a checkpoint's path is a text."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self.identity), default=str))
        return found

    def conduct(self) -> str:
        """How it says it looks at things; empty where it does not say."""
        said = getattr(self.model, "conduct", "")
        return said if isinstance(said, str) else ""


@dataclass(frozen=True)
class Judging:
    """How models are judged; `data` is the fingerprint of clicks, images and masks."""

    draws: int
    seed: int
    readings: Readings
    data: str

    def fingerprint(self, of: str) -> str:
        """What an answer of a model, or of the comparison of devices, depends on."""
        return of_value([of, self.draws, self.seed, asdict(self.readings), self.data])


@dataclass(frozen=True)
class Judged:
    """Rows by model, in the order of sources; devices compared; sources that could not be read, with the reason."""

    rows: Mapping[str, tuple[StemScores, ...]]
    devices: Comparison
    unread: tuple[tuple[str, str], ...] = field(default=())

    def whole(self, model: str) -> tuple[StemScores, ...]:
        """The rows of everybody's clicks on the stems of the file, one a stem."""
        return tuple(row for row in self.rows[model] if not row.device and not row.display_mode)


def judge(
    sources: Sequence[ClickedSource],
    models: Mapping[str, NamedClickModel],
    judging: Judging,
    answers: AnswerFile,
    advance: Advance,
) -> Judged:
    """Every model on every source; what is in `answers` is taken from there, what is new is added.

    A source that cannot be read is noted and left out for all models alike.
    """
    prints = {name: judging.fingerprint(one.identity.fingerprint()) for name, one in models.items()}
    between = judging.fingerprint("pc against mobile")
    rows: dict[str, list[StemScores]] = {name: [] for name in models}
    pairs: list[PairScores] = []
    too_few, unread = 0, []
    for source in sources:
        wanted = {name: answers.get(prints[name], source.key) for name in models}
        compared = answers.get(between, source.key)
        if compared is None or None in wanted.values():
            try:
                crowd = source.read()
            except DataError as error:
                unread.append((source.key, error.what))
                advance(1, 1)
                continue
            for name in [name for name, found in wanted.items() if found is None]:
                wanted[name] = _answer(crowd, models[name].model, judging)
                answers.add(prints[name], source.key, wanted[name] or [])
            if compared is None:
                compared = _devices(crowd, judging)
                answers.add(between, source.key, compared)
        for name, found in wanted.items():
            rows[name] += [StemScores(**row) for row in found or []]
        pairs += [PairScores(**row) for row in compared]
        too_few += not compared and not source.display_mode
        advance(1, 0)
    return Judged({name: tuple(found) for name, found in rows.items()}, Comparison(tuple(pairs), too_few), (*unread,))


def distribution_of(stem: ClickedStem, model: ClickModel) -> ClickDistribution:
    """The model's distribution on a stem; its errors name the stem."""
    try:
        return click_distribution(model.click_map(stem.image, stem.target, stem.error, stem.positive), stem.error)
    except HardlookError as error:
        raise error.at(unit=stem.full_stem) from error


def _answer(crowd: Crowd, model: ClickModel, judging: Judging) -> Rows:
    chances = distribution_of(crowd.stem, model)

    def scored(stem: ClickedStem) -> StemScores:
        return score_stem(stem, chances, judging.draws, judging.seed, judging.readings)

    whole = scored(crowd.stem)
    rows = [whole]
    parts = [part for part in map(crowd.on, DEVICES) if part is not None]
    if not crowd.stem.display_mode:
        rows += [
            replace(whole, device=part.device) if len(parts) == 1 else scored(part)
            for part in parts
            if len(part.clicks) >= LEAST
        ]
    return [asdict(row) for row in rows]


def _devices(crowd: Crowd, judging: Judging) -> list[dict[str, Any]]:
    stem = crowd.stem
    if stem.display_mode:
        return []
    parts = {part.device: part.clicks for part in map(crowd.on, DEVICES) if part is not None}
    sets = ClickSets(stem.dataset, stem.full_stem, stem.box, parts, stem.click_type, stem.image_key)
    return [asdict(row) for row in compare_crowds([sets], *DEVICES, reading=judging.readings.wd).rows]
