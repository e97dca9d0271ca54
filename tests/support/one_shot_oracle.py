"""The scores of one-shot pairs written out from the text of the specification, a record at a time.

Rows are mappings with the columns of a pair's record. A score that has no pixels, or lacks a part, is None: a class
without pixels leaves the mean over classes, a fold without a split or level leaves the mean over folds.
"""

from __future__ import annotations

LCA = {"easy_sal": 3, "easy_nsal": 0.75, "hard_sal": 0.75, "hard_nsal": 0.5}

HCA = {"easy_sal": 0.5, "easy_nsal": 0.75, "hard_sal": 0.75, "hard_nsal": 3}

SPURIOUS = ("L4", "L5", "L6")


def pixels_of(row, void):
    """(intersection, union, pixels) of one pair, the open pixels of the truth taken as `void` says."""
    union = row["predicted"] + row["truth"] - row["intersection"]
    if void == "ignored":
        return row["intersection"], union - row["predicted_void"], row["pixels"] - row["void"]
    return row["intersection"], union, row["pixels"]


def iou(rows, void):
    """Summed intersections over summed unions."""
    above = below = 0
    for row in rows:
        intersection, union, _ = pixels_of(row, void)
        above += intersection
        below += union
    return above / below if below else None


def mean(values):
    """None when there are none, or one of them is None."""
    values = list(values)
    return None if not values or any(value is None for value in values) else sum(values) / len(values)


def mean_where_defined(values):
    return mean(value for value in values if value is not None)


def values_of(rows, column):
    return sorted({row[column] for row in rows})


def of(rows, **wanted):
    return [row for row in rows if all(row[column] == value for column, value in wanted.items())]


def miou(rows, void):
    """Mean over folds of the mean over classes."""
    return mean_where_defined(
        mean_where_defined(iou(of(rows, fold=fold, **{"class": name}), void) for name in values_of(rows, "class"))
        for fold in values_of(rows, "fold")
    )


def fb_iou(rows, void):
    """Mean over folds, as papers report it, each with its classes pooled."""
    return mean_where_defined(fold_fb_iou(of(rows, fold=fold), void) for fold in values_of(rows, "fold"))


def fold_fb_iou(rows, void):
    above = below = every = 0
    for row in rows:
        intersection, union, pixels = pixels_of(row, void)
        above += intersection
        below += union
        every += pixels
    if below == 0 or every == above:
        return None
    return (above / below + (every - below) / (every - above)) / 2


def pair_iou(rows, void):
    return mean_where_defined(iou([row], void) for row in rows)


def complexity(rows, weights, void):
    """LCA or HCA of the rows of tier 1 by `weights`."""
    folds = []
    for fold in values_of(rows, "fold"):
        splits = {split: miou(of(rows, fold=fold, split=split), void) for split in weights}
        absent = any(value is None for value in splits.values())
        folds.append(None if absent else sum(weights[split] * splits[split] for split in weights) / 5)
    return mean_where_defined(folds)


def class_scs(rows, reading, void):
    """SCS of one class of one fold; None when a level is not there."""
    level = {name: iou(of(rows, split=name), void) for name in ("L0", "L1", "L2", "L3", *SPURIOUS)}
    together = iou([row for row in rows if row["split"] in ("L2", "L3", "L2+L3")], void)
    rejected = iou([row for row in rows if row["split"] in SPURIOUS], void)
    if reading == "released":
        parts = [(4, level["L0"]), (3, level["L1"]), (1, together), (-1, rejected)]
    else:
        same = [(3, together)] if of(rows, split="L2+L3") else [(2, level["L2"]), (1, level["L3"])]
        parts = [(4, level["L0"]), (2, level["L1"]), *same, *((-1, level[name]) for name in SPURIOUS)]
    if any(value is None for _, value in parts):
        return None
    total = sum(weight * value if weight > 0 else -weight * (1 - value) for weight, value in parts)
    return total / sum(abs(weight) for weight, _ in parts)


def scs(rows, reading, void):
    """SCS of the rows of tier 2: mean over the classes that have every level, then over folds."""
    return mean_where_defined(
        mean_where_defined(
            class_scs(of(rows, fold=fold, **{"class": name}), reading, void) for name in values_of(rows, "class")
        )
        for fold in values_of(rows, "fold")
    )


