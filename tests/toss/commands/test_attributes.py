"""`hardlook attributes`: the table, its comparison with the published one, and resuming."""

import json
from dataclasses import replace

import pytest

from hardlook.toss.tiers.attributes import read_attributes, write_attributes
from hardlook.world.layouts import write_world

MODELS = ("--saliency", "planted-saliency", "--supervised", "planted-segmenter")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=12, size=(96, 72), correlation=0.0, image_format="png")
    return folder


def test_the_table_and_the_page_are_written(hardlook, world, tmp_path):
    answer = hardlook("attributes", "--data", f"voc={world}", *MODELS, "--out", tmp_path)
    rows = read_attributes(tmp_path / "attributes.csv")
    assert answer.code == 0 and f"{len(rows)} masks" in answer.out and "supervised IoU  mean 1.0000" in answer.out
    page = (tmp_path / "report.html").read_text()
    assert "Salience by class" in page and "Lowest salience" in page and "No picture" not in page


def test_a_split_of_the_devkit_is_measured_alone(hardlook, world, tmp_path):
    hardlook("attributes", "--data", f"voc={world}", "--split", "val", "--out", tmp_path, "-q")
    wanted = set((world / "ImageSets" / "Segmentation" / "val.txt").read_text().split())
    assert {row.image for row in read_attributes(tmp_path / "attributes.csv")} == wanted


def test_rows_are_not_measured_twice(hardlook, world, tmp_path):
    words = ("attributes", "--data", f"voc={world}", *MODELS, "--out", tmp_path, "-q", "--json")
    first, second = json.loads(hardlook(*words).out), json.loads(hardlook(*words).out)
    assert first["found_before"] == 0 and second["found_before"] == second["masks"] == first["masks"]
    third = json.loads(hardlook(*words, "--supervised-arg", "ragged=1").out)
    assert third["found_before"] == 0
    assert third["attributes"]["supervised IoU"]["mean"] < first["attributes"]["supervised IoU"]["mean"]


def test_a_published_table_is_compared(hardlook, world, tmp_path):
    words = ("attributes", "--data", f"voc={world}", *MODELS, "-q", "--out")
    hardlook(*words, tmp_path / "a", "--supervised-arg", "ragged=1")
    rows = read_attributes(tmp_path / "a" / "attributes.csv")
    write_attributes(tmp_path / "published.csv", rows[:-2])
    answer = hardlook(
        *words, tmp_path / "b", "--supervised-arg", "ragged=1", "--published", tmp_path / "published.csv", "--json"
    )
    shared = json.loads(answer.out)["published"]
    assert shared["rows"] == len(rows) - 2
    assert shared["spearman"]["saliou"]["value"] == shared["spearman"]["iou"]["value"] == 1.0
    assert all(one["equal"] == one["rows"] == len(rows) - 2 for one in shared["exact"].values())
    assert "Beside the published table" in (tmp_path / "b" / "report.html").read_text()


def test_a_column_without_a_rank_correlation_is_printed_as_undefined(hardlook, world, tmp_path):
    hardlook("attributes", "--data", f"voc={world}", "-q", "--out", tmp_path / "a")
    rows = read_attributes(tmp_path / "a" / "attributes.csv")
    write_attributes(tmp_path / "published.csv", [replace(row, blob_count=2) for row in rows])
    published = ("--published", tmp_path / "published.csv")
    answer = hardlook("attributes", "--data", f"voc={world}", "-q", "--out", tmp_path / "a", *published)
    [line] = [line for line in answer.out.splitlines() if line.strip().startswith("blob_count")]
    assert answer.code == 0 and line.endswith("equal, Spearman undefined")


@pytest.mark.real
def test_blobs_and_distractors_of_real_masks_are_the_published_ones(hardlook, shared_data, tmp_path):
    published = shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv"
    voc = shared_data / "data" / "VOCdevkit" / "VOC2012"
    answer = hardlook("attributes", "--data", f"voc={voc}", "--published", published, "--out", tmp_path, "-q", "--json")
    exact = json.loads(answer.out)["published"]["exact"]
    assert exact["blob_count"]["equal"] == exact["blob_count"]["rows"] == 739
    assert exact["distractor_weight"]["equal"] == exact["distractor_weight"]["rows"] == 739
