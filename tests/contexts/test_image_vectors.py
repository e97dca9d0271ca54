import pytest

from hardlook.contexts.image_vectors import image_vectors
from hardlook.data.concept_context import read_rows
from hardlook.errors import ModelError
from hardlook.models.roles import Features
from hardlook.world.write import write_world


class Stumbling:
    """Answers once, then raises what it was given."""

    dimension = 2

    def __init__(self, error):
        self.error, self.asked = error, 0

    def encode(self, images):
        self.asked += 1
        if self.asked == 2:
            raise self.error
        return Features(images[0][0, :1, :2].astype("float32"))


@pytest.mark.parametrize("error", [ModelError("too dark"), RuntimeError("too dark")])
def test_an_error_of_the_encoder_names_the_file(tmp_path, error):
    rows = read_rows(write_world(tmp_path / "world", "concept-context", count=4, size=(96, 72)))
    with pytest.raises(ModelError, match="too dark") as caught:
        image_vectors(Stumbling(error), "stumbling", rows, tmp_path / "cache")
    assert caught.value.file == str(rows[1].path)
