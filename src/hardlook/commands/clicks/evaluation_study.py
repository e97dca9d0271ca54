"""All that an evaluation of click models found: what its page, its tables and its document are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hardlook.clicks.device_comparison import PAIR_METRICS, Comparison, PairScores
from hardlook.clicks.evaluation import StemScores
from hardlook.clicks.evaluation_summary import METRICS, GroupScores, summarise_rows
from hardlook.commands.clicks.clicked_sources import DEVICES, ClickedSource
from hardlook.commands.clicks.judging import Judged, Judging, NamedClickModel
from hardlook.commands.clicks.model_pairs import Standing, better
from hardlook.commands.clicks.unread_stems import unread_note
from hardlook.contract.scorecard import LeftOut

SLICES = ("dataset", "click_type", "device", "display_mode")
RESAMPLES = 2000


@dataclass(frozen=True)
class EvaluationStudy:
    """`planted` where the people are simulated; `modes` are comparisons of display modes with the text mode."""

    models: Mapping[str, NamedClickModel]
    sources: Sequence[ClickedSource]
    judging: Judging
    judged: Judged
    modes: Mapping[str, Comparison]
    noted: tuple[LeftOut, ...]
    planted: bool

    @cached_property
    def overall(self) -> dict[str, GroupScores]:
        """Each model over all stems."""
        return {name: self._summed(self.judged.whole(name))[0] for name in self.models}

    @cached_property
    def slices(self) -> dict[str, dict[str, tuple[GroupScores, ...]]]:
        """Column, then model: the groups of that column; columns that say nothing are left out."""
        found = {
            column: {name: self._summed(self._rows(name, column), by=(column,)) for name in self.models}
            for column in SLICES
        }
        return {column: groups for column, groups in found.items() if any(groups.values())}

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """The best model on each metric; none where there is one model only."""
        rows = {name: self.judged.whole(name) for name in self.models}
        if len(rows) < 2:
            return ()
        return tuple(better(metric, rows, resamples=RESAMPLES, seed=self.judging.seed) for metric in METRICS)

    @cached_property
    def devices(self) -> tuple[GroupScores, ...]:
        """PC against mobile by dataset."""
        return self._compared(self.judged.devices.rows)

    @cached_property
    def mode_scores(self) -> dict[str, GroupScores]:
        """Each display mode against the text mode, over all stems."""
        scores = {mode: self._compared(compared.rows, by=()) for mode, compared in self.modes.items()}
        return {mode: found[0] for mode, found in scores.items() if found}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Everything that did not enter a number."""
        notes = list(self.noted)
        if self.judged.unread:
            notes.append(unread_note(self.judged.unread))
        if self.judged.devices.too_few:
            why = "fewer than 10 clicks on one of the two devices"
            notes.append(LeftOut("stems in the comparison of devices", self.judged.devices.too_few, why))
        for mode, compared in self.modes.items():
            if compared.too_few:
                why = "fewer than 10 clicks after one of the two ways of showing"
                notes.append(LeftOut(f"stems in the comparison of {mode} with text", compared.too_few, why))
        for name, scores in self.overall.items():
            if scores.ks_undefined:
                why = "a coordinate is the same for all points; these draws score 0 and are kept"
                notes.append(LeftOut(f"KS tests of {name} without a p", scores.ks_undefined, why))
            if scores.fell_back:
                why = "every pixel of the region got the same chance; kept"
                notes.append(LeftOut(f"maps of {name} that were 0 all over", scores.fell_back, why))
        return tuple(notes)

    def _rows(self, name: str, column: str) -> tuple[StemScores, ...]:
        if column in ("dataset", "click_type"):
            return self.judged.whole(name)
        rows = tuple(row for row in self.judged.rows[name] if getattr(row, column))
        if column != "device":
            return rows
        # Later rounds are of one device each, so on all stems the devices would differ in what was clicked on.
        here = {device: {(row.dataset, row.full_stem) for row in rows if row.device == device} for device in DEVICES}
        both = set.intersection(*here.values())
        return tuple(row for row in rows if (row.dataset, row.full_stem) in both)

    def _summed(self, rows: Sequence[StemScores], by: Sequence[str] = ()) -> tuple[GroupScores, ...]:
        return summarise_rows(rows, METRICS, by=by, resamples=RESAMPLES, seed=self.judging.seed)

    def _compared(self, rows: Sequence[PairScores], by: Sequence[str] = ("dataset",)) -> tuple[GroupScores, ...]:
        return summarise_rows(rows, PAIR_METRICS, by=by, resamples=RESAMPLES, seed=self.judging.seed)
