"""Published TOSS numbers, and whether a score of ours is comparable with them.

The numbers are those of "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B) and of its
supplement: `published/*.csv` holds every table as printed. `read_numbers` gives them as fractions of 1 (mutual
information in nats) with folds 0 to 3, `list_results` as rows of a leaderboard.

>>> numbers = read_numbers()
>>> numbers.tier_1["HSNet"]["hard_nsal"].folds, numbers.scores["Baseline"]["lca"]
((0.22, 0.27, 0.26, 0.3), 0.5859)
>>> [table.name for table in list_tables()][:4]
['table-1', 'table-2a', 'table-2b', 'table-3']

How the tables fit together: LCA and HCA of all folds follow from the splits within rounding. SCS follows from the
levels in the reading `paper` for Baseline, RPMM and RePRI, for PFENet only from its printed means, for HSNet not at
all. GS of Baseline lies .5 above the mean of its folds. Printed means that contradict their folds are kept: L2+L3 of
Baseline, PFENet and RePRI, and L4 of HSNet. Where two tables disagree (fold 0 of PFENet is .5287 and .5286), both
values are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hardlook.errors import OptionError
from hardlook.harness.published import Published, PublishedResult, PublishedTable, fraction, read_published
from hardlook.toss.options import COGNIZANCE, COMPLEXITY, FIXED, GENERAL, SIZES, TossOptions
from hardlook.toss.planted_pairs import PLANTED

if TYPE_CHECKING:
    import polars as pl

METHODS = ("Baseline", "PFENet", "RPMM", "RePRI", "HSNet")
REMEDIES = {"none": "", "leave-out": " with leave-out training", "sgtss": " with SGTSS", "sssi": " with SSSI"}
# Our names for the printed rows.
_SPLITS = {
    "easy_sal": "easy+salient",
    "easy_nsal": "easy+non-salient",
    "hard_sal": "hard+salient",
    "hard_nsal": "hard+non-salient",
    "lca": "LCA",
    "hca": "HCA",
}
_LEVELS = ("L0", "L1", "L2+L3", "L4", "L5", "L6")
_REMEDY_METHODS = {"Baseline": "Base", "RPMM": "RPMM", "PFENet": "PFENet"}
_REMEDY_ROWS = {
    "none": ("table-1", ""),
    "leave-out": ("table-1", "+Leaveout"),
    "sgtss": ("table-1", "+SGTSS"),
    "none, table 3": ("table-3", ""),
    "sssi": ("table-3", "+SSSI"),
}
_SUPPORTS = {
    "correct": "correct support",
    "other-class": "class differs",
    "no-mask": "null mask",
    "no-image": "null image",
    "other-class-no-mask": "class differs + null mask",
}
_ATTRIBUTES = {
    "iou": "IoU of a supervised DeepLabV3+",
    "area_ratio": "size",
    "offset_ratio": "centeredness",
    "saliou": "salience",
    "blob_count": "blobs",
    "distractor_weight": "distractor weights",
}


@dataclass(frozen=True)
class FoldResult:
    """A printed row: the value of each of the four folds, and the mean that is printed beside them."""

    folds: tuple[float, ...]
    mean: float


@dataclass(frozen=True)
class ClassResult:
    """A class of the supplement's Table 1: IoU with and without leave-out training, and its share as background."""

    name: str
    fold: int
    base: float
    base_leave_out: float
    rpmm: float
    rpmm_leave_out: float
    distractors: float


@dataclass(frozen=True)
class WeightStudy:
    """How a tier-1 weight was derived: mean salience times supervised mIoU, its share, times 5, then adjusted."""

    salience: float
    supervised_miou: float
    product_share: float
    proportion: float
    adjusted: float


