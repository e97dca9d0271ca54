from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.data.class_masks import open_fss
from hardlook.errors import DataError


def add(root: Path, name: str, number: int, mask: object = ((0, 255),)) -> None:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (2, 1), (10, 20, 30)).save(folder / f"{number}.jpg")
    PIL.Image.fromarray(np.asarray(mask, np.uint8)).save(folder / f"{number}.png")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, number in (("coin", 1), ("coin", 10), ("coin", 2), ("abe's_flyingfish", 1), ("one-armed_bandit", 1)):
        add(tmp_path, name, number)
    return tmp_path


def test_images_and_masks(root: Path) -> None:
    source = open_fss(root)
    assert source.classes == ("abe's_flyingfish", "coin", "one-armed_bandit")
    assert source.tokens() == (
        "1_abe's_flyingfish_1", "2_coin_1", "2_coin_2", "2_coin_10", "3_one-armed_bandit_1",
    )  # fmt: skip
    assert source.image_of("54_coin_10") == "coin/10"
    assert source.read_mask("54_coin_10").mask.tolist() == [[False, True]]
    assert not source.read_mask("54_coin_10").void.any()
    assert source.read_image("54_coin_10").shape == (1, 2, 3)
    assert source.paths() == {"fss": root}


def test_names_as_the_published_tier_writes_them(root: Path) -> None:
    source = open_fss(root)
    for written in ("abe0s_flyingfish", "abe's_flyingfish", "abe-s-flyingfish", "Abes flyingfish".replace(" ", "_")):
        assert source.class_of(f"7_{written}_1") == "abe's_flyingfish"
        assert source.missing(f"7_{written}_1") == ""
    assert source.image_of("437_one0armed_bandit_1") == "one-armed_bandit/1"
    assert source.image_of("437_onearmed_bandit_1") == source.image_of("1_one-armed_bandit_1")


def test_names_alike_are_not_guessed(root: Path) -> None:
    add(root, "abes_flyingfish", 1)
    source = open_fss(root)
    assert source.class_of("7_abes_flyingfish_1") == "abes_flyingfish"
    assert source.missing("7_abe0s_flyingfish_1") == "the class abe0s_flyingfish"


def test_what_is_not_there_is_named(root: Path) -> None:
    (root / "coin" / "2.png").unlink()
    (root / "coin" / "1.jpg").unlink()
    source = open_fss(root)
    tokens = ("1_coin_1", "1_coin_2", "1_coin_3", "1_plate_1")
    told = ("the image coin/1", "the mask of coin/2", "the image coin/3", "the class plate")
    assert tuple(map(source.missing, tokens)) == told
    for token, words in zip(tokens, told, strict=True):
        with pytest.raises(DataError, match=words) as caught:
            source.read_mask(token)
        assert caught.value.unit == token
    with pytest.raises(DataError, match="not a token"):
        source.missing("coin")
    with pytest.raises(DataError, match="no label maps"):
        source.read_classes("coin/10")


@pytest.mark.parametrize(
    ("mask", "expected"),
    [([[127, 128]], [False, True]), ([[[0, 0, 0], [255, 255, 255]]], [False, True]), ([[0, 0]], [False, False])],
)
def test_foreground_is_above_127(root: Path, mask: object, expected: list[bool]) -> None:
    add(root, "coin", 4, mask)
    source = open_fss(root)
    assert source.read_mask("1_coin_4").mask.tolist() == [expected]
    assert ("2_coin_4" in source.tokens()) == any(expected)


def test_damaged_masks_are_named(root: Path) -> None:
    add(root, "coin", 5, [[0, 255, 255]])
    add(root, "coin", 6, [[[0, 0, 0], [255, 0, 0]]])
    path = root / "coin" / "10.png"
    path.write_bytes(path.read_bytes()[:45])  # inside the pixels
    source = open_fss(root)
    for token, what in (("1_coin_5", "is 3x1, its image 2x1"), ("1_coin_6", "colours"), ("1_coin_10", "cut off")):
        with pytest.raises(DataError, match=what) as caught:
            source.read_mask(token)
        assert caught.value.unit == token
    assert set(source.unreadable()) == {"coin/5", "coin/6", "coin/10"}
    assert source.unreadable()["coin/6"] == "coin/6.png: a mask with colours"
    assert not {"1_coin_5", "1_coin_6", "1_coin_10"} & set(source.tokens())


def test_the_archives_own_folders(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outer = tmp_path_factory.mktemp("fss")
    shutil.copytree(root, outer / "fewshot_data" / "fewshot_data")
    assert open_fss(outer).paths() == {"fss": outer / "fewshot_data" / "fewshot_data"}
    assert open_fss(outer / "fewshot_data").tokens() == open_fss(root).tokens()
    with pytest.raises(DataError, match="no FSS-1000 here"):
        open_fss(root / "coin")
    with pytest.raises(DataError, match="does not exist"):
        open_fss(root / "nowhere")


def test_a_pickled_source_is_small_with_a_thousand_classes(tmp_path: Path) -> None:
    for number in range(1000):
        folder = tmp_path / f"class_with_a_long_name_{number + 1}"
        folder.mkdir()
        (folder / "1.png").touch()
        (folder / "1.jpg").touch()
    source = open_fss(tmp_path)
    assert len(source.classes) == 1000
    assert source.missing("0_class_with_a_long_name_700_1") == ""
    assert len(pickle.dumps(source)) < 5000
    assert pickle.loads(pickle.dumps(source)).classes == source.classes


@pytest.mark.real
def test_every_published_class_finds_its_folder(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "reference" / "toss" / "data" / "tiers" / "general" / "general_tier.txt").read_text()
    names = {token.split("_", 1)[1].rsplit("_", 1)[0] for token in text.split()}
    for name in names:
        # FSS-1000 has an apostrophe and a hyphen where these two have a zero.
        stored = {"abe0s_flyingfish": "abe's_flyingfish", "one0armed_bandit": "one-armed_bandit"}.get(name, name)
        for number in range(1, 11):
            (tmp_path / stored).mkdir(exist_ok=True)
            (tmp_path / stored / f"{number}.jpg").touch()
            (tmp_path / stored / f"{number}.png").touch()
    source = open_fss(tmp_path)
    assert len(source.classes) == 109
    assert not any(source.missing(token) for token in text.split())
    assert len({source.class_of(token) for token in text.split()}) == 109
