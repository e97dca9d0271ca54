"""From a dataset and three models to the folder of its tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.commands.build.inputs import NamedModel, Start, label_indices
from hardlook.errors import OptionError
from hardlook.tiers.built_tiers import TierInputs, build_tiers
from hardlook.tiers.partitions import EASY_ABOVE, SALIENT_ABOVE, partition_of

if TYPE_CHECKING:
    from hardlook.commands.build.sections import BuiltReport
    from hardlook.data.class_masks import ClassMasks
    from hardlook.data.toss_pairs import Pair
    from hardlook.tiers.attribute_rows import AttributeRow
    from hardlook.tiers.attribute_table import FailedImage


@dataclass(frozen=True)
class BuildPlan:
    """What to build from, and how; `attributes` is a ready table, in place of the first two models."""

    source: ClassMasks
    tokens: tuple[str, ...]
    encoder: NamedModel
    saliency: NamedModel | None = None
    supervised: NamedModel | None = None
    attributes: Path | None = None
    fss: ClassMasks | None = None
    resembling: frozenset[str] = frozenset()
    resembling_reading: str = ""
    folds: int = 4
    seed: int = 0
    name: str = "own"


@dataclass(frozen=True)
class General:
    """Tier 3: its pairs, how many a class, the classes dropped, and what failed."""

    pairs: tuple[Pair, ...] = ()
    counts: Mapping[str, int] | None = None
    dropped: tuple[str, ...] = ()
    failures: tuple[FailedImage, ...] = ()


def build_toss(plan: BuildPlan, out: Path, start: Start) -> tuple[dict[str, Any], BuiltReport]:
    """Measure, make the lists, write them with manifest and report; returns manifest and what the report shows."""
    from hardlook.commands.build.sections import BuiltReport
    from hardlook.tiers.built_folder import write_lists, write_manifest
    from hardlook.tiers.image_similarity import encode_images, pair_cosines, split_at_mean
    from hardlook.tiers.resumed_table import data_fingerprints
    from hardlook.tiers.support_cognizance import similarity_pool

    data = data_fingerprints(plan.source, out)
    rows, failures = _attributes(plan, out, data, start)
    images = {row.image for row in rows}
    encoded = encode_images(
        plan.source, [row.filename for row in rows], plan.encoder.model, advance=start(len(images), 0)
    )
    rows = [row for row in rows if row.image in encoded.vectors]
    partitions = {
        row.filename: partition_of(row.iou, row.saliou)
        for row in rows
        if row.iou is not None and row.saliou is not None
    }
    class_of = {row.filename: plan.source.class_of(row.filename) for row in rows}
    by_class: dict[str, list[str]] = {name: [] for name in plan.source.classes}
    for token, name in class_of.items():
        by_class[name].append(token)
    pools = similarity_pool(by_class, seed=plan.seed)
    cosines = {name: pair_cosines(encoded.vectors, plan.source.image_of, pool) for name, pool in pools.items()}
    similar, mean = split_at_mean(pools, cosines)
    built = build_tiers(TierInputs(plan.source.classes, class_of, partitions, similar, plan.folds, plan.seed))
    general = _general(plan, out, start)
    failed = (*failures, *encoded.failures, *general.failures)
    files = write_lists(out, built, general.pairs, plan.name)
    analysis = [out / "analysis" / name for name in ("test_stats.csv", *(("general_stats.csv",) if plan.fss else ()))]
    facts = {
        "seed": plan.seed,
        "models": {
            role: model.facts()
            for role, model in (("saliency", plan.saliency), ("supervised", plan.supervised), ("encoder", plan.encoder))
            if model is not None
        },
        "data": data,
        "thresholds": {"easy_above": EASY_ABOVE, "salient_above": SALIENT_ABOVE, "similar_above": _number(mean)},
        "masks": len(rows),
        "partitioned": len(partitions),
        "resembling": {"reading": plan.resembling_reading, "dropped": list(general.dropped)} if plan.fss else None,
        "failures": [asdict(failure) for failure in failed],
    }
    manifest = write_manifest(out, built, general.pairs, [*files, *analysis], facts)
    report = BuiltReport(
        built,
        rows,
        partitions,
        {name: own.tolist() for name, own in cosines.items() if own.size},
        mean,
        general.counts or {},
        general.dropped,
        failed,
        len(rows) - len(partitions),
    )
    _write_page(plan, out, manifest, report)
    return manifest, report


def _attributes(
    plan: BuildPlan, out: Path, data: Mapping[str, str], start: Start
) -> tuple[list[AttributeRow], Sequence[FailedImage]]:
    from hardlook.tiers.attribute_rows import read_attributes, write_attributes
    from hardlook.tiers.attribute_table import AttributeModels
    from hardlook.tiers.resumed_table import resumed_table

    path = out / "analysis" / "test_stats.csv"
    if plan.attributes is not None:
        wanted = set(plan.tokens)
        found = (row for row in read_attributes(plan.attributes) if row.filename in wanted)
        # The published table names neither classes nor images.
        source = plan.source
        rows = [
            replace(row, class_name=source.class_of(row.filename), image=source.image_of(row.filename)) for row in found
        ]
        if not rows:
            remedy = "give the table that `hardlook attributes` made of the same data"
            raise OptionError(f"--attributes {plan.attributes}: no row is a mask of the data", remedy=remedy)
        write_attributes(path, rows)
        return rows, ()
    assert plan.saliency is not None and plan.supervised is not None
    models = AttributeModels(
        plan.saliency.model,
        plan.supervised.model,
        label_indices(plan.source.classes, plan.supervised.model.labels),
    )
    identity = {
        "data": dict(data),
        "saliency": plan.saliency.identity.fingerprint(),
        "supervised": plan.supervised.identity.fingerprint(),
    }
    table = resumed_table(path, plan.source, plan.tokens, models, identity, progress=start)
    return list(table.rows), table.failures


def _general(plan: BuildPlan, out: Path, start: Start) -> General:
    from hardlook.data.toss_pairs import Pair
    from hardlook.tiers.attribute_table import AttributeModels
    from hardlook.tiers.generalisation import generalisation, unlike
    from hardlook.tiers.resumed_table import data_fingerprints, resumed_table

    if plan.fss is None:
        return General()
    if plan.saliency is None:
        raise OptionError("tier 3 needs a saliency model", remedy="give --saliency MODEL")
    kept = set(unlike(plan.fss.classes, plan.resembling))
    tokens = [token for token in plan.fss.tokens() if plan.fss.class_of(token) in kept]
    identity = {"data": data_fingerprints(plan.fss, out), "saliency": plan.saliency.identity.fingerprint()}
    path = out / "analysis" / "general_stats.csv"
    table = resumed_table(path, plan.fss, tokens, AttributeModels(plan.saliency.model), identity, progress=start)
    salience: dict[str, dict[str, float]] = {}
    for row in table.rows:
        if row.saliou is not None:
            salience.setdefault(row.class_name, {})[row.filename] = row.saliou
    drawn = generalisation(salience, plan.resembling, seed=plan.seed)
    pairs = tuple(Pair(query, support, 3, -1) for own in drawn.values() for query, support in own)
    dropped = tuple(name for name in plan.fss.classes if name not in kept)
    return General(pairs, {name: len(own) for name, own in drawn.items()}, dropped, table.failures)


def _write_page(plan: BuildPlan, out: Path, manifest: Mapping[str, Any], report: BuiltReport) -> None:
    from hardlook.commands.attributes.sections import mask_pictures
    from hardlook.commands.build.sections import build_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    sections = build_sections(report)
    pairs = sum(len(own) for own in report.built.lists.values()) + manifest["general_pairs"]
    page = render_study(
        sections,
        title="Tiers for one-shot segmentation",
        summary=f"{pairs:,} pairs from {len(report.rows):,} masks of {len(plan.source.classes)} classes, by the "
        "rule of TOSS. `hardlook run toss --data pairs=FOLDER` scores a model on them. Such scores stand beside no "
        "published number.",
        provenance={key: manifest[key] for key in ("schema", "seed", "models", "data", "thresholds", "files")},
        pictures=mask_pictures(plan.source, sections),
    )
    write_whole(out / "report.html", page)


def _number(value: float) -> float | None:
    return None if value != value else value