@dataclass(frozen=True)
class PublishedNumbers:
    """The numbers of the paper by method, then by split, level, remedy or score.

    `remedies` are of the fixed pairs of PASCAL-5i; "none, table 3" is the base row of Table 3. `supports` are those of
    the baseline by condition, `information` is by column of the attribute table, `agreement` in percent by encoder.
    """

    tier_1: Mapping[str, Mapping[str, FoldResult]]
    tier_2: Mapping[str, Mapping[str, FoldResult]]
    tier_3: Mapping[str, FoldResult]
    scores: Mapping[str, Mapping[str, float]]
    remedies: Mapping[str, Mapping[str, FoldResult]]
    supports: Mapping[str, FoldResult]
    salience: Mapping[str, Mapping[str, float]]
    information: Mapping[str, float]
    agreement: Mapping[str, float]
    weights: Mapping[str, WeightStudy]
    classes: tuple[ClassResult, ...]


def list_tables(*names: str) -> tuple[PublishedTable, ...]:
    """The printed tables of these names (`table-4`); without names all of them, those of the supplement last."""
    tables = _read().tables
    return tuple(tables[name] for name in names or tables)


@cache
def read_numbers() -> PublishedNumbers:
    """All published numbers in the scale of our scores."""
    published = _read()
    number = published.number
    return PublishedNumbers(
        tier_1={
            method: {name: _read_folds("supplement-2", f"{method}|{row}") for name, row in _SPLITS.items()}
            for method in METHODS
        },
        tier_2={
            method: {level: _read_folds("supplement-3", f"{method}|{level}") for level in _LEVELS} for method in METHODS
        },
        tier_3={method: _read_folds("supplement-4", method) for method in METHODS},
        scores={
            method: {name.lower(): fraction(number("table-4", method, name)) for name in ("LCA", "HCA", "SCS", "GS")}
            for method in METHODS
        },
        remedies={
            method: {name: _read_folds(table, row + remedy) for name, (table, remedy) in _REMEDY_ROWS.items()}
            for method, row in _REMEDY_METHODS.items()
        },
        supports={name: _read_folds("table-2a", row) for name, row in _SUPPORTS.items()},
        salience={
            method: {half: fraction(number("table-2b", method, half)) for half in ("salient", "non-salient")}
            for method in published.rows("table-2b")
        },
        information={name: number("information", row, "printed") for name, row in _ATTRIBUTES.items()},
        agreement={encoder: number("agreement", encoder, "agreement") for encoder in published.rows("agreement")},
        weights={row[0]: WeightStudy(*row[1:]) for row in published.tables["weights"].rows},  # type: ignore[misc,arg-type]
        classes=tuple(
            ClassResult(str(name), int(fold) - 1, *(fraction(float(value)) for value in values))  # type: ignore[arg-type]
            for name, fold, *values in published.tables["supplement-1"].rows
        ),
    )


def _read() -> Published:
    return read_published("hardlook.toss")


def _read_folds(table: str, row: str) -> FoldResult:
    values = [_read().number(table, row, column) for column in ("fold 1", "fold 2", "fold 3", "fold 4", "mean")]
    # The paper prints percent, its supplement fractions.
    *folds, mean = map(fraction, values) if table.startswith("table-") else values
    return FoldResult(tuple(folds), mean)


_NETWORKS = "the networks are those that the paper trained"
_STUDY_NOTE = f"only the pattern can be compared: the pairs behind the values are not published; {_NETWORKS}"


