"""What a build measures: the attributes of the masks, and tier 3's salience."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.commands.build.inputs import Start, label_indices, unreadable_images
from hardlook.commands.build.plan import BuildPlan
from hardlook.errors import OptionError
from hardlook.fingerprint import of_file
from hardlook.tiers.built_folder import TABLE

if TYPE_CHECKING:
    from hardlook.data.toss_pairs import Pair
    from hardlook.tiers.attribute_rows import AttributeRow
    from hardlook.tiers.attribute_table import FailedImage


@dataclass(frozen=True)
class MeasuredMasks:
    """Rows of masks of the data; with a ready table also its name and hash, and what it and the data do not share."""

    rows: list[AttributeRow]
    failures: tuple[FailedImage, ...] = ()
    table: Mapping[str, Any] | None = None
    without_row: tuple[str, ...] = ()


@dataclass(frozen=True)
class General:
    """Tier 3: its pairs, how many a class, the classes dropped, and what failed."""

    pairs: tuple[Pair, ...] = ()
    counts: Mapping[str, int] | None = None
    dropped: tuple[str, ...] = ()
    failures: tuple[FailedImage, ...] = ()


def measured_masks(plan: BuildPlan, out: Path, data: Mapping[str, str], start: Start) -> MeasuredMasks:
    """The attributes of every mask, from the models or from a ready table."""
    from hardlook.tiers.attribute_table import AttributeModels
    from hardlook.tiers.resumed_table import resumed_table

    if plan.attributes is not None:
        return _ready_table(plan, plan.attributes, out)
    source, supervised = plan.opened.source, plan.supervised
    models = AttributeModels(
        plan.saliency.model if plan.saliency else None,
        supervised.model if supervised else None,
        label_indices(source.classes, supervised.model.labels) if supervised else {},
    )
    identity = {
        "data": dict(data),
        "saliency": plan.saliency.identity.fingerprint() if plan.saliency else "",
        "supervised": supervised.identity.fingerprint() if supervised else "",
    }
    table = resumed_table(out / TABLE, source, plan.opened.tokens, models, identity, progress=start)
    return MeasuredMasks(list(table.rows), table.failures)


def _ready_table(plan: BuildPlan, path: Path, out: Path) -> MeasuredMasks:
    from hardlook.tiers.attribute_rows import read_attributes
    from hardlook.tiers.resumed_table import adopted_table

    source, wanted = plan.opened.source, set(plan.opened.tokens)
    every = read_attributes(path)
    digest = of_file(path)
    # The published table names neither classes nor images.
    rows = [
        replace(row, class_name=source.class_of(row.filename), image=source.image_of(row.filename))
        for row in every
        if row.filename in wanted
    ]
    if not rows:
        remedy = "give the table that `hardlook attributes` made of the same data"
        raise OptionError(f"--attributes {path}: no row is a mask of the data", remedy=remedy)
    adopted_table(out / TABLE, rows, digest)
    having = {row.filename for row in rows}
    facts = {"name": path.name, "sha256": digest, "rows": len(every), "rows_of_other_masks": len(every) - len(rows)}
    return MeasuredMasks(rows, (), facts, tuple(token for token in plan.opened.tokens if token not in having))


def general_tier(plan: BuildPlan, out: Path, start: Start) -> General:
    """Tier 3 from FSS-1000, where it is given."""
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
    path = out / TABLE.with_name("general_stats.csv")
    table = resumed_table(path, plan.fss, tokens, AttributeModels(plan.saliency.model), identity, progress=start)
    salience: dict[str, dict[str, float]] = {}
    for row in table.rows:
        if row.saliou is not None:
            salience.setdefault(row.class_name, {})[row.filename] = row.saliou
    drawn = generalisation(salience, plan.resembling, seed=plan.seed)
    pairs = tuple(Pair(query, support, 3, -1) for own in drawn.values() for query, support in own)
    dropped = tuple(name for name in plan.fss.classes if name not in kept)
    unread = [failure for failure in unreadable_images(plan.fss) if failure.image.rpartition("/")[0] in kept]
    return General(pairs, {name: len(own) for name, own in drawn.items()}, dropped, (*unread, *table.failures))
