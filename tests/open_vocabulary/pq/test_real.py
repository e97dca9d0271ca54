"""Real COCO truth against itself, and against a copy whose labels are confused."""

import json

import numpy as np
import pytest

from hardlook.harness.runs.launch import launch
from hardlook.report.run_report import write_report
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.measures import compute_similarity

pytestmark = pytest.mark.real

EVERY = 4


@pytest.fixture(scope="module")
def coco(shared_data):
    folder = shared_data / "data" / "coco100"
    if not (folder / "panoptic.json").is_file():
        pytest.skip(f"no panoptic COCO at {folder}")
    return folder


def stored_run(coco, out, pred, **given):
    given = {
        "gt": coco / "panoptic.json", "gt_masks": coco / "panoptic", "pred": pred, "pred_masks": coco / "panoptic",
        "labels": "coco133", "resamples": 100, **given,
    }  # fmt: skip
    return launch("open-pq", out=out, given=given)


def confused(coco, out, choose):
    """A copy of the truth in which every fourth segment is called by the label `choose` picks for its own."""
    document = json.loads((coco / "panoptic.json").read_text())
    labels = load_label_set("coco133")
    matrix = compute_similarity(labels, "path").matrix.copy()
    np.fill_diagonal(matrix, np.nan)
    matrix[labels.things[:, None] != labels.things] = np.nan
    place = {
        category["id"]: labels.names.index(labels.find(category["name"]).name) for category in document["categories"]
    }
    category = {row: number for number, row in place.items()}
    segments = [segment for row in document["annotations"] for segment in row["segments_info"]]
    for segment in segments[::EVERY]:
        segment["category_id"] = category[int(choose(matrix[place[segment["category_id"]]]))]
    out.write_text(json.dumps({"annotations": document["annotations"]}))
    return len(segments[::EVERY])


def test_the_truth_predicts_itself(coco, tmp_path):
    card = stored_run(coco, tmp_path / "run", coco / "panoptic.json").scored.scorecard
    assert card.units.scored == 100
    for name in ("pq", "sq", "rq", "open-pq", "open-sq", "open-rq"):
        assert card.get(name).value == 1
        assert card.get(name, kind="things").value == card.get(name, kind="stuff").value == 1


def test_similarity_forgives_near_labels_more_than_far_ones(coco, tmp_path):
    gains = {}
    for name, choose in (("near", np.nanargmax), ("far", np.nanargmin)):
        count = confused(coco, tmp_path / f"{name}.json", choose)
        done = stored_run(coco, tmp_path / name, tmp_path / f"{name}.json", data={"images": coco / "images"})
        card = done.scored.scorecard
        gains[name] = card.get("open-gain").value
        assert card.get("pq").value < 0.85
        # Crowds match nothing, so a few of the renamed segments are no confusion.
        pairs = [score.value for score in card.scores if score.name == "misnamed-segments"]
        assert sum(pairs) <= count
        assert len(pairs) == 25
    assert gains["near"] > 2 * gains["far"] > 0
    write_report(done.scored)
    page = (tmp_path / "far" / "report.html").read_text()
    assert page.count("data:image/jpeg") >= 15
    assert "No picture" not in page


def test_vanilla_equals_panopticapi_on_real_files(coco, tmp_path):
    from hotcoco.panoptic import PanopticEval

    confused(coco, tmp_path / "near.json", np.nanargmax)
    folders = {"gt_folder": str(coco / "panoptic"), "pred_folder": str(coco / "panoptic")}
    theirs = PanopticEval(str(coco / "panoptic.json"), str(tmp_path / "near.json"), **folders)
    theirs.evaluate()
    card = stored_run(coco, tmp_path / "run", tmp_path / "near.json", measure="identity").scored.scorecard
    for group, kind in (("All", {}), ("Things", {"kind": "things"}), ("Stuff", {"kind": "stuff"})):
        for name in ("pq", "sq", "rq"):
            assert card.get(f"open-{name}", **kind).value == pytest.approx(theirs.results()[group][name], abs=1e-12)
