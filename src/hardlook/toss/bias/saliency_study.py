"""`hardlook bias saliency`: whether salient targets are found better, and whether blurring what is salient helps.

Every pair is evaluated twice: as it is, and with the salient region of its query blurred. SSSI (selective saliency
suppression at inference) uses the blurred query for targets that are known not to be salient, and the query as it is
for salient ones. `suppressed-all` blurs every query: what happens if it is not known which targets are salient.

The blurred region has a hard edge, at the mask's edge. A feathered edge would either change pixels outside the region
or leave a sharp rim of the salient object inside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.caching import ArrayCache
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial, ScoreMeaning, Unit, UnitList
from hardlook.harness.options import option
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import LeftOut, Scorecard
from hardlook.harness.sections import CurveChart, Dot, DotChart, Example, Gallery, Line, Section, Table, score_dot
from hardlook.harness.stats import bootstrap_mean
from hardlook.harness.tally import DIFFERENCE, SHARE, SumTally
from hardlook.metrics.mask_attributes import mask_iou
from hardlook.models.roles import Image, Mask
from hardlook.randomness import generator
from hardlook.toss.evaluation import (
    COUNTS,
    SALIENT_COUNTS,
    count_salient_pixels,
    make_record,
    note_empty_supports,
    predict_masks,
)
from hardlook.toss.galleries import add_pair_iou, describe_pair, draw_pair
from hardlook.toss.options import AuxiliaryModel, shared_readings
from hardlook.toss.pair_lists import EXAMPLES, StudyOptions, list_pair_sources, list_study_folds, open_study_lists
from hardlook.toss.pairs import Labels, OneShotPair, add_salient_mask, read_pair
from hardlook.toss.pixel_sums import (
    IOU,
    NamedScore,
    Totals,
    mean_iou,
    pair_iou_expression,
    score_classes,
    score_folds,
    score_tallies,
    sum_pixels,
    tally_scores,
)
from hardlook.toss.published import list_saliency_results, list_tables, read_numbers
from hardlook.toss.report import format_score, judge_sign
from hardlook.toss.salience_following import (
    FOLLOWING_SCORES,
    build_following_chart,
    describe_following,
    tally_following,
)
from hardlook.world.signature import has_signature, read_signature, write_signature

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.sections import Picture

PLAIN, SUPPRESSED = "plain", "suppressed"
LABELS = ("condition", "is_salient", "fold", "class")
SLICES = (
    Column("condition", "text", "plain, or suppressed: the query's salient region is blurred", "slice"),
    Column("fold", "int", "the fold of the class", "slice"),
    Column("class", "text", "the class to find", "slice"),
    Column("pair", "text", "the pair that both conditions share"),
    Column("salience", "float", "IoU of the target and the saliency mask of the query as it is"),
)
SCHEMA = RecordSchema((*SLICES, *COUNTS, *SALIENT_COUNTS))
COMPARABLE = "beside the paper's: its split of the pairs is not published, so only the pattern compares"
EXAMPLES_PER_GALLERY = 4
EDGES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # of the bins of salience
MIN_PAIRS_PER_BIN = 5
OURS = "this model"
_CACHE = ArrayCache()


class BiasSaliencyOptions(StudyOptions):
    """Options of `hardlook bias saliency`."""

    command: ClassVar[str] = "hardlook bias saliency"

    saliency: str | None = option(
        None, "The saliency model (default u2netp; planted-saliency on the planted world).", changes="answers"
    )
    saliency_args: str = option("", "Arguments of the saliency model: key=value, commas between.", changes="answers")
    sigma: float = option(
        0.1, "Standard deviation of the Gaussian that blurs, as a share of the diagonal.", changes="answers", gt=0, le=1
    )
    salient_above: float = option(
        0.5, "A target is salient where mask and saliency mask have an IoU above this.", changes="scores", ge=0, lt=1
    )

    def saliency_model(self) -> AuxiliaryModel:
        """The saliency model of these options."""
        return AuxiliaryModel(self.saliency or ("u2netp" if self.data else "planted-saliency"), self.saliency_args)


def blur_salient_region(
    image: NDArray[np.uint8], salience_mask: NDArray[np.bool_], *, sigma_share: float = 0.1
) -> NDArray[np.uint8]:
    """The image with its salient region replaced by a wide Gaussian blur.

    `image` (H, W, 3) uint8; `salience_mask` (H, W) bool, True where the saliency map exceeds .5. The Gaussian's
    standard deviation is `sigma_share` of the image's diagonal (.1: 62 pixels in an image of 500 x 375). The kernel
    extends three standard deviations, and the image is mirrored at its border. Pixels outside the mask keep their
    exact values; the input is not modified.

    >>> image = np.zeros((20, 30, 3), np.uint8)
    >>> image[8:12, 10:20] = 200
    >>> blurred = blur_salient_region(image, image[..., 0] > 0)
    >>> int(blurred.max()) < 100, bool((blurred[:8] == 0).all())
    (True, True)
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise ValueError(f"image: expected (H, W, 3) of uint8, got {image.shape} of {image.dtype}")
    if salience_mask.shape != image.shape[:2] or salience_mask.dtype != np.bool_:
        raise ValueError(
            f"salience_mask: expected {image.shape[:2]} of bool, got {salience_mask.shape} of {salience_mask.dtype}"
        )
    if not sigma_share > 0:
        raise ValueError(f"sigma_share: expected more than 0, got {sigma_share}")
    blurred = image.copy()
    if not salience_mask.any():
        return blurred
    sigma = sigma_share * float(np.hypot(*image.shape[:2]))
    reach = int(np.ceil(3 * sigma))
    # Only what the kernel can reach from the region is blurred; a wide kernel over a whole photograph is slow.
    places = [np.flatnonzero(salience_mask.any(axis=axis)) for axis in (1, 0)]
    window = tuple(slice(max(int(one[0]) - reach, 0), int(one[-1]) + 1 + reach) for one in places)
    sharp = image[window].astype(np.float32)
    smooth = cv2.GaussianBlur(sharp, (2 * reach + 1, 2 * reach + 1), sigma, borderType=cv2.BORDER_REFLECT)
    inside = salience_mask[window]
    blurred[window][inside] = np.rint(smooth[inside]).astype(np.uint8)
    return blurred


