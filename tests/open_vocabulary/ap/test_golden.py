"""The worked check of the specification and the released code's traps, through files and the command line."""

import json

import pytest
from command_line import CommandLine
from detection_scenes import pycocotools_evaluation

NAMES = ("alpha", "beta", "gamma")

A, B, C, ELSEWHERE = [0, 0, 20, 20], [30, 0, 20, 20], [60, 0, 20, 20], [60, 40, 20, 20]

OBJECTS = ((1, A), (2, B), (1, C))

FOUND = ((2, A, 0.9), (1, A, 0.8), (2, B, 0.7), (1, C, 0.6), (3, ELSEWHERE, 0.5))

SIMILARITY = [[1, 0.5, 0.2], [0.5, 1, 0.25], [0.2, 0.25, 1]]


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


def polygon(box):
    x, y, width, height = box
    return [[x, y, x + width, y, x + width, y + height, x, y + height]]


def write_files(folder, objects=OBJECTS, found=FOUND, names=NAMES, first_category=1, first_annotation=1):
    """instances.json, results.json and S.csv; categories are numbered from 1 in `objects` and `found`."""
    shift = first_category - 1
    truth = {
        "images": [{"id": 1, "width": 100, "height": 80, "file_name": "one.jpg"}],
        "categories": [{"id": row + first_category, "name": name} for row, name in enumerate(names)],
        "annotations": [
            {"id": first_annotation + row, "image_id": 1, "category_id": category + shift, "bbox": box, "area": 400,
             "iscrowd": 0, "segmentation": polygon(box)}
            for row, (category, box) in enumerate(objects)
        ],
    }  # fmt: skip
    results = [
        {"image_id": 1, "category_id": category + shift, "bbox": box, "score": score, "segmentation": polygon(box)}
        for category, box, score in found
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "instances.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    rows = [",".join(["", *names])]
    rows += [",".join([name, *map(str, row)]) for name, row in zip(names, SIMILARITY, strict=False)]
    (folder / "S.csv").write_text("\n".join(rows))
    words = ["run", "open-ap", "--gt", folder / "instances.json", "--pred", folder / "results.json"]
    return [*words, "--similarity", folder / "S.csv", "--out", folder / "run", "--quiet", "--json"]


def scores_of(answer):
    assert answer.code == 0, answer.err
    return {(row["name"], *sorted(row["slice"].items())): row["value"] for row in json.loads(answer.out)["scores"]}


@pytest.mark.parametrize("iou", ["segm", "bbox"])
def test_the_worked_check_through_the_command_line(hardlook, tmp_path, iou):
    values = scores_of(hardlook(*write_files(tmp_path), "--iou", iou))
    expected = {
        ("open-ap", ("class", "alpha")): 0.554455,
        ("open-ap", ("class", "beta")): 0.666667,
        ("open-ap",): 0.610561,
        ("dagger-ap",): 0.376238,
        ("ap",): 0.75,
        ("open-gain",): 0.610561 - 0.376238,
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1.5e-6)
    # Alpha's only confused match is box A, called beta with similarity .5.
    assert values[("confused-objects", ("called", "beta"), ("true", "alpha"))] == 1
    assert values[("unforgiven-objects", ("called", "beta"), ("true", "alpha"))] == 0.5
    assert ("ap", ("class", "gamma")) not in values


def test_the_report_of_the_check_can_be_drawn_without_images(hardlook, tmp_path):
    hardlook(*write_files(tmp_path), "--iou", "bbox")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "alpha called beta" in page
    assert page.count("data:image/jpeg") >= 2


def test_a_category_of_id_0_is_unmatched_to_the_released_code(hardlook, tmp_path):
    files = write_files(tmp_path, [(1, A)], [(1, A, 0.9)], first_category=0)
    ours = scores_of(hardlook(*files))
    assert (ours["ap",], ours["dagger-ap",], ours["open-ap",]) == pytest.approx((1, 1, 1))
    answer = hardlook("score", tmp_path / "run", "--reading", "unmatched=released", "--json")
    released = scores_of(answer)
    assert (released["ap",], released["dagger-ap",], released["open-ap",]) == pytest.approx((1, 0, 0))
    assert json.loads(answer.out)["readings"][0]["value"] == "released"


def test_without_a_category_of_id_0_the_released_code_finds_all_classes(hardlook, tmp_path):
    files = write_files(tmp_path, first_category=1)
    ours, released = (scores_of(hardlook(*files, "--reading", f"unmatched={name}")) for name in ("ours", "released"))
    assert ours["open-ap",] > 0.6
    assert released == ours


def test_an_annotation_of_id_0_is_unmatched_to_the_released_code_as_to_pycocotools(hardlook, tmp_path):
    files = write_files(tmp_path, first_annotation=0)
    ours = scores_of(hardlook(*files, "--iou", "bbox"))
    released = scores_of(hardlook(*files, "--iou", "bbox", "--reading", "unmatched=released"))
    truth, results = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("instances", "results"))
    assert released["ap",] == pytest.approx(pycocotools_evaluation(truth, results, "bbox").stats[0], abs=1e-9)
    assert ours["ap",] == pytest.approx(0.75, abs=1e-6)
    assert ours["ap",] > released["ap",]
    assert ours["open-ap",] > released["open-ap",]


def test_few_detections_count(hardlook, tmp_path):
    files = write_files(tmp_path)
    values = scores_of(hardlook(*files, "--max-detections", 1))
    # One detection in all for dagger: beta's name on alpha's object. One of each class for vanilla: alpha on A
    # finds one of its two objects (precision 1 up to recall .5), beta on A finds nothing.
    assert values["dagger-ap",] == 0
    assert values["ap", ("class", "alpha")] == pytest.approx(51 / 101)
    assert values["ap", ("class", "beta")] == 0


@pytest.mark.parametrize(
    ("objects", "found", "note", "ap"),
    [
        (OBJECTS, (), ("images without detections", 1), 0),
        ((), FOUND, ("images without objects", 1), None),
        (((1, A), (2, B)), ((1, A, 0.9),), ("classes that no detection names", 1), 0.5),
    ],
)
def test_nothing_found_nothing_to_find_never_named(hardlook, tmp_path, objects, found, note, ap):
    answer = hardlook(*write_files(tmp_path, objects, found))
    values = scores_of(answer)
    assert (values["ap",], values["open-ap",]) == (pytest.approx(ap) if ap else ap, pytest.approx(ap) if ap else ap)
    document = json.loads(answer.out)
    assert note in [(row["what"], row["count"]) for row in document["noted"]]
    # They are in the scores, so they are not left out of them.
    assert note[0] not in {row["what"] for row in document["left_out"]}
    assert (tmp_path / "run" / "report.html").is_file()
