"""From a dataset and three models, or from memberships alone, to the folder of its tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.commands.build.inputs import Start
from hardlook.commands.build.plan import BuildPlan, membership_facts
from hardlook.tiers.built_folder import TABLE, refuse_other_lists
from hardlook.tiers.built_tiers import TierInputs, build_tiers
from hardlook.tiers.partitions import EASY_ABOVE, SALIENT_ABOVE, partition_of

if TYPE_CHECKING:
    from hardlook.commands.build.sections import BuiltReport
    from hardlook.data.class_masks import ClassMasks
    from hardlook.data.toss_pairs import Pair
    from hardlook.tiers.attribute_rows import AttributeRow
    from hardlook.tiers.memberships import Memberships

Built = tuple[dict[str, Any], "BuiltReport"]


def build_toss(plan: BuildPlan, out: Path, start: Start) -> Built:
    """Measure, make the lists, write them with manifest and report; returns manifest and what the report shows."""
    from hardlook.commands.build.measuring import general_tier, measured_masks
    from hardlook.commands.build.sections import BuiltReport
    from hardlook.tiers.image_similarity import encode_images, pair_cosines, split_at_mean
    from hardlook.tiers.resumed_table import data_fingerprints
    from hardlook.tiers.support_cognizance import similarity_pool

    refuse_other_lists(out)
    source = plan.opened.source
    data = data_fingerprints(source, out)
    measured = measured_masks(plan, out, data, start)
    images = {row.image for row in measured.rows}
    tokens = [row.filename for row in measured.rows]
    encoded = encode_images(source, tokens, plan.encoder.model, advance=start(len(images), 0))
    rows = [row for row in measured.rows if row.image in encoded.vectors]
    partitions = _partitions(rows, plan.memberships)
    class_of = {row.filename: source.class_of(row.filename) for row in rows}
    by_class: dict[str, list[str]] = {name: [] for name in source.classes}
    for token, name in class_of.items():
        by_class[name].append(token)
    pools = similarity_pool(by_class, seed=plan.seed)
    cosines = {name: pair_cosines(encoded.vectors, source.image_of, pool) for name, pool in pools.items()}
    similar, mean = split_at_mean(pools, cosines)
    built = build_tiers(TierInputs(source.classes, class_of, partitions, similar, plan.folds, plan.seed))
    general = general_tier(plan, out, start)
    failed = (*plan.opened.failures, *measured.failures, *encoded.failures, *general.failures)
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
        measured.without_row,
        plan.memberships is not None,
    )
    by_rule = None if plan.memberships else {"easy_above": EASY_ABOVE, "salient_above": SALIENT_ABOVE}
    facts = {
        "seed": plan.seed,
        "models": plan.model_facts(),
        "data": data,
        "attributes": measured.table,
        "memberships": membership_facts(plan.memberships, len(partitions)),
        "thresholds": {**(by_rule or {}), "similar_above": None if mean != mean else mean},
        "masks": len(rows),
        "partitioned": len(partitions),
        "masks_without_a_row": list(measured.without_row),
        "resembling": {"reading": plan.resembling_reading, "dropped": list(general.dropped)} if plan.fss else None,
        "failures": [asdict(failure) for failure in failed],
    }
    analysis = [out / TABLE, *([out / TABLE.with_name("general_stats.csv")] if plan.fss else [])]
    return _written(out, report, general.pairs, plan.name, facts, analysis, source), report


def build_listed(
    memberships: Memberships, classes: tuple[str, ...], out: Path, *, folds: int, seed: int, name: str
) -> Built:
    """Tier 1 and the fixed lists from memberships, without an image: what a rule makes of the published partitions."""
    from hardlook.commands.build.sections import BuiltReport
    from hardlook.data.class_tokens import numbered_token
    from hardlook.tiers.attribute_rows import AttributeRow

    refuse_other_lists(out)
    parts = {token: numbered_token(token) for token in memberships.partitions}
    class_of = {token: classes[number - 1] for token, (number, _) in parts.items()}
    built = build_tiers(TierInputs(classes, class_of, memberships.partitions, {}, folds, seed))
    # Tier 2 asks for similar and for transformed images, and there are none.
    built = replace(
        built,
        lists={key: pairs for key, pairs in built.lists.items() if key[0] != 2},
        levels={},
        unfilled=tuple(one for one in built.unfilled if not one.part.startswith("tier 2")),
    )
    rows = [
        AttributeRow(token, None, None, None, None, None, None, None, class_of[token], image)
        for token, (_, image) in parts.items()
    ]
    report = BuiltReport(built, rows, memberships.partitions, {}, float("nan"), {}, (), (), 0, (), True)
    facts = {
        "seed": seed,
        "models": {},
        "data": {},
        "attributes": None,
        "memberships": membership_facts(memberships, len(rows)),
        "thresholds": {},
        "masks": len(rows),
        "partitioned": len(rows),
        "masks_without_a_row": [],
        "resembling": None,
        "failures": [],
    }
    return _written(out, report, (), name, facts, [], None), report


def _partitions(rows: list[AttributeRow], memberships: Memberships | None) -> dict[str, str]:
    if memberships is not None:
        known = memberships.partitions
        return {row.filename: known[row.filename] for row in rows if row.filename in known}
    return {
        row.filename: partition_of(row.iou, row.saliou)
        for row in rows
        if row.iou is not None and row.saliou is not None
    }


def _written(
    out: Path,
    report: BuiltReport,
    general: tuple[Pair, ...],
    name: str,
    facts: Mapping[str, Any],
    analysis: list[Path],
    source: ClassMasks | None,
) -> dict[str, Any]:
    """Write lists, manifest and page; return the manifest."""
    from hardlook.commands.attributes.sections import mask_pictures
    from hardlook.commands.build.sections import build_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole
    from hardlook.tiers.built_folder import write_lists, write_manifest

    files = write_lists(out, report.built, general, name)
    manifest = write_manifest(out, report.built, general, [*files, *analysis], facts)
    sections = build_sections(report)
    pairs = sum(len(own) for own in report.built.lists.values()) + len(general)
    shown = ("schema", "seed", "models", "data", "attributes", "memberships", "thresholds", "files")
    page = render_study(
        sections,
        title="Tiers for one-shot segmentation",
        summary=f"{pairs:,} pairs from {len(report.rows):,} masks of {sum(map(len, report.built.folds))} classes, by "
        "the rule of TOSS. `hardlook run toss --data pairs=FOLDER` scores a model on them. Such scores stand beside no "
        "published number.",
        provenance={key: manifest[key] for key in shown},
        pictures=mask_pictures(source, sections) if source else None,
    )
    write_whole(out / "report.html", page)
    return manifest
