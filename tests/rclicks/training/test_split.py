"""Which samples train and which judge."""

import pytest

from hardlook.errors import DataError
from hardlook.rclicks.training import split as split_module
from hardlook.rclicks.training.split import split_samples
from hardlook.rclicks.user_clicks.planted_users import make_planted_sources


def test_planted_scenes_of_training_validation_and_evaluation_differ():
    split = split_samples(None, {}, None, None, scenes=6, seed=0)
    keys = [{stem.source.key for stem in part} for part in (split.training, split.validation)]
    judged = {source.key for source in make_planted_sources(0, 6)}
    assert not keys[0] & keys[1] and not (keys[0] | keys[1]) & judged


def test_an_image_is_never_on_both_sides(clicked):
    data = {"grabcut": clicked.folder}
    for seed in range(4):
        split = split_samples(clicked.clicks, data, clicked.previous, None, scenes=6, seed=seed)
        train, judge = (
            {stem.source.instance.image_key for stem in part} for part in (split.training, split.validation)
        )
        assert train and judge and not train & judge
        assert len(split.training) + len(split.validation) == 6


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_neither_part_is_empty_whatever_is_drawn(clicked, monkeypatch, share):
    monkeypatch.setattr(split_module, "VALIDATION_SHARE", share)
    split = split_samples(clicked.clicks, {"grabcut": clicked.folder}, clicked.previous, None, scenes=6, seed=0)
    assert {stem.source.instance.image_stem for stem in split.validation} == {"000001"}
    assert split.training


def test_stems_of_the_list_that_hold_nothing_out_are_noted(clicked, tmp_path):
    listed = tmp_path / "validation.txt"
    listed.write_text("\ufeff000001\n000002.png\nnowhere\n", encoding="utf-8")
    data = {"grabcut": clicked.folder}
    split = split_samples(clicked.clicks, data, clicked.previous, listed, scenes=6, seed=0)
    assert {stem.source.instance.image_stem for stem in split.validation} == {"000001"}
    [note] = [note for note in split.left_out if "--validation" in note.what]
    assert (note.count, note.examples) == (2, ("000002.png", "nowhere"))


def test_a_list_that_is_no_text_is_refused(clicked, tmp_path):
    listed = tmp_path / "validation.txt"
    listed.write_bytes(b"\xff\xfe0\x000\x00")
    with pytest.raises(DataError, match="not a list of image stems") as caught:
        split_samples(clicked.clicks, {"grabcut": clicked.folder}, clicked.previous, listed, scenes=6, seed=0)
    assert caught.value.file == str(listed)


def test_clicks_are_whole_pixels_of_the_error(clicked):
    split = split_samples(clicked.clicks, {"grabcut": clicked.folder}, clicked.previous, None, scenes=6, seed=0)
    for stem in (*split.training, *split.validation):
        image, _, error, clicks = stem.read()
        assert image.shape[:2] == error.shape and clicks.dtype.kind == "i"
        assert error[clicks[:, 1], clicks[:, 0]].all()
