"""Published panoptic datasets by name: from their folders, with a model or beside stored predictions."""

import preset_folders
import pytest

from hardlook.errors import DataError, OptionError
from hardlook.open_vocabulary.pq.options import OpenPqOptions
from hardlook.open_vocabulary.pq.units import list_sources, list_units, prepare_unit


def test_ade20k_with_the_names_of_maskformer_beside_stored_predictions(tmp_path):
    truth = preset_folders.make_ade_panoptic(tmp_path)
    preset_folders.write_panoptic_output(tmp_path / "inference", truth, {0: 1})
    options = OpenPqOptions(data={"ade20k-panoptic": tmp_path}, pred=tmp_path / "inference")
    assert options.labels == "ade150"
    unit = prepare_unit(list_units(options)[0])
    assert (unit.id, unit.payload.image) == ("ADE_val_00000001", None)
    names = unit.payload.predicted.vocabulary.names
    assert [names[place] for place in unit.payload.predicted.segments.classes] == ["building", "bed"]
    named = {"ade20k-panoptic annotations", "ade20k-panoptic segments", "pred", "pred_masks"}
    assert set(list_sources(options)) == named


def test_coco_for_a_model(tmp_path):
    preset_folders.make_coco_panoptic(tmp_path)
    options = OpenPqOptions(data={"coco-panoptic": tmp_path})
    unit = prepare_unit(list_units(options)[0])
    assert unit.payload.image.shape == (4, 6, 3)
    assert set(list_sources(options)) == {f"coco-panoptic {part}" for part in ("annotations", "segments", "images")}


def test_what_stands_beside_a_published_dataset_is_refused(tmp_path):
    truth = preset_folders.make_coco_panoptic(tmp_path)
    with pytest.raises(OptionError, match="has its own images and segments"):
        list_units(OpenPqOptions(data={"coco-panoptic": tmp_path}, gt=truth, pred=truth))
    with pytest.raises(DataError, match="no layout of ade20k-panoptic"):
        list_units(OpenPqOptions(data={"ade20k-panoptic": tmp_path}))
    with pytest.raises(OptionError, match="no reader for this data") as caught:
        list_units(OpenPqOptions(data={"panoptics": tmp_path}))
    assert "coco-panoptic, ade20k-panoptic" in caught.value.remedy
