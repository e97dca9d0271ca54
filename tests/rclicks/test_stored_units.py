"""RClicks on objects of tables, shards, exports of FiftyOne and Python objects: as on the same COCO json."""

import numpy as np
import pytest
import stored_datasets as stored

from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.units import list_sources, list_units, prepare_unit


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    content = stored.write_coco(folder, count=2)
    images = folder / "images"
    return {
        "instances": {"instances": folder / "instances.json", "images": images},
        "hf-dataset": {"hf-dataset": stored.write_hf(folder / "hf", content, images)},
        "webdataset": {"webdataset": stored.write_shard(folder / "0.tar", content, images)},
        "dataset": {"dataset": stored.CocoPairs(content, images)},
        "fiftyone": {"fiftyone": stored.write_fiftyone(folder / "boxes", content, images)},
    }


def test_instances_are_those_of_the_json(formats):
    expected = [prepare_unit(unit).payload.instance for unit in list_units(RClicksOptions(data=formats["instances"]))]
    assert len(expected) >= 4
    for name in ("hf-dataset", "webdataset", "dataset"):
        units = list_units(RClicksOptions(data=formats[name]))
        assert len(units) == len(expected)
        for unit, other in zip(units, expected, strict=True):
            instance = prepare_unit(unit).payload.instance
            assert unit.id.startswith(f"{name}/00000")
            assert (instance.image == other.image).all() and (instance.target == other.target).all()
            assert unit.payload.source.size() == (96, 72)


def test_scores_are_those_of_the_json(formats):
    small = {"rounds": 3, "groups": 2, "resamples": 0}
    values = [
        InMemoryRun("rclicks", {**small, "data": formats[name]}).score("disc").get("auc").value
        for name in ("instances", "dataset")
    ]
    assert values[0] == values[1] and np.isfinite(values[0])


def test_boxes_alone_are_no_instances(formats):
    with pytest.raises(DataError, match="no instance of fiftyone is left") as caught:
        list_units(RClicksOptions(data=formats["fiftyone"]))
    assert "without a mask" in str(caught.value)


def test_sources_are_the_files_or_the_items(formats):
    assert list(list_sources(RClicksOptions(data=formats["hf-dataset"])))[:-1] == [
        "hf-dataset validation validation-00000-of-00001.parquet"
    ]
    assert list(list_sources(RClicksOptions(data=formats["dataset"])))[:-1] == [
        "dataset (decoded items of the CocoPairs object)"
    ]


def test_a_split_is_chosen_where_there_are_several(formats, tmp_path):
    (file,) = formats["hf-dataset"]["hf-dataset"].iterdir()
    for split in ("train", "validation"):
        (tmp_path / f"{split}-00000-of-00001.parquet").symlink_to(file)
    with pytest.raises(OptionError, match="has 2 splits") as caught:
        list_units(RClicksOptions(data={"hf-dataset": tmp_path}))
    assert caught.value.remedy == "give --split train or validation"
    assert list_units(RClicksOptions(data={"hf-dataset": tmp_path}, split="train"))
    with pytest.raises(OptionError, match="split 'train' without voc"):
        list_units(RClicksOptions(data=formats["webdataset"], split="train"))
