"""Single pairs in reports: one sentence about each, its pictures, and galleries of found and missed pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.caching import ArrayCache
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import Example, Gallery, Picture
from hardlook.toss.evaluation import NO_SALIENCY, decode_prediction
from hardlook.toss.pairs import OneShotPair, read_pair
from hardlook.toss.pixel_sums import pair_iou_expression

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6
FOUND_FROM = 0.5  # the IoU that detection benchmarks ask for
MIN_TRUTH = 0.005  # of the picture: a target of a few pixels shows nothing
MAX_SUPPORTS = 3


def describe_pair(record: Record, setting: str, *, spurious: bool = False) -> str:
    """One sentence about a pair; `setting` is the condition, `spurious` means that the support lacks the class.

    The IoU leaves pixels out that the truth leaves open; where they were predicted, the IoU with them follows.

    >>> counts = {"intersection": 3, "predicted": 5, "truth": 4, "predicted_void": 1}
    >>> describe_pair({"class": "cat", "salient": 9, "predicted_salient": 4, **counts}, "hard, not salient")
    'The mask for cat (hard, not salient) has an IoU of 0.600 (0.500 with void) and of 0.400 with what is salient.'
    >>> describe_pair({"class": "cat", **counts, "predicted_void": 0}, "L5 no mask", spurious=True)
    'The mask for cat (L5 no mask) has an IoU of 0.500 with what the support does not show: 0 is right.'
    """
    subject = f"The mask for {record['class']} ({setting})"
    hits, predicted, void = (int(record[name]) for name in ("intersection", "predicted", "predicted_void"))
    union = predicted + int(record["truth"]) - hits
    if not predicted:
        outcome = "is empty, and there is nothing to find" if not union else "is empty"
        return f"{subject} {outcome}{': right, since the support does not show the class' if spurious else ''}."
    if union == void:
        return f"{subject} lies where the truth is left open, and there is nothing to find."
    text = f"{subject} has an IoU of {format_fixed(hits / (union - void), 3)}"
    text += f" ({format_fixed(hits / union, 3)} with void)" if void else ""
    if spurious:
        return f"{text} with what the support does not show: 0 is right."
    salient = int(record.get("salient", NO_SALIENCY))
    if salient == NO_SALIENCY:
        return f"{text}."
    both = int(record["predicted_salient"])
    return f"{text} and of {format_fixed(both / (predicted + salient - both), 3)} with what is salient."


def draw_pair(pair: OneShotPair, record: Record, query_title: str = "query and truth") -> list[Picture]:
    """Of a read pair: the supports (three at most), the query with its truth, and the query with the prediction."""
    assert pair.image is not None and pair.truth is not None
    pictures = [Picture("support", support.image, mask=support.mask) for support in pair.support[:MAX_SUPPORTS]]
    pictures.append(Picture(query_title, pair.image, mask=pair.truth.mask))
    if record["prediction"]:
        mask = decode_prediction(record["prediction"], pair.truth.mask.shape)
        pictures.append(Picture("prediction", pair.image, mask=mask))
    return pictures


def draw_unit(unit: Unit, record: Record, cache: ArrayCache) -> list[Picture]:
    """The pictures of a pair, read from its files."""
    return draw_pair(read_pair(unit.payload, unit.id, cache), record)


def add_pair_iou(records: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """The records whose target is large enough to see, with a column `iou` under the scorecard's reading of void."""
    import polars as pl

    ignored = any(reading.name == "void" and reading.value == "ignored" for reading in scorecard.readings)
    return records.with_columns(iou=pair_iou_expression(void_ignored=ignored)).filter(
        pl.col("iou").is_not_nan() & (pl.col("truth") >= MIN_TRUTH * pl.col("pixels"))
    )


def build_gallery(pairs: pl.DataFrame, title: str, caption: str, label: str, *, found: bool = True) -> Gallery:
    """Found pairs, highest IoU first, or missed ones, lowest first; one per query image, `label` is a column to name.

    A page that calls a pair found or missed must not show one that is not, so both may be empty.
    """
    ordered = pairs.filter((pairs["iou"] >= FOUND_FROM) == found).sort("iou", "unit", descending=[found, False])
    one_each = ordered.unique(subset="query", keep="first", maintain_order=True).head(SHOWN)
    examples = tuple(
        Example(
            row["unit"], f"{row['class']}{', ' + row[label] if row[label] else ''}: IoU {format_fixed(row['iou'], 3)}"
        )
        for row in one_each.iter_rows(named=True)
    )
    return Gallery(title, caption, examples)
