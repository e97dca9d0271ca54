"""Building tiers: from a dataset and three models, or from memberships alone, to the folder of lists and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hardlook.data.class_masks import ClassMaskSource
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.data.toss_pairs import Pair
from hardlook.errors import OptionError
from hardlook.fingerprints import hash_file
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import StartProgress
from hardlook.models.named_model import NamedModel
from hardlook.toss.tiers.attribute_report import draw_gallery_masks
from hardlook.toss.tiers.attributes import (
    AttributeModels,
    AttributeRow,
    FailedImage,
    assign_partitions,
    copy_table,
    fingerprint_data,
    measure_table,
    read_attributes,
)
from hardlook.toss.tiers.build_report import BuiltReport, build_sections
from hardlook.toss.tiers.dataset import OpenedData, list_unreadable_images, prepare_models
from hardlook.toss.tiers.folder import TABLE, Memberships, check_output_folder, write_lists, write_manifest
from hardlook.toss.tiers.rules import (
    EASY_ABOVE,
    SALIENT_ABOVE,
    build_generalisation,
    build_tiers,
    draw_similarity_pools,
    drop_resembling_classes,
)
from hardlook.toss.tiers.similarity import encode_images, pair_cosines, split_at_mean

GENERAL_TABLE = TABLE.with_name("general_stats.csv")


@dataclass(frozen=True)
class BuildPlan:
    """What to build from, and how.

    `attributes` is a finished table, in place of the saliency and the supervised model; `memberships` replace the
    thresholds.
    """

    opened: OpenedData
    encoder: NamedModel
    saliency: NamedModel | None = None
    supervised: NamedModel | None = None
    attributes: Path | None = None
    memberships: Memberships | None = None
    fss: ClassMaskSource | None = None
    resembling: frozenset[str] = frozenset()
    resembling_reading: str = ""
    folds: int = 4
    seed: int = 0
    name: str = "own"


def build_from_data(plan: BuildPlan, out: Path, start: StartProgress) -> tuple[dict[str, Any], BuiltReport]:
    """Measure, make the lists, write them with manifest and report; returns manifest and report."""
    check_output_folder(out)
    source = plan.opened.source
    data = fingerprint_data(source, out)
    measured = _measure_masks(plan, out, data, start)
    images = {row.image for row in measured.rows}
    tokens = [row.filename for row in measured.rows]
    encoded = encode_images(source, tokens, plan.encoder.model, advance=start(len(images), 0))
    rows = [row for row in measured.rows if row.image in encoded.vectors]
    known = plan.memberships.partitions if plan.memberships else assign_partitions(rows)
    partitions = {row.filename: known[row.filename] for row in rows if row.filename in known}
    class_of = {row.filename: source.class_of(row.filename) for row in rows}
    by_class: dict[str, list[str]] = {name: [] for name in source.classes}
    for token, name in class_of.items():
        by_class[name].append(token)
    pools = draw_similarity_pools(by_class, seed=plan.seed)
    cosines = {name: pair_cosines(encoded.vectors, source.image_of, pool) for name, pool in pools.items()}
    similar, mean = split_at_mean(pools, cosines)
    built = build_tiers(source.classes, class_of, partitions, similar, folds=plan.folds, seed=plan.seed)
    general = _build_general_tier(plan, out, start)
    report = BuiltReport(
        built,
        rows,
        partitions,
        {name: own.tolist() for name, own in cosines.items() if own.size},
        mean,
        general.counts,
        general.dropped,
        (*plan.opened.failures, *measured.failures, *encoded.failures, *general.failures),
        len(rows) - len(partitions),
        measured.without_row,
        plan.memberships is not None,
    )
    thresholds = {} if plan.memberships else {"easy_above": EASY_ABOVE, "salient_above": SALIENT_ABOVE}
    models = (("saliency", plan.saliency), ("supervised", plan.supervised), ("encoder", plan.encoder))
    facts = {
        "seed": plan.seed,
        "models": {role: model.facts() for role, model in models if model is not None},
        "data": data,
        "attributes": measured.table,
        "memberships": _membership_facts(plan.memberships, len(partitions)) if plan.memberships else None,
        "thresholds": {**thresholds, "similar_above": None if mean != mean else mean},
        "masks": len(rows),
        "partitioned": len(partitions),
        "masks_without_a_row": list(measured.without_row),
        "resembling": {"reading": plan.resembling_reading, "dropped": list(general.dropped)} if plan.fss else None,
        "failures": [asdict(failure) for failure in report.failures],
    }
    analysis = [out / TABLE, *([out / GENERAL_TABLE] if plan.fss else [])]
    return _write_folder(out, report, general.pairs, plan.name, facts, analysis, source), report


def build_from_memberships(
    memberships: Memberships, classes: tuple[str, ...], out: Path, *, folds: int, seed: int, name: str
) -> tuple[dict[str, Any], BuiltReport]:
    """Tier 1 and the fixed lists from memberships, without an image."""
    check_output_folder(out)
    parts = {token: parse_numbered_token(token) for token in memberships.partitions}
    class_of = {token: classes[number - 1] for token, (number, _) in parts.items()}
    built = build_tiers(classes, class_of, memberships.partitions, {}, folds=folds, seed=seed)
    # Tier 2 needs images: to find similar ones, and to transform them.
    built = replace(
        built,
        lists={key: pairs for key, pairs in built.lists.items() if key[0] != 2},
        levels={},
        unfilled=tuple(one for one in built.unfilled if not one.part.startswith("tier 2")),
    )
    rows = [AttributeRow(token, class_name=class_of[token], image=image) for token, (_, image) in parts.items()]
    report = BuiltReport(built, rows, memberships.partitions, {}, float("nan"), {}, (), (), 0, (), True)
    facts = {
        "seed": seed,
        "models": {},
        "data": {},
        "attributes": None,
        "memberships": _membership_facts(memberships, len(rows)),
        "thresholds": {},
        "masks": len(rows),
        "partitioned": len(rows),
        "masks_without_a_row": [],
        "resembling": None,
        "failures": [],
    }
    return _write_folder(out, report, (), name, facts, [], None), report


@dataclass(frozen=True)
class _MeasuredMasks:
    """Rows of masks of the data; of a finished table also its name and hash, and the masks without a row in it."""

    rows: list[AttributeRow]
    failures: tuple[FailedImage, ...] = ()
    table: Mapping[str, Any] | None = None
    without_row: tuple[str, ...] = ()


@dataclass(frozen=True)
class _GeneralTier:
    """Tier 3: its pairs, how many per class, the classes dropped, and what failed."""

    pairs: tuple[Pair, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    failures: tuple[FailedImage, ...] = ()


def _measure_masks(plan: BuildPlan, out: Path, data: Mapping[str, str], start: StartProgress) -> _MeasuredMasks:
    """The attributes of every mask, from the models or from a finished table."""
    if plan.attributes is not None:
        return _read_finished_table(plan, plan.attributes, out)
    source = plan.opened.source
    models, fingerprints = prepare_models(source, plan.saliency, plan.supervised)
    identity = {"data": dict(data), **fingerprints}
    table = measure_table(out / TABLE, source, plan.opened.tokens, models, identity, progress=start)
    return _MeasuredMasks(list(table.rows), table.failures)


def _read_finished_table(plan: BuildPlan, path: Path, out: Path) -> _MeasuredMasks:
    source, wanted = plan.opened.source, set(plan.opened.tokens)
    every = read_attributes(path)
    digest = hash_file(path)
    # The published table names neither classes nor images.
    rows = [
        replace(row, class_name=source.class_of(row.filename), image=source.image_of(row.filename))
        for row in every
        if row.filename in wanted
    ]
    if not rows:
        remedy = "give the table that `hardlook attributes` made of the same data"
        raise OptionError(f"--attributes {path}: no row is a mask of the data", remedy=remedy)
    copy_table(out / TABLE, rows, digest)
    present = {row.filename for row in rows}
    facts = {"name": path.name, "sha256": digest, "rows": len(every), "rows_of_other_masks": len(every) - len(rows)}
    return _MeasuredMasks(rows, (), facts, tuple(token for token in plan.opened.tokens if token not in present))


def _build_general_tier(plan: BuildPlan, out: Path, start: StartProgress) -> _GeneralTier:
    """Tier 3 from FSS-1000, if it is given."""
    if plan.fss is None:
        return _GeneralTier()
    if plan.saliency is None:
        raise OptionError("tier 3 needs a saliency model", remedy="give --saliency MODEL")
    kept = set(drop_resembling_classes(plan.fss.classes, plan.resembling))
    tokens = [token for token in plan.fss.tokens() if plan.fss.class_of(token) in kept]
    identity = {"data": fingerprint_data(plan.fss, out), "saliency": plan.saliency.identity.fingerprint()}
    models = AttributeModels(plan.saliency.model)
    table = measure_table(out / GENERAL_TABLE, plan.fss, tokens, models, identity, progress=start)
    salience: dict[str, dict[str, float]] = {}
    for row in table.rows:
        if row.saliou is not None:
            salience.setdefault(row.class_name, {})[row.filename] = row.saliou
    drawn = build_generalisation(salience, plan.resembling, seed=plan.seed)
    pairs = tuple(Pair(query, support, 3, -1) for own in drawn.values() for query, support in own)
    dropped = tuple(name for name in plan.fss.classes if name not in kept)
    unread = [failure for failure in list_unreadable_images(plan.fss) if failure.image.rpartition("/")[0] in kept]
    return _GeneralTier(pairs, {name: len(own) for name, own in drawn.items()}, dropped, (*unread, *table.failures))


def _membership_facts(memberships: Memberships, used: int) -> dict[str, Any]:
    """Which lists the partitions come from, and how many of their masks were used."""
    return {
        "lists": dict(memberships.lists),
        "masks": len(memberships.partitions),
        "masks_used": used,
        "supports_without_a_partition": list(memberships.unknown),
    }


def _write_folder(
    out: Path,
    report: BuiltReport,
    general: tuple[Pair, ...],
    name: str,
    facts: Mapping[str, Any],
    analysis: list[Path],
    source: ClassMaskSource | None,
) -> dict[str, Any]:
    """Write lists, manifest and page; return the manifest."""
    from hardlook.report.page import render_study

    files = write_lists(out, report.built, general, name)
    manifest = write_manifest(out, report.built, general, [*files, *analysis], facts)
    sections = build_sections(report)
    pairs = sum(len(own) for own in report.built.lists.values()) + len(general)
    provenance = ("schema", "seed", "models", "data", "attributes", "memberships", "thresholds", "files")
    page = render_study(
        sections,
        title="Tiers for one-shot segmentation",
        summary=f"{pairs:,} pairs from {len(report.rows):,} masks of {sum(map(len, report.built.folds))} classes, by "
        "the rule of TOSS. `hardlook run toss --data pairs=FOLDER` scores a model on them. Such scores are not "
        "comparable with published numbers.",
        provenance={key: manifest[key] for key in provenance},
        pictures=draw_gallery_masks(source, sections) if source else None,
    )
    write_atomically(out / "report.html", page)
    return manifest