def suppress_salience(image: Image, salient: Mask, sigma: float) -> Image:
    """The image (H, W, 3) with its salient region (H, W) blurred, also in the signature that planted models read."""
    blurred = blur_salient_region(image, salient, sigma_share=sigma)
    if not has_signature(image):
        return blurred
    truth = read_signature(image)
    return write_signature(blurred, truth.classes, truth.instances, np.zeros_like(truth.salient))


def list_sources(options: BiasSaliencyOptions) -> Mapping[str, Path | str]:
    """The files and models that the answers depend on: images and the saliency model."""
    return {**list_pair_sources(options), "saliency model": options.saliency_model().fingerprint("saliency")}


def list_units(options: BiasSaliencyOptions) -> UnitList:
    """Two units per pair, one per condition; units of one query image are adjacent."""
    opened = open_study_lists(options)
    units = []
    for listed in opened.lists:
        source = listed.settings.source
        settings = replace(listed.settings, saliency=options.saliency_model())
        for pair in listed.pairs:
            name = f"fold{pair.fold}-{pair.line:05d}"
            for condition in (PLAIN, SUPPRESSED):
                slices: Labels = {
                    "condition": condition,
                    "fold": pair.fold,
                    "class": source.class_of(pair.query),
                    "pair": name,
                    "sigma": options.sigma,
                }
                payload = OneShotPair(settings, pair.query, (pair.support,), slices)
                units.append(Unit(f"{name}-{condition}", payload, group=source.image_of(pair.query)))
    return UnitList(units, opened.left_out)


def prepare_unit(unit: Unit) -> Unit:
    """Read the pair, add its saliency mask and the salience of its target; blur the query if its unit is suppressed."""
    pair = add_salient_mask(read_pair(unit.payload, unit.id, _CACHE), _CACHE)
    image, salient, settings = pair.image, pair.salient, pair.settings
    assert image is not None and pair.truth is not None and salient is not None
    pair = replace(pair, slices={**pair.slices, "salience": mask_iou(pair.truth.mask, salient)})
    if pair.slices["condition"] == SUPPRESSED:
        sigma = float(pair.slices["sigma"])
        key = (settings.key, settings.size, settings.source.image_of(pair.query), settings.saliency, sigma, "blurred")
        pair = replace(pair, image=_CACHE.get_or_create(key, lambda: suppress_salience(image, salient, sigma)))
    return replace(unit, payload=pair)


