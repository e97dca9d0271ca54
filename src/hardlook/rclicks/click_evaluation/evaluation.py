"""Evaluate click models on clicked stems: one map per stem and model, scored for all clicks and by device.

Rows are stored as soon as they are computed, one line per model and stem, so that a stopped evaluation resumes. A line
has the fingerprint of what it depends on, and is not reused with other models, draws or data.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
>>> RowCache(path).add("fingerprint of uniform", "planted/scene-0-0", [{"ks": 0.5}])
>>> RowCache(path).get("fingerprint of uniform", "planted/scene-0-0"), RowCache(path).get("another", "scene")
([{'ks': 0.5}], None)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, RunError
from hardlook.fingerprints import hash_value
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.scorecard import LeftOut
from hardlook.models.named_model import NamedModel
from hardlook.models.roles import ClickModel
from hardlook.rclicks.click_evaluation.ranking import MetricRanking, rank_models
from hardlook.rclicks.click_evaluation.stem_scores import (
    METRICS,
    GroupScores,
    Readings,
    StemScores,
    map_distribution,
    score_stem,
    summarise_rows,
)
from hardlook.rclicks.user_clicks.comparison import (
    PAIR_METRICS,
    ClickSetComparison,
    ClickSets,
    PairScores,
    compare_click_sets,
)
from hardlook.rclicks.user_clicks.loading import MIN_CLICKS, ClickedData, note_unread
from hardlook.rclicks.user_clicks.stems import DEVICES, ClickedSource, ClickedStem, StemWithDevices
from hardlook.reading import reading

Rows = list[dict[str, Any]]


class RowCache:
    """Rows by fingerprint and key, kept in a JSON Lines file. A damaged line is a `RunError` with its number."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Rows] = {}
        if path.is_file():
            *whole, rest = path.read_bytes().split(b"\n")
            for number, line in enumerate(whole, 1):
                self._add_line(line, number)
            # What follows the last line end is a line that a killed process left unfinished.
            if rest:
                write_atomically(path, b"".join(line + b"\n" for line in whole))

    def get(self, fingerprint: str, key: str) -> Rows | None:
        """The rows stored for a fingerprint and key, None where there are none."""
        return self._rows.get((fingerprint, key))

    def add(self, fingerprint: str, key: str, rows: Rows) -> None:
        """Store the rows of a fingerprint and key."""
        self._rows[fingerprint, key] = rows
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"answers": fingerprint, "key": key, "rows": rows}) + "\n")

    def _add_line(self, line: bytes, number: int) -> None:
        remedy = "delete this line, and its answer is made again; or choose another --out"
        with reading(self._path, f"line {number} is damaged", remedy=remedy, kind=RunError):
            stored = json.loads(line)
            fingerprint, key, rows = stored["answers"], stored["key"], stored["rows"]
            if not (isinstance(fingerprint, str) and isinstance(key, str) and isinstance(rows, list)):
                raise TypeError("another kind of value than expected")
        self._rows[fingerprint, key] = rows


@dataclass(frozen=True)
class EvaluationSettings:
    """How models are evaluated; `data` is the fingerprint of clicks, images and masks."""

    draws: int
    seed: int
    readings: Readings
    data: str

    def fingerprint(self, model: str) -> str:
        """The fingerprint of all that the rows of a model, or of the comparison of devices, depend on."""
        return hash_value([model, self.draws, self.seed, asdict(self.readings), self.data])


@dataclass(frozen=True)
class ModelRows:
    """Rows by model, in the order of sources; the comparison of devices; unreadable sources, each with the reason."""

    rows: Mapping[str, list[StemScores]]
    devices: ClickSetComparison
    unread: tuple[tuple[str, str], ...] = ()

    def get_stem_rows(self, model: str) -> tuple[StemScores, ...]:
        """One row per stem: the clicks of all devices together, without rows of display modes."""
        return tuple(row for row in self.rows[model] if not row.device and not row.display_mode)


def evaluate_models(
    sources: Sequence[ClickedSource],
    models: Mapping[str, NamedModel],
    settings: EvaluationSettings,
    cache: RowCache,
    advance: Callable[[int, int], None],
) -> ModelRows:
    """Score every model on every source, except those in `cache`; unreadable sources are left out for all models."""
    fingerprints = {name: settings.fingerprint(one.identity.fingerprint()) for name, one in models.items()}
    between = settings.fingerprint("pc against mobile")
    rows: dict[str, list[StemScores]] = {name: [] for name in models}
    pairs: list[PairScores] = []
    too_few, unread = 0, []
    for source in sources:
        wanted = {name: cache.get(fingerprints[name], source.key) for name in models}
        compared = cache.get(between, source.key)
        if compared is None or None in wanted.values():
            try:
                stem = source.read()
            except DataError as error:
                unread.append((source.key, error.what))
                advance(1, 1)
                continue
            for name, known in wanted.items():
                if known is None:
                    wanted[name] = _score_model(stem, models[name].model, settings)
                    cache.add(fingerprints[name], source.key, wanted[name] or [])
            if compared is None:
                compared = _compare_devices(stem, settings)
                cache.add(between, source.key, compared)
        for name, found in wanted.items():
            rows[name] += [StemScores(**row) for row in found or []]
        pairs += [PairScores(**row) for row in compared]
        too_few += not compared and not source.display_mode
        advance(1, 0)
    return ModelRows(rows, ClickSetComparison(tuple(pairs), too_few), tuple(unread))


