import pytest

from hardlook.errors import ModelError
from hardlook.models.card import ModelCard
from hardlook.models.near_names import meant
from hardlook.models.registry import resolve

CARDS = (
    ModelCard("planted-segmenter", ("semantic-segmenter",)),
    ModelCard("planted-panoptic", ("panoptic-segmenter",)),
    ModelCard("planted-saliency", ("saliency",)),
    ModelCard("planted-anything", ()),
)


@pytest.mark.parametrize(
    ("name", "role", "said"),
    [
        ("planted-segmentor", "semantic-segmenter", "did you mean 'planted-segmenter'"),
        ("planted-segmentor", None, "did you mean 'planted-segmenter'"),
        ("plantd-anything", "saliency", "did you mean 'planted-anything'"),
        ("planted-salience", "saliency", "did you mean 'planted-saliency'"),
    ],
)
def test_the_nearest_name_that_fits_comes_first(name, role, said):
    assert meant(name, role, CARDS).startswith(said)


def test_a_nearer_name_of_another_role_is_not_proposed():
    said = meant("planted-segmentor", "panoptic-segmenter", CARDS)
    assert "planted-panoptic" in said
    assert "planted-segmenter" not in said


def test_where_no_name_fits_the_near_one_is_called_what_it_is():
    assert meant("planted-segmentor", "text-encoder", CARDS[:3]) == (
        "'planted-segmenter' is near, but a semantic-segmenter; "
    )
    assert meant("xyzzy", "saliency", CARDS) == ""


def test_names_whose_role_is_not_known_count_too():
    assert meant("my-modle", "saliency", CARDS, ["my-model"]) == "did you mean 'my-model'? "


@pytest.mark.parametrize("name", ["planted-segmentor", "planted-segmenter"])
def test_the_registry_asks_for_the_role(name):
    with pytest.raises(ModelError) as told:
        resolve(name, "panoptic-segmenter")
    assert "did you mean 'planted-panoptic'" in told.value.remedy
    assert "--role panoptic-segmenter" in told.value.remedy
    assert "'planted-segmenter'" not in told.value.remedy