def evaluate_units(units: Sequence[Unit], model: Any) -> Sequence[Record]:
    """Segment all queries in one call, then count pixels."""
    return [
        {**make_record(unit, mask, SLICES), **count_salient_pixels(unit.payload, mask)}
        for unit, mask in zip(units, predict_masks(units, model), strict=True)
    ]


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: BiasSaliencyOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scores = score_tallies(tally_records(records, options), options)
    left_out = _list_left_out(_mark_salient(records, options))
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=left_out)


def tally_records(records: pl.DataFrame, options: BiasSaliencyOptions) -> list[SumTally]:
    """The tallies of mIoU by condition and salience, then of what masks follow where the target is not salient."""
    import polars as pl

    marked = _mark_salient(records, options)
    sums = sum_pixels(marked, LABELS, void_ignored=options.void_ignored)

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        plain, blurred = sums.where(condition=PLAIN), sums.where(condition=SUPPRESSED)
        salient, other = sums.where(is_salient=True), sums.where(is_salient=False)
        chosen = {
            "base": plain,
            "sssi": (plain & salient) | (blurred & other),
            "suppressed-all": blurred,
            "salient": plain & salient,
            "non-salient": plain & other,
            "non-salient-sssi": blurred & other,
            "salient-suppressed": blurred & salient,
        }
        means = {name: mean_iou(sums, totals, where) for name, where in chosen.items()}
        scores = [NamedScore(name, {}, values, chosen[name]) for name, values in means.items()]
        for name, first, second in (
            ("gain", "sssi", "base"),
            ("non-salient-gain", "non-salient-sssi", "non-salient"),
            ("salience-gap", "salient", "non-salient"),
        ):
            # A gain is of the same pairs as they are and blurred, a gap of different pairs.
            counted = None if name == "salience-gap" else chosen[second]
            both = chosen[first] | chosen[second]
            scores.append(NamedScore(name, {}, means[first] - means[second], both, DIFFERENCE, counted))
        for name in ("base", "sssi"):
            scores += score_folds(name, sums, totals, chosen[name], {})
            scores += score_classes(name, sums, totals, chosen[name], {})
        return scores

    key = ("bias-saliency", "bootstrap")
    tallies = tally_scores(sums, name_scores, key=key, more=lambda one: {"comparable": "" if one.slice else COMPARABLE})
    others = marked.filter((pl.col("condition") == PLAIN) & ~pl.col("is_salient"))
    key = ("bias-saliency", "following")
    return tallies + tally_following(others, void_ignored=options.void_ignored, key=key, where={})


def compute_unit_qualities(records: pl.DataFrame, options: BiasSaliencyOptions) -> pl.DataFrame:
    """The IoU of each pair under each condition."""
    return records.select("unit", pair_iou_expression(void_ignored=options.void_ignored).alias(IOU.name))


def _mark_salient(records: pl.DataFrame, options: BiasSaliencyOptions) -> pl.DataFrame:
    import polars as pl

    # Polars sorts NaN above all numbers. Salience is NaN where neither target nor salient region has a pixel.
    above = pl.col("salience").is_not_nan() & (pl.col("salience") > options.salient_above)
    return records.with_columns(is_salient=above)