def _score_model(clicked: StemWithDevices, model: ClickModel, settings: EvaluationSettings) -> Rows:
    distribution = map_distribution(clicked.stem, model)

    def scored(stem: ClickedStem) -> StemScores:
        return score_stem(stem, distribution, settings.draws, settings.seed, settings.readings)

    whole = scored(clicked.stem)
    rows = [whole]
    parts = clicked.by_device()
    if not clicked.stem.display_mode:
        rows += [
            replace(whole, device=part.device) if len(parts) == 1 else scored(part)
            for part in parts
            if len(part.clicks) >= MIN_CLICKS
        ]
    return [asdict(row) for row in rows]


def _compare_devices(clicked: StemWithDevices, settings: EvaluationSettings) -> Rows:
    stem = clicked.stem
    if stem.display_mode:
        return []
    parts = {part.device: part.clicks for part in clicked.by_device()}
    sets = ClickSets(stem.dataset, stem.full_stem, stem.box, parts, stem.click_type, stem.image_key)
    return [asdict(row) for row in compare_click_sets([sets], *DEVICES, reading=settings.readings.wd).rows]


SLICES = ("dataset", "click_type", "device", "display_mode")
RESAMPLES = 2000


@dataclass(frozen=True)
class ClickEvaluation:
    """The models, the data, and the scores of all models on all stems."""

    models: Mapping[str, NamedModel]
    clicked: ClickedData
    settings: EvaluationSettings
    results: ModelRows

    @cached_property
    def overall(self) -> dict[str, GroupScores]:
        """Each model over all stems."""
        return {name: self._summarise(self.results.get_stem_rows(name), METRICS)[0] for name in self.models}

    @cached_property
    def slices(self) -> dict[str, dict[str, tuple[GroupScores, ...]]]:
        """The scores of each group, by column and then by model; columns without groups are left out."""
        found = {
            column: {name: self._summarise(self._rows(name, column), METRICS, by=(column,)) for name in self.models}
            for column in SLICES
        }
        return {column: groups for column, groups in found.items() if any(groups.values())}

    @cached_property
    def rankings(self) -> tuple[MetricRanking, ...]:
        """The best model on each metric; none where there is one model only."""
        rows = {name: self.results.get_stem_rows(name) for name in self.models}
        if len(rows) < 2:
            return ()
        return tuple(rank_models(metric, rows, resamples=RESAMPLES, seed=self.settings.seed) for metric in METRICS)

    @cached_property
    def devices(self) -> tuple[GroupScores, ...]:
        """PC against mobile by dataset."""
        return self._summarise(self.results.devices.rows, PAIR_METRICS, by=("dataset",))

    @cached_property
    def mode_scores(self) -> dict[str, GroupScores]:
        """Each display mode against the text mode, over all stems."""
        pairs = {mode: compared.rows for mode, compared in self.clicked.modes.items() if compared.rows}
        return {mode: self._summarise(rows, PAIR_METRICS)[0] for mode, rows in pairs.items()}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Everything that did not enter a number; what did and is to be known is `kept`."""
        notes = list(self.clicked.left_out)
        if self.results.unread:
            notes.append(note_unread(self.results.unread))
        if self.results.devices.too_few:
            why = "fewer than 10 clicks on one of the two devices"
            notes.append(LeftOut("stems in the comparison of devices", self.results.devices.too_few, why))
        for mode, compared in self.clicked.modes.items():
            if compared.too_few:
                why = "fewer than 10 clicks after one of the two ways of showing"
                notes.append(LeftOut(f"stems in the comparison of {mode} with text", compared.too_few, why))
        for name, scores in self.overall.items():
            if scores.ks_undefined:
                why = "a coordinate is the same for all points; these draws score 0"
                notes.append(LeftOut(f"KS tests of {name} without a p", scores.ks_undefined, why, kept=True))
            if scores.fell_back:
                why = "every pixel of the region got the same chance"
                notes.append(LeftOut(f"maps of {name} that were 0 all over", scores.fell_back, why, kept=True))
        return tuple(notes)

    def _rows(self, name: str, column: str) -> tuple[StemScores, ...]:
        if column in ("dataset", "click_type"):
            return self.results.get_stem_rows(name)
        rows = tuple(row for row in self.results.rows[name] if getattr(row, column))
        if column != "device":
            return rows
        # Stems of later rounds were clicked on one device only; a fair comparison needs stems that both devices have.
        here = {device: {(row.dataset, row.full_stem) for row in rows if row.device == device} for device in DEVICES}
        both = set.intersection(*here.values())
        return tuple(row for row in rows if (row.dataset, row.full_stem) in both)

    def _summarise(
        self, rows: Sequence[StemScores | PairScores], metrics: Sequence[str], by: Sequence[str] = ()
    ) -> tuple[GroupScores, ...]:
        return summarise_rows(rows, metrics, by=by, resamples=RESAMPLES, seed=self.settings.seed)
