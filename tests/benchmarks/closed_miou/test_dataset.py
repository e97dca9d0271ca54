import numpy as np
import pytest

from hardlook.benchmarks.closed_miou.dataset import list_images, read_unit, sources_of
from hardlook.benchmarks.closed_miou.options import ClosedMiouOptions
from hardlook.benchmarks.closed_miou.pictures import decode_map, encode_map
from hardlook.errors import DataError, OptionError


def test_data_that_nobody_can_read_is_refused_with_what_can_be(tmp_path):
    with pytest.raises(OptionError, match="does not know how to read this") as caught:
        list_images(ClosedMiouOptions(data={"cityscapes": tmp_path}))
    assert "--data voc=DIR" in caught.value.remedy


@pytest.mark.parametrize("given", [{"gt": "x"}, {"pred": "x"}])
def test_truth_and_predictions_go_together(given):
    with pytest.raises(OptionError, match="go together"):
        list_images(ClosedMiouOptions(**given))


def test_label_maps_need_names(tmp_path):
    with pytest.raises(OptionError, match="nobody said what they are called"):
        list_images(ClosedMiouOptions(data={"images": tmp_path, "masks": tmp_path}))


@pytest.mark.parametrize("content", ["", "cat\ncat\n"])
def test_names_must_be_there_and_differ(tmp_path, content):
    (tmp_path / "labels.txt").write_text(content)
    with pytest.raises(DataError, match="must be there and differ"):
        list_images(ClosedMiouOptions(data={"images": tmp_path, "masks": tmp_path}, labels=tmp_path / "labels.txt"))


def test_predictions_without_truth_are_listed(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\n")
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "pred" / "stray.npy", np.zeros((2, 2), int))
    options = ClosedMiouOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", labels=tmp_path / "labels.txt")
    with pytest.raises(DataError, match="1 predictions have no truth: stray"):
        list_images(options)


def test_the_planted_world_is_its_own_fingerprint():
    one, other = (sources_of(ClosedMiouOptions(seed=seed)) for seed in (0, 1))
    assert one != other
    assert set(one) == {"planted world"}


def test_void_of_the_world_is_ignored():
    (unit, *_) = list_images(ClosedMiouOptions(scenes=1))
    content = read_unit(unit.payload, unit.id)
    assert set(np.unique(content.truth_map)) <= {*range(len(content.labels)), 255}


def test_kept_predictions_survive():
    maps = np.array([[-1, 0], [149, 65534]], np.int32)
    assert (decode_map(encode_map(maps)) == maps).all()