def rejection(rows, void):
    """1 - the mean over L4, L5 and L6 of their mIoU."""
    found = mean_where_defined(miou(of(rows, split=level), void) for level in SPURIOUS)
    return None if found is None else 1 - found


def salience(rows, void):
    """(salient, non-salient, their gap) of the rows of tier 1."""
    salient, other = (
        miou([row for row in rows if row["split"] in splits], void)
        for splits in (("easy_sal", "hard_sal"), ("easy_nsal", "hard_nsal"))
    )
    return salient, other, None if salient is None or other is None else salient - other


def against_salience(row):
    """The same prediction, with the saliency mask in place of the truth; it leaves no pixel open."""
    return {
        **row, "truth": row["salient"], "intersection": row["predicted_salient"], "predicted_void": 0, "void": 0,
    }  # fmt: skip


def covered(rows, part):
    """Mean over folds and classes of the share of a part's pixels that is predicted; `part` gives both of a row."""
    folds = []
    for fold in values_of(rows, "fold"):
        classes = []
        for name in values_of(of(rows, fold=fold), "class"):
            pixels = [part(row) for row in of(rows, fold=fold, **{"class": name})]
            below = sum(whole for _, whole in pixels)
            classes.append(sum(found for found, _ in pixels) / below if below else None)
        folds.append(mean_where_defined(classes))
    return mean_where_defined(folds)


def difference(one, two):
    return None if one is None or two is None else one - two


def following(rows, void):
    """{score: value} of masks held against truth and salience, over rows whose target is not salient."""
    asked = [row for row in rows if row["salient"] >= 0]
    if not asked:
        return {}
    truth, salience = miou(asked, void), miou([against_salience(row) for row in asked], void)
    target = covered(
        asked, lambda row: (row["intersection"] - row["found_salient"], row["truth"] - row["truth_salient"])
    )
    other = covered(
        asked, lambda row: (row["predicted_salient"] - row["found_salient"], row["salient"] - row["truth_salient"])
    )
    return {
        "follows-truth": truth, "follows-salience": salience, "salience-lead": difference(salience, truth),
        "covers-target": target, "covers-salience": other, "salience-pull": difference(other, target),
    }  # fmt: skip


def toss_scores(rows, reading="paper", void="ignored"):
    """{(name, its slice as sorted pairs): value} of everything that TOSS reports on pairs with one number of shots."""
    found = {}

    def put(name, value, **where):
        found[name, tuple(sorted(where.items()))] = value

    def put_means(chosen, **where):
        put("miou", miou(chosen, void), **where)
        put("fb-iou", fb_iou(chosen, void), **where)
        put("pair-iou", pair_iou(chosen, void), **where)
        for name in values_of(chosen, "class"):
            put("iou", iou(of(chosen, **{"class": name}), void), **where, **{"class": name})

    fixed, tier1, tier2, tier3 = (of(rows, tier=tier) for tier in range(4))
    if fixed:
        put_means(fixed)
    for fold in values_of(fixed, "fold"):
        put("miou", miou(of(fixed, fold=fold), void), fold=str(fold))
    if tier1:
        for name, value in zip(("salient", "non-salient", "salience-gap"), salience(tier1, void), strict=True):
            put(name, value)
        others = [row for row in tier1 if row["split"] in ("easy_nsal", "hard_nsal")]
        for name, value in following(others, void).items():
            put(name, value)
        for where, here in [({}, tier1), *(({"fold": str(k)}, of(tier1, fold=k)) for k in values_of(tier1, "fold"))]:
            put("lca", complexity(here, LCA, void), **where)
            put("hca", complexity(here, HCA, void), **where)
            for split in values_of(here, "split") if where else ():
                put("miou", miou(of(here, split=split), void), split=split, **where)
        for split in values_of(tier1, "split"):
            put_means(of(tier1, split=split), split=split)
    if tier2:
        put("scs", scs(tier2, reading, void))
        for fold in values_of(tier2, "fold"):
            put("scs", scs(of(tier2, fold=fold), reading, void), fold=str(fold))
        if any(row["split"] in SPURIOUS for row in tier2):
            put("rejection", rejection(tier2, void))
        for level in values_of(tier2, "split"):
            here = of(tier2, split=level)
            put_means(here, level=level)
            for fold in values_of(here, "fold"):
                put("miou", miou(of(here, fold=fold), void), level=level, fold=str(fold))
    if tier3:
        put("gs", miou(tier3, void))
        put_means(tier3, tier="3")
    return found
