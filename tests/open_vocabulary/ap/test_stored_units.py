"""Open AP on one dataset in every format: tables, shards, exports of FiftyOne and objects score as COCO's json does."""

import json

import pytest
import stored_datasets as stored

import hardlook as hl
from hardlook.errors import DataError, OptionError
from hardlook.open_vocabulary.ap.options import OpenApOptions
from hardlook.open_vocabulary.ap.units import list_sources, list_units, read_unit

SMALL = {"model": "planted-instances", "model_args": {"stranger": 0.4}, "resamples": 0, "progress": False}


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    return folder, stored.write_coco(folder)


@pytest.fixture(scope="module")
def formats(coco, tmp_path_factory):
    """By name the data of each format."""
    folder, content = coco
    images, out = folder / "images", tmp_path_factory.mktemp("formats")
    fiftyone = out / "coco-export"
    fiftyone.mkdir()
    (fiftyone / "data").symlink_to(images)
    (fiftyone / "labels.json").write_text(json.dumps(content))
    return {
        "json": {"instances": folder / "instances.json", "images": images},
        "hf": {"hf-dataset": stored.write_hf(out / "structure", content, images)},
        "hf of lists": {"hf-dataset": stored.write_hf(out / "lists", content, images, lists=True)},
        "shards": {"webdataset": stored.write_shard(out / "0.tar", content, images)},
        "fiftyone's coco": {"fiftyone": fiftyone},
        "object": {"dataset": stored.CocoPairs(content, images)},
        "boxes": {"fiftyone": stored.write_fiftyone(out / "boxes", content, images)},
    }


def run(data, out, **more):
    done = hl.run("open-ap", data=data, out=out, report=False, **{**SMALL, **more})
    return {name: score.value for name, score in done.scores.items()}


@pytest.mark.parametrize("iou", ["segm", "bbox"])
def test_every_format_scores_as_the_json_does(formats, tmp_path, iou):
    expected = run(formats["json"], tmp_path / "json", iou=iou)
    assert 0 < expected["ap"] < 1
    for name in ("hf", "hf of lists", "shards", "fiftyone's coco", "object"):
        assert run(formats[name], tmp_path / name, iou=iou) == pytest.approx(expected, nan_ok=True), name
    if iou == "bbox":  # without masks, areas, and so small, medium and large, are those of boxes
        assert run(formats["boxes"], tmp_path / "boxes", iou=iou)["ap"] == pytest.approx(expected["ap"])


def test_boxes_alone_ask_for_scores_of_boxes(formats):
    with pytest.raises(OptionError, match="boxes and no masks") as caught:
        list_units(OpenApOptions(data=formats["boxes"]))
    assert caught.value.remedy == "give --iou bbox"


def test_an_object_is_known_by_its_items(coco, formats):
    content = json.loads(json.dumps(coco[1]))
    given = list_sources(OpenApOptions(data={"dataset": stored.CocoPairs(content, coco[0] / "images")}))
    assert given == list_sources(OpenApOptions(data=formats["object"]))
    assert list(given) == ["dataset (decoded items of the CocoPairs object)"]
    content["annotations"][0]["bbox"][0] += 1
    other = list_sources(OpenApOptions(data={"dataset": stored.CocoPairs(content, coco[0] / "images")}))
    assert other != given


def test_stored_detections_pair_with_the_tables_images(formats, coco, tmp_path):
    content = coco[1]
    names = sorted(one["name"] for one in content["categories"])
    by_id = {one["id"]: one["name"] for one in content["categories"]}
    results = [
        {
            "image_id": one["image_id"], "category_id": names.index(by_id[one["category_id"]]), "score": 0.9,
            "bbox": one["bbox"],
        }
        for one in content["annotations"]
    ]  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(results))
    scores = run(
        formats["hf"], tmp_path / "run", model=None, model_args=None, pred=tmp_path / "results.json", iou="bbox"
    )
    assert scores["ap"] == 1


def test_one_dataset_at_a_time(formats, coco):
    with pytest.raises(OptionError, match="has its own images"):
        list_units(OpenApOptions(data={**formats["hf"], "images": coco[0]}))
    with pytest.raises(OptionError, match="--gt beside --data hf-dataset"):
        list_units(OpenApOptions(data=formats["hf"], gt=coco[0] / "instances.json"))


def test_an_image_of_another_size_than_its_columns_say_is_refused(formats, tmp_path, coco):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(next(formats["hf"]["hf-dataset"].iterdir()))
    for name, side in (("width", 95), ("height", 72)):
        table = table.append_column(name, pa.array([side] * len(table)))
    pq.write_table(table, tmp_path / "val.parquet")
    with pytest.raises(DataError, match="masks of another size"):
        list_units(OpenApOptions(data={"hf-dataset": tmp_path / "val.parquet"}))
    stored.write_hf(tmp_path / "boxes", coco[1], coco[0] / "images", masks=False)
    table = pq.read_table(next((tmp_path / "boxes").iterdir()))
    for name, side in (("width", 200), ("height", 72)):
        table = table.append_column(name, pa.array([side] * len(table)))
    pq.write_table(table, tmp_path / "val.parquet")
    unit, *_ = list_units(OpenApOptions(data={"hf-dataset": tmp_path / "val.parquet"}, iou="bbox"))
    with pytest.raises(DataError, match="has 96x72 pixels"):
        read_unit(unit, pixels=True)
