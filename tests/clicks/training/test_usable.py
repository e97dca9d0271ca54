"""Samples that cannot be used are found before a training, all of them."""

import pytest

from hardlook.clicks.training.usable import unusable
from hardlook.errors import DataError, ModelError


class Broken:
    def __init__(self, error):
        self.error = error

    def read(self):
        raise self.error


@pytest.mark.parametrize("workers", [0, 3])
def test_every_sample_that_fails_is_told_with_its_error(scenes, brief, workers):
    class Far:
        def read(self):
            image, target, error, clicks = scenes[0].read()
            return image, target, error & False, clicks

    told = []
    samples = [scenes[0], Broken(DataError("truncated")), scenes[1], Far()]
    found = unusable(samples, brief, workers=workers, progress=told.append)
    assert told == [True, False, True, False]
    assert {place: error.what for place, error in found.items()} == {
        1: "truncated",
        3: "none of 20 clicks falls near the error region",
    }


def test_what_is_no_fault_of_the_data_is_raised(scenes, brief):
    with pytest.raises(ModelError, match="no weights"):
        unusable([scenes[0], Broken(ModelError("no weights"))], brief)