@cache
def list_results() -> tuple[PublishedResult, ...]:
    """What the paper prints in terms of our scores and slices.

    Where Table 4 and the supplement print the same score, the longer figure of Table 4 is used.

    >>> len(list_results()), list_results()[0].source, dict(list_results()[5].where)
    (335, 'Table 4', {'fold': '0'})
    """
    numbers = read_numbers()
    note = f"comparable with a run of all the published pairs of all four folds; {_NETWORKS}"
    results = [PublishedResult(method, "Table 4", numbers.scores[method], note) for method in METHODS]
    note = f"comparable with a run of all the published pairs; {_NETWORKS}"
    for method in METHODS:
        for fold in range(4):
            values = {name: numbers.tier_1[method][name].folds[fold] for name in ("lca", "hca")}
            values["gs"] = numbers.tier_3[method].folds[fold]
            results.append(PublishedResult(method, "supplement, Tables 2 and 4", values, note, {"fold": str(fold)}))
    for table, key, source in (
        (numbers.tier_1, "split", "supplement, Table 2"),
        (numbers.tier_2, "level", "supplement, Table 3"),
    ):
        results += [
            PublishedResult(method, source, {"miou": value}, note, {**where, key: name})
            for method in METHODS
            for name, row in table[method].items()
            if name not in ("lca", "hca")
            for where, value in _mean_and_folds(row)
        ]
    fixed = f"comparable with a run of all the fixed pairs of PASCAL-5i; {_NETWORKS}"
    results += [
        PublishedResult(
            method + suffix,
            "Table 3, fixed pairs" if remedy == "sssi" else "Table 1, fixed pairs",
            {"miou": value},
            fixed,
            where,
        )
        for method, rows in numbers.remedies.items()
        for remedy, suffix in REMEDIES.items()
        for where, value in _mean_and_folds(rows[remedy])
    ]
    return tuple(results)


@cache
def list_support_results() -> tuple[PublishedResult, ...]:
    """Table 2A in terms of the scores of `hardlook bias support`."""
    supports = read_numbers().supports
    values: list[tuple[dict[str, float], dict[str, str]]] = [({name: row.mean for name, row in supports.items()}, {})]
    values += [
        ({"miou": value}, {"support": name, "fold": str(fold)})
        for name, row in supports.items()
        for fold, value in enumerate(row.folds)
    ]
    return tuple(PublishedResult("Baseline", "Table 2A", scores, _STUDY_NOTE, where) for scores, where in values)


@cache
def list_saliency_results() -> tuple[PublishedResult, ...]:
    """Tables 2B and 3 in terms of the scores of `hardlook bias saliency`.

    >>> [row.values["non-salient"] for row in list_saliency_results() if "non-salient" in row.values]
    [0.383, 0.332, 0.382]
    """
    numbers = read_numbers()
    return (
        *(PublishedResult(method, "Table 2B", values, _STUDY_NOTE) for method, values in numbers.salience.items()),
        *(
            PublishedResult(method, "Table 3", {"base": base, "sssi": sssi}, _STUDY_NOTE, where)
            for method, rows in numbers.remedies.items()
            for (where, base), (_, sssi) in zip(
                _mean_and_folds(rows["none, table 3"]), _mean_and_folds(rows["sssi"]), strict=True
            )
        ),
    )


def _mean_and_folds(row: FoldResult) -> Iterator[tuple[dict[str, str], float]]:
    """The slice and value of the printed mean, then of each fold."""
    yield {}, row.mean
    for fold, value in enumerate(row.folds):
        yield {"fold": str(fold)}, value


RESEMBLING_READINGS = ("paper", "released", "ours")


def list_resembling_classes(reading: str) -> frozenset[str]:
    """The classes of FSS-1000 that resemble a class of VOC, and that tier 3 therefore drops.

    As printed in section 4.6 of the supplement (`paper`), as in the released tier (`released`), which keeps
    banana_boat, or corrected (`ours`): germain_pointer is not a class, german_pointer is meant.

    >>> [len(list_resembling_classes(reading)) for reading in RESEMBLING_READINGS]
    [222, 221, 222]
    >>> ["german_pointer" in list_resembling_classes(reading) for reading in RESEMBLING_READINGS]
    [False, False, True]
    """
    printed = frozenset(_read().rows("removed"))
    if reading == "paper":
        return printed
    if reading == "released":
        return printed - {"banana_boat"}
    if reading == "ours":
        return printed - {"germain_pointer"} | {"german_pointer"}
    remedy = f"one of {', '.join(RESEMBLING_READINGS)}"
    raise OptionError(f"--reading resembling={reading}: no such reading", remedy=remedy)


