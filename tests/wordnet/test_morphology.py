import pytest

from hardlook.wordnet.morphology import singulars, spellings


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("churches", "church"),
        ("buses", "bus"),
        ("shelves", "shelf"),
        ("boxes", "box"),
        ("quizzes", "quizz"),
        ("dishes", "dish"),
        ("firemen", "fireman"),
        ("berries", "berry"),
        ("dogs", "dog"),
    ],
)
def test_each_ending_has_its_rule(word, expected):
    assert expected in singulars(word, {})


def test_an_exception_stands_alone():
    assert singulars("lens", {"lens": ("lens",)}) == ("lens",)


def test_spellings_are_tried_as_written_first():
    assert spellings("Fire  hydrant") == ("fire_hydrant", "fire-hydrant", "firehydrant")
    assert spellings("x-ray tube") == ("x-ray_tube", "x_ray_tube", "x-ray-tube", "xraytube")
    assert spellings("  ") == ()
