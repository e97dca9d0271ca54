"""Random data in LVIS's format, and the lvis package's and hotcoco's view of it."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import sys
import types

import hotcoco
import numpy as np
import pytest
from detection_scenes import scene

FIGURES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR", "ARs", "ARm", "ARl")
GROUPS = ("r", "c", "f")


def lvis_scene(seed, *, classes=5, unsure=0.4, **options):
    """(truth, results) in LVIS's format: of a class without objects in an image its absence is often not known."""
    truth, results = scene(seed, classes=classes, **options)
    rng = np.random.default_rng([seed, 2])
    for annotation in truth["annotations"]:
        del annotation["iscrowd"]  # LVIS has none
    for category in truth["categories"]:
        category["frequency"] = str(rng.choice(GROUPS))
    ids = [category["id"] for category in truth["categories"]]
    for image in truth["images"]:
        present = {one["category_id"] for one in truth["annotations"] if one["image_id"] == image["id"]}
        image["neg_category_ids"] = [one for one in ids if one not in present and rng.random() > unsure]
        image["not_exhaustive_category_ids"] = [one for one in ids if one in present and rng.random() < unsure]
    return truth, results


def import_lvis():
    """The lvis package's modules, without its plots, which need matplotlib and another OpenCV."""
    if "lvis" not in sys.modules:
        found = importlib.util.find_spec("lvis")
        if found is None:
            pytest.skip("the lvis package is not installed: pip install --no-deps lvis")
        package = types.ModuleType("lvis")
        package.__path__ = list(found.submodule_search_locations)
        sys.modules["lvis"] = package
    from lvis.eval import LVISEval
    from lvis.lvis import LVIS
    from lvis.results import LVISResults

    return LVIS, LVISResults, LVISEval


def evaluate_with_lvis(truth, results, iou_type, monkeypatch, limit=300):
    """FIGURES by the lvis package, NaN where undefined, and its evaluation; it needs the np.float of old numpys."""
    LVIS, LVISResults, LVISEval = import_lvis()
    monkeypatch.setattr(np, "float", float, raising=False)
    theirs = LVIS.__new__(LVIS)
    theirs.dataset = copy.deepcopy(truth)
    theirs.logger = types.SimpleNamespace(info=lambda text: None, warn=lambda text: None)
    theirs._create_index()
    found = LVISResults(theirs, copy.deepcopy(results), limit)
    evaluation = LVISEval(theirs, found, iou_type)
    evaluation.params.max_dets = limit
    evaluation.run()
    named = {name.partition("@")[0]: value for name, value in evaluation.get_results().items()}
    return {name: named[name] if named[name] > -1 else np.nan for name in FIGURES}, evaluation


def evaluate_with_hotcoco(truth, results, iou_type, limit=300):
    """FIGURES by hotcoco's LVIS evaluation, NaN where undefined."""
    theirs = hotcoco.LVIS(copy.deepcopy(truth))
    evaluation = hotcoco.LVISEval(theirs, hotcoco.LVISResults(theirs, copy.deepcopy(results), limit), iou_type)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.run()
    named = {name.partition("@")[0]: value for name, value in evaluation.get_results().items()}
    return {name: named[name] if named[name] > -1 else np.nan for name in FIGURES}
