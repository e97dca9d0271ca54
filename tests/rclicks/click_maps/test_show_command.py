"""`hardlook clicks show`: pictures whose pixels can be told."""

import json

import numpy as np
import pytest
from PIL import Image

from hardlook.rclicks.click_maps.colours import label_colours


def pixels(path):
    return np.array(Image.open(path)).astype(int)


@pytest.fixture
def files(tmp_path):
    image = np.full((60, 80, 3), 120, np.uint8)
    mask = np.zeros((60, 80), np.uint8)
    mask[10:50, 20:60] = 255
    mask[9, 20:60] = 128
    previous = mask.copy()
    previous[10:50, 50:60] = 0
    previous[:5] = 255
    for name, stored in (("image", image), ("mask", mask), ("previous", previous), ("integers", mask // 64)):
        Image.fromarray(stored).save(tmp_path / f"{name}.png")
    return tmp_path


def test_a_planted_scene_needs_no_file(hardlook, tmp_path):
    answer = hardlook("clicks", "show", "--model", "distance,planted-users", "--out", tmp_path / "out")
    assert answer.code == 0 and "distance-heat.png" in answer.out
    page = (tmp_path / "out" / "page.html").read_text()
    assert page.count("data:image/jpeg") == 2 + 2 * 3 + 1 and "colours of the groups" in page


def test_the_pictures_show_the_map_its_groups_and_samples(hardlook, files):
    out = files / "out"
    words = ("--model", "distance,uniform,center", "--groups", 4, "--samples", 30, "--out", out, "--json")
    document = json.loads(hardlook("clicks", "show", files / "image.png", files / "mask.png", *words).out)
    assert document["pixels"] == 40 * 40 and document["click_type"] == "first"
    distance, uniform, center = document["models"]
    assert all(20 <= x < 60 and 10 <= y < 50 for x, y in distance["samples"]) and len(distance["samples"]) == 30
    assert center["samples"] == [center["samples"][0]] * 30
    assert [part["pixels"] for part in uniform["groups"]] == [1600] * 4
    heat, groups = pixels(out / "distance-heat.png"), pixels(out / "distance-groups.png")
    assert heat[30, 40].sum() > heat[12, 40].sum() and len(set(heat[0, 0].tolist())) == 1
    # Ordered colours: the rim is of the first group, the middle of the last; outside nothing is painted.
    distances = [
        [np.abs(groups[place] - colour).sum() for colour in label_colours(4)] for place in ((10, 20), (30, 40))
    ]
    assert [int(np.argmin(one)) for one in distances] == [0, 3]
    assert len(set(groups[0, 0].tolist())) == 1
    assert pixels(out / "center-samples.png").shape == (60, 80, 3)


def test_the_error_of_a_previous_mask_is_the_one_that_is_corrected_first(hardlook, files):
    given = ("clicks", "show", files / "image.png", files / "mask.png", "--previous", files / "previous.png", "--json")
    first = json.loads(hardlook(*given, "--out", files / "a").out)
    # 10 columns are missing and 5 rows too many: the wider band holds the larger circle.
    assert first["click_type"] == "fn" and first["pixels"] == 40 * 10
    other = json.loads(hardlook(*given, "--error", "fp", "--out", files / "b").out)
    assert other["click_type"] == "fp" and other["pixels"] == 5 * 80


def test_an_integer_of_the_mask_is_an_object(hardlook, files):
    given = ("clicks", "show", files / "image.png", files / "integers.png", "--json")
    assert json.loads(hardlook(*given, "--object", 3, "--out", files / "a").out)["pixels"] == 40 * 40
    assert json.loads(hardlook(*given, "--object", 2, "--out", files / "b").out)["pixels"] == 40
    answer = hardlook(*given, "--out", files / "c")
    assert answer.code == 1 and "several objects: 2, 3" in answer.err and "--object N" in answer.err


def test_what_is_ignored_is_no_error(hardlook, files):
    # The previous mask also covers row 9, which the truth ignores, and row 8, which it does not.
    previous = pixels(files / "mask.png")
    previous[8:10, 20:60] = 255
    Image.fromarray(previous.astype(np.uint8)).save(files / "beyond.png")
    given = ("clicks", "show", files / "image.png", files / "mask.png", "--previous", files / "beyond.png", "--json")
    document = json.loads(hardlook(*given, "--out", files / "a").out)
    assert document["click_type"] == "fp" and document["pixels"] == 40


def test_an_empty_previous_mask_is_the_round_before_any_click(hardlook, files):
    Image.fromarray(np.zeros((60, 80), np.uint8)).save(files / "nothing.png")
    given = ("clicks", "show", files / "image.png", files / "mask.png", "--previous", files / "nothing.png", "--json")
    first = json.loads(hardlook(*given, "--out", files / "a").out)
    missing = json.loads(hardlook(*given, "--error", "fn", "--out", files / "b").out)
    assert (first["click_type"], missing["click_type"]) == ("first", "fn")
    assert first["pixels"] == missing["pixels"] == 40 * 40
    answer = hardlook(*given, "--error", "fp", "--out", files / "c")
    assert answer.code == 1 and "no error of type fp" in answer.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("image.png",), "an image without a mask"),
        (("image.png", "gone.png"), "gone.png"),
        (("image.png", "mask.png", "--object", 9), "no object 9 in the mask: it has 128, 255"),
        (("image.png", "mask.png", "--error", "fp"), "--error fp without --previous"),
        (("image.png", "mask.png", "--previous", "integers.png"), "the previous mask has several objects: 2, 3"),
        (("--error", "fn"), "--error fn without --previous"),
        (("image.png", "mask.png", "--previous", "mask.png"), "the previous mask is perfect"),
        (("image.png", "mask.png", "--group-rule", "even"), "threshold, exact"),
        (("image.png", "mask.png", "--model", "disc"), "does not have the role click-model"),
        (("--object", 2), "give IMAGE MASK"),
    ],
)
def test_mistakes_are_named(hardlook, files, monkeypatch, more, said):
    monkeypatch.chdir(files)
    answer = hardlook("clicks", "show", *more, "--out", "out")
    assert answer.code == 1 and said in answer.err and not (files / "out").exists()


def test_saliency_means_the_click_model_and_the_page_names_what_it_looks_with(hardlook, tmp_path):
    words = ("--model", "saliency", "--model-arg", "model=planted-saliency", "--out", tmp_path, "--json")
    document = json.loads(hardlook("clicks", "show", *words).out)
    assert document["models"][0]["model"] == "saliency"
    assert document["models"][0]["identity"]["name"] == "saliency-clicks"
    page = (tmp_path / "page.html").read_text()
    assert "model=planted-saliency" in page


@pytest.mark.real
def test_a_grabcut_image_is_shown_at_its_own_size(hardlook, tmp_path, shared_data):
    folder = shared_data / "data" / "GrabCut"
    files = (folder / "data_GT" / "llama.jpg", folder / "boundary_GT" / "llama.bmp")
    document = json.loads(hardlook("clicks", "show", *files, "--model", "distance", "--out", tmp_path, "--json").out)
    truth = np.array(Image.open(files[1]).convert("L")) > 128
    assert document["pixels"] == truth.sum()
    assert all(truth[y, x] for x, y in document["models"][0]["samples"])
    assert Image.open(tmp_path / "distance-groups.png").size == Image.open(files[0]).size
