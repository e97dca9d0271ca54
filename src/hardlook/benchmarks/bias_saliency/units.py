"""Every pair twice: as it is, and with the query's salient region blurred."""

from __future__ import annotations

from dataclasses import replace

from hardlook.benchmarks.bias_saliency.options import BiasSaliencyOptions
from hardlook.benchmarks.bias_saliency.suppression import SUPPRESSED
from hardlook.benchmarks.one_shot_pairs.pairs import Labels, OneShotPair
from hardlook.benchmarks.one_shot_pairs.study_lists import study_pairs
from hardlook.contract.benchmark import Unit, UnitList

PLAIN = "plain"


def list_both(options: BiasSaliencyOptions) -> UnitList:
    """Two units a pair, those of one query image side by side."""
    opened = study_pairs(options)
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
                content = OneShotPair(settings, pair.query, (pair.support,), slices)
                units.append(Unit(f"{name}-{condition}", content, group=source.image_of(pair.query)))
    return UnitList(units, opened.left_out)