def _list_left_out(marked: pl.DataFrame) -> tuple[LeftOut, ...]:
    import polars as pl

    notes = []
    for value, name in ((True, "salient"), (False, "non-salient")):
        if not (marked["is_salient"] == value).any():
            notes.append(LeftOut(f"scores of {name} targets", 1, f"no target is {name} in these pairs"))
    undefined = marked.filter((pl.col("condition") == PLAIN) & pl.col("salience").is_nan())["unit"].to_list()
    if undefined:
        why = "neither target nor saliency mask has a pixel; they count as not salient"
        notes.append(LeftOut("targets without a salience", len(undefined), why, tuple(undefined[:EXAMPLES])))
    return (*notes, *note_empty_supports(marked, "pair"))


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The gap, the remedy, and the pairs that it changed."""
    pairs = add_pair_iou(records, scorecard)
    found = [_build_gap_section(pairs, scorecard), _build_suppression_section(scorecard), _build_change_section(pairs)]
    return [section for section in found if section is not None]


def _build_gap_section(pairs: pl.DataFrame, scorecard: Scorecard) -> Section:
    rows = [score_dot(scorecard.get(name), name, OURS) for name in ("salient", "non-salient")]
    rows += [
        Dot(half, value, group=f"{method}, published")
        for method, halves in read_numbers().salience.items()
        for half, value in halves.items()
    ]
    caption = "A target is salient where its mask and the saliency model's mask overlap by more than half."
    chart = DotChart("mIoU of salient and of other targets", caption, tuple(rows), axis="mIoU")
    gap = scorecard.get("salience-gap")
    verdict = judge_sign(
        gap,
        "Salient targets are found better.",
        "Salient targets are found less well.",
    )
    text = f"{verdict} The gap is {format_score(gap)}; a supervised model may have one too. "
    text += describe_following(scorecard)
    followed = build_following_chart(scorecard)
    blocks = (chart, *((followed,) if followed else ()), _build_curve(pairs))
    return Section("Salient against other targets", text.strip(), blocks)


def _build_curve(pairs: pl.DataFrame) -> CurveChart:
    lines = []
    for condition, name in ((PLAIN, "as it is"), (SUPPRESSED, "salient region blurred")):
        chosen = pairs.filter(pairs["condition"] == condition)
        salience, iou = chosen["salience"].to_numpy(), chosen["iou"].to_numpy()
        queries = chosen["query"].to_numpy()
        points = []
        for first, last in pairwise(EDGES):
            inside = (salience >= first) & ((salience < last) | (last == EDGES[-1]))
            if inside.sum() >= MIN_PAIRS_PER_BIN:
                rng = generator(0, "salience curve", condition, str(first))
                inside_queries = queries[inside].tolist()
                mean = bootstrap_mean(iou[inside], rng=rng, clusters=inside_queries, resamples=500, range=SHARE)
                bounds = (mean.interval.low, mean.interval.high)
                points.append((float(np.mean(salience[inside])), mean.value, *bounds))
        if points:
            lines.append(Line(name, *map(list, zip(*points, strict=True))))
    return CurveChart(
        "Mean IoU of single pairs by how salient the target is",
        "A line that climbs shows that salient targets are found better. Bands are intervals over query images.",
        lines,
        "IoU of target and saliency mask",
        "mean IoU of pairs",
    )


def _build_suppression_section(scorecard: Scorecard) -> Section:
    wanted = (
        ("base", "all, as they are"),
        ("sssi", "all, with SSSI for non-salient targets"),
        ("suppressed-all", "all, every query blurred"),
        ("non-salient", "non-salient, as they are"),
        ("non-salient-sssi", "non-salient, blurred"),
        ("salient", "salient, as they are"),
        ("salient-suppressed", "salient, blurred"),
    )
    chart = DotChart(
        "mIoU with and without suppression",
        "SSSI blurs the salient region of queries whose target is known not to be salient. Blurring a salient target "
        "takes it away: the last row is what a wrong guess costs.",
        tuple(score_dot(scorecard.get(name), label) for name, label in wanted),
        axis="mIoU",
    )
    rows = [
        (method, row["none"].mean, row["sssi"].mean, row["sssi"].mean - row["none"].mean)
        for method, row in read_numbers().remedies.items()
    ]
    table = Table(
        "Beside the published effect",
        "Means over folds. The paper's pairs differ from ours, so compare the direction and not the value.",
        ("model", "base", "with SSSI", "gain"),
        ((scorecard.model or OURS, *[scorecard.get(name).value for name in ("base", "sssi", "gain")]), *rows),
    )
    gain = scorecard.get("gain")
    verdict = judge_sign(
        gain,
        "Blurring what is salient helps: the distraction kept other targets from being found.",
        "Blurring what is salient hurts: this model does not lose its targets to what is salient.",
    )
    return Section("Does suppression help?", f"{verdict} The gain is {format_score(gain)}.", (chart, table))


def _build_change_section(pairs: pl.DataFrame) -> Section | None:
    import polars as pl

    wide = pairs.pivot(on="condition", index=["pair", "class", "query"], values="iou")
    if not {PLAIN, SUPPRESSED} <= set(wide.columns):
        return None
    change = wide.with_columns(change=pl.col(SUPPRESSED) - pl.col(PLAIN)).drop_nulls("change")
    blocks = []
    for title, caption, descending in (
        ("Found once the salient region is blurred", "Largest gains; each pair as it is, then blurred.", True),
        ("Lost when the salient region is blurred", "Largest losses; each pair as it is, then blurred.", False),
    ):
        changed = change.filter(pl.col("change") > 0 if descending else pl.col("change") < 0)
        ordered = changed.sort("change", "pair", descending=[descending, False]).unique("query", maintain_order=True)
        examples = [
            Example(f"{row['pair']}-{condition}", f"{row['class']}, {condition}: IoU {format_fixed(row[condition], 3)}")
            for row in ordered.head(EXAMPLES_PER_GALLERY).iter_rows(named=True)
            for condition in (PLAIN, SUPPRESSED)
        ]
        blocks.append(Gallery(title, caption, tuple(examples)))
    return Section("Pairs that change", "", tuple(block for block in blocks if block.examples))


def describe_unit(record: Record) -> str:
    """Whether the query was blurred, how salient its target is, and what the mask follows."""
    seen = "salient region blurred" if record["condition"] == SUPPRESSED else "query as it is"
    return describe_pair(record, f"{seen}, target salient by {format_fixed(record['salience'], 2)}")


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """Support, what the model saw with the truth, and its prediction."""
    return draw_pair(prepare_unit(unit).payload, record, "query as seen, and truth")


CARD = BenchmarkCard(
    name="bias-saliency",
    version="1",
    title="Saliency bias and its suppression",
    summary="Salient against other targets, and whether blurring what is salient (SSSI) finds the others.",
    role="one-shot-segmenter",
    default_model="planted-one-shot",
    citation="What Ails One-Shot Image Segmentation: A Data Perspective, Tables 2B and 3.",
    scores=(
        ScoreMeaning("base", "base", "mIoU of all pairs as they are", headline=True),
        ScoreMeaning("sssi", "with SSSI", "mIoU when queries with a non-salient target are blurred", headline=True),
        ScoreMeaning("gain", "gain", "mIoU with SSSI minus mIoU without", headline=True, ranked=False),
        ScoreMeaning("salient", "salient", "mIoU of salient targets"),
        ScoreMeaning("non-salient", "non-salient", "mIoU of the other targets"),
        ScoreMeaning(
            "salience-gap", "salience gap", "mIoU of salient minus mIoU of other targets; near 0 is even", ranked=False
        ),
        *FOLLOWING_SCORES,
        ScoreMeaning("non-salient-sssi", "non-salient, blurred", "mIoU of the other targets in blurred queries"),
        ScoreMeaning(
            "non-salient-gain",
            "gain of the others",
            "what blurring adds to the mIoU of the other targets",
            ranked=False,
        ),
        ScoreMeaning("salient-suppressed", "salient, blurred", "mIoU of salient targets in blurred queries"),
        ScoreMeaning("suppressed-all", "all blurred", "mIoU when every query is blurred"),
    ),
    qualities=(IOU,),
    published=list_saliency_results,
    published_tables=lambda: list_tables("table-2b", "table-3"),
    dials=(Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "gain"),),
    example="hardlook bias saliency --data voc=VOC2012 --model prototype --saliency u2netp --out bias/saliency",
)


BIAS_SALIENCY = Benchmark(
    card=CARD,
    options=BiasSaliencyOptions,
    schema=SCHEMA,
    list_units=list_units,
    evaluate=evaluate_units,
    score=partial(score_records, CARD),
    report=build_sections,
    prepare=prepare_unit,
    sources=list_sources,
    readings=shared_readings,
    pictures=draw_unit,
    tallies=tally_records,
    qualities=compute_unit_qualities,
    caption=describe_unit,
    list_folds=list_study_folds,
)
