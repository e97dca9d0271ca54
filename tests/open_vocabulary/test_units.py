import numpy as np
import pytest

from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit
from hardlook.open_vocabulary.options import SceneOptions
from hardlook.open_vocabulary.units import check_size, list_given_sources, require_stored


def test_the_planted_world_is_a_source_where_no_data_are_given(tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("cat\n")
    files = {"labels": str(labels), "pred_labels": "coco80"}
    one, other = (list_given_sources(SceneOptions(seed=seed), **files) for seed in (0, 1))
    assert set(one) == {"planted world", "labels"} and one["labels"] == labels
    assert one["planted world"] != other["planted world"]
    given = SceneOptions(data={"images": tmp_path}, gt=tmp_path, pred=tmp_path)
    assert set(list_given_sources(given, labels=None)) == {"images", "gt", "pred"}


def test_without_a_model_a_unit_needs_a_stored_prediction():
    assert require_stored(0, Unit("a", None)) == 0
    with pytest.raises(OptionError, match="neither a model nor a stored prediction"):
        require_stored(None, Unit("a", None))


def test_another_size_names_both_sizes_as_width_and_height(tmp_path):
    where = {"file": tmp_path / "a.png", "unit": "a", "remedy": "resize it"}
    check_size("map", np.zeros((2, 3)), "its truth", (2, 3), **where)
    check_size("map", None, "its truth", (2, 3), **where)
    with pytest.raises(DataError, match=r"the map has 3x2 pixels \(width x height\), its truth 2x2"):
        check_size("map", np.zeros((2, 3)), "its truth", (2, 2), **where)