NO_FOLD = -1  # of tier 3 when one model ran

COMPARABLE = (
    "comparable with the published table: the same pairs; the paper does not say at which size it counts, nor what it "
    "does with void pixels"
)


@dataclass(frozen=True)
class PairsRun:
    """Which pairs ran: how they differ from the published ones (`listing`, empty if they do not); folds by tier."""

    listing: str
    folds: Mapping[int, tuple[int, ...]]


def find_pairs_run(records: pl.DataFrame) -> PairsRun:
    """Which pairs the records are of."""
    folds = records.select("tier", "fold").unique().sort("tier", "fold")
    tiers = {tier: tuple(folds.filter(folds["tier"] == tier)["fold"]) for tier in folds["tier"].unique()}
    kinds = sorted(records["listing"].unique().to_list())
    listing = ""
    if kinds == [PLANTED]:
        listing = "the pairs are of the planted world"
    elif any(kind.startswith("built") for kind in kinds):
        listing = "the pairs are not the published ones"
    elif any(kind != "published" for kind in kinds):
        listing = f"only a part of the published pairs ran ({len(records):,} pairs in all)"
    return PairsRun(listing, tiers)


def describe_comparability(name: str, where: Mapping[str, str], ran: PairsRun, options: TossOptions) -> str:
    """One sentence for a score that the paper prints, empty for others unless the pairs themselves are others.

    >>> planted = PairsRun("the pairs are of the planted world", {1: (0, 1)})
    >>> describe_comparability("salient", {}, planted, TossOptions())
    'not comparable: the pairs are of the planted world'
    >>> describe_comparability("iou", {"class": "cat"}, PairsRun("", {}), TossOptions())
    ''
    """
    tier = _find_printed_tier(name, where)
    differences: list[str] = []
    if ran.listing:
        differences = [ran.listing]
    elif tier is not None:
        differences = _list_differences(name, where, tier, ran, options)
    elif name in ("salient", "non-salient"):
        differences = ["the pairs behind the paper's number are not published"]
    if differences:
        return f"not comparable: {'; '.join(differences)}"
    return COMPARABLE if tier is not None else ""


def _list_differences(name: str, where: Mapping[str, str], tier: int, ran: PairsRun, options: TossOptions) -> list[str]:
    tested = {
        "the paper averages over folds 0 to 3": "fold" not in where
        and ran.folds.get(tier) not in ((0, 1, 2, 3), (NO_FOLD,)),
        "the paper has one support per pair": where.get("shots", str(options.shots[0])) != "1",
        "counted with void=background": not options.void_ignored,
        f"counted with {SIZES[options.size]}": options.size != "original",
        "the published SCS follows scs=paper": name == "scs" and options.scs_reading != "paper",
        "an encoder separates L2 from L3 here, and the published table pools them": tier == COGNIZANCE
        and bool(options.encoder)
        and (name == "scs" or where.get("level") in ("L2", "L3")),
        "the published pairs of two classes are left out (mixed=ours)": tier == GENERAL and not options.mixed_kept,
        "the paper averages over the models of four folds, and one model ran": tier == GENERAL
        and ran.folds.get(tier) == (NO_FOLD,),
        "the paper prints PASCAL-5i alone": tier == FIXED and "coco" in options.data,
    }
    return [sentence for sentence, differs in tested.items() if differs]


def _find_printed_tier(name: str, where: Mapping[str, str]) -> int | None:
    """The tier whose table prints this score; None if no table does."""
    if "class" in where:
        return None
    if name == "miou":
        kind = next((key for key in where if key not in ("fold", "shots")), "")
        return {"split": COMPLEXITY, "level": COGNIZANCE, "tier": GENERAL}.get(kind, FIXED)
    return {"lca": COMPLEXITY, "hca": COMPLEXITY, "scs": COGNIZANCE, "gs": GENERAL}.get(name)
