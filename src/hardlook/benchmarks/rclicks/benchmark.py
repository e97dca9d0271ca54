"""RClicks: interactive segmentation under the clicks that people make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.rclicks.answering import answer_units, click_model, click_model_words
from hardlook.benchmarks.rclicks.listing import list_units
from hardlook.benchmarks.rclicks.meanings import SCORES
from hardlook.benchmarks.rclicks.options import RClicksOptions, chosen_readings
from hardlook.benchmarks.rclicks.pictures import pictures_of
from hardlook.benchmarks.rclicks.printed_tables import printed_tables
from hardlook.benchmarks.rclicks.published import PUBLISHED, published_slice
from hardlook.benchmarks.rclicks.qualities import QUALITIES, caption_of, instance_qualities
from hardlook.benchmarks.rclicks.records import SCHEMA, record_of
from hardlook.benchmarks.rclicks.scores import score_instances, tally_instances
from hardlook.benchmarks.rclicks.sections import show
from hardlook.benchmarks.rclicks.units import prepare, sources_of
from hardlook.contract.benchmark import BenchmarkCard, Dial, Unit
from hardlook.contract.records import Record
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally
from hardlook.errors import ModelError

if TYPE_CHECKING:
    import polars as pl

CARD = BenchmarkCard(
    name="rclicks",
    version="1",
    title="RClicks: interactive segmentation under people's clicks",
    summary="Interactive segmentation when clicks fall where people click, in likely places and in unlikely ones.",
    role="promptable-segmenter",
    default_model="disc",
    citation="RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation, NeurIPS 2024.",
    data_licence="datasets: their own; the planted world: MIT",
    scores=SCORES,
    qualities=QUALITIES,
    batch_size=8,
    published=PUBLISHED,
    published_tables=printed_tables,
    whole_groups=True,
    dials=(
        Dial("fragile off the centre", "disc", lambda v: {"fragility": v}, "dgr"),
        Dial("fragile off the centre", "disc", lambda v: {"fragility": v}, "nsr"),
        Dial("fragile off the centre", "disc", lambda v: {"fragility": v}, "noc90-base", moves=False),
        Dial("loses the rim", "disc", lambda v: {"blunt": v}, "auc-base"),
    ),
    calibrated={"scenes": 12, "rounds": 8, "resamples": 0},
    example="hardlook run rclicks --data grabcut=GrabCut --model mobile-sam --clicks distance --out runs/mobile-sam",
)


class RClicks:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = RClicksOptions

    def sources(self, options: RClicksOptions) -> Mapping[str, Path | str]:
        """The datasets or the planted world, people's clicks, and the click model."""
        who = click_model(options.clicks, options.clicks_args)
        return {**sources_of(options), "click model": who.whole_fingerprint()}

    def units(self, options: RClicksOptions) -> Sequence[Unit]:
        """One unit an instance, those of one image as one group."""
        return list_units(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read the image and the masks."""
        return prepare(unit)

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Click on every instance, all courses in lock-step, each image opened once."""
        if model is None:
            remedy = "`hardlook models --role promptable-segmenter` lists some"
            raise ModelError("RClicks needs a model that answers clicks", remedy=remedy)
        answers = answer_units(units, model)
        settings = units[0].payload.settings
        who = click_model_words(settings.clicks, settings.clicks_args)
        return [record_of(unit, answer, model, who) for unit, answer in zip(units, answers, strict=True)]

    def score(self, records: pl.DataFrame, options: RClicksOptions) -> Scorecard:
        """Every score, from the counts of pixels alone."""
        return score_instances(CARD, records, options)

    def tallies(self, records: pl.DataFrame, options: RClicksOptions) -> Sequence[Tally]:
        """Every statistic of each instance, summed within datasets: of all, by dataset, by size, by group."""
        return tally_instances(records, options)

    def qualities(self, records: pl.DataFrame, options: RClicksOptions) -> pl.DataFrame:
        """Clicks needed, area under the IoUs, and what it costs to click in improbable places."""
        return instance_qualities(records)

    def caption(self, record: Record) -> str:
        """The object, and how many clicks the centre rule and the groups needed."""
        return caption_of(record)

    def readings(self, options: RClicksOptions) -> tuple[Reading, ...]:
        """Groups, perfect masks, failures and halves."""
        return chosen_readings(options)

    def published_slice(self, scorecard: Scorecard, options: RClicksOptions) -> Mapping[str, str]:
        """The one dataset that ran, or several."""
        return published_slice(scorecard)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """Costs, curves, one click, slices, the published checkpoints, instances."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """The object, two courses of clicks, and where masks disagree."""
        return pictures_of(unit, record)


RCLICKS = RClicks()
