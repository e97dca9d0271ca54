"""Attributes of masks: measured once per image, written and read back, invalid tables refused with the line."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hardlook.data.class_masks import ClassMask, open_class_mask_folders
from hardlook.errors import DataError
from hardlook.models.registry import build
from hardlook.toss.tiers.attributes import (
    PUBLISHED_COLUMNS,
    AttributeModels,
    AttributeRow,
    append_attributes,
    copy_table,
    measure_attributes,
    measure_salience,
    measure_supervised_iou,
    measure_table,
    process_images,
    read_attributes,
    write_attributes,
)
from hardlook.world.layouts import write_world
from hardlook.world.vocabulary import LABELS


def test_a_table_reads_back_with_the_published_columns_first(tmp_path):
    rows = [
        AttributeRow("1_2007_000032", 0.1 + 0.2, None, 1 / 3, -1.0, 0.0, 7, None, "cat", "2007_000032"),
        AttributeRow("2_a,b", None, 1.0, 0.5, 0.5, 1.0, 2, 0.25, "dog", "a,b"),
    ]
    path = tmp_path / "deep" / "attributes.csv"
    write_attributes(path, rows)
    assert read_attributes(path) == tuple(rows)
    assert tuple(next(csv.reader(path.open()))[:8]) == PUBLISHED_COLUMNS
    third = AttributeRow("3_c", None, None, None, None, None, None, None, "cup", "c")
    append_attributes(path, [third])
    assert read_attributes(path) == (*rows, third)


def test_what_is_no_table_says_so(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_attributes(tmp_path / "none.csv")
    path = tmp_path / "other.csv"
    path.write_text("filename,iou\n1_a,.5\n")
    with pytest.raises(DataError, match="lacks oss_perf"):
        read_attributes(path)
    path.write_text(",".join(PUBLISHED_COLUMNS) + "\n1_a,,.5,x,.1,.1,2,0\n")
    with pytest.raises(DataError, match="area_ratio is not a number: 'x'") as caught:
        read_attributes(path)
    assert (caught.value.unit, caught.value.file) == ("line 2", str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\xff", "this is not text"),
        (b"", "empty"),
        (None, "this is a folder"),
    ],
)
def test_what_is_no_text_says_so_with_a_remedy(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_attributes(path)
    assert caught.value.file == str(path) and caught.value.remedy


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("1_a,.1,.5,.5,.1,.1,2,0", "1_a comes twice, first in line 2"),
        ("2_a,.1,1.5,.5,.1,.1,2,0", "iou is 1.5, above 1"),
        ("2_a,.1,.5,.5,.1,-.1,2,0", "saliou is -.1, below 0"),
        ("2_a,.1,.5,.5,.1,.1,2,93", "distractor_weight is 93, above 1"),
        ("2_a,.1,.5,.5,1.1,.1,2,0", "offset_ratio is 1.1, above 1"),
        ("2_a,.1,.5,.5,.1", "5 cells under 8 columns"),
    ],
)
def test_rows_that_cannot_be_are_refused_with_their_line(tmp_path, second, message):
    path = tmp_path / "table.csv"
    path.write_text(",".join(PUBLISHED_COLUMNS) + f"\n1_a,.1,.5,.5,.1,.1,2,0\n{second}\n")
    with pytest.raises(DataError) as caught:
        read_attributes(path)
    assert caught.value.what == message and caught.value.unit == "line 3" and caught.value.remedy


def test_numbers_that_are_not_finite_are_unknown(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(PUBLISHED_COLUMNS) + "\n1_a,,nan,inf,-.5,NaN,2.0,-inf\n2_a,1,1,1,1,1,1,1")
    first, last = read_attributes(path)
    assert (first.oss_perf, first.iou, first.area_ratio, first.saliou, first.distractor_weight) == (None,) * 5
    assert (first.offset_ratio, first.blob_count) == (-0.5, 2)
    assert last.filename == "2_a"  # without an end to its line: somebody's editor, not a stopped run
    assert [row.filename for row in read_attributes(path, unfinished=True)] == ["1_a"]


def test_a_table_that_names_no_class_and_image_has_those_of_the_token(tmp_path):
    path = tmp_path / "table.csv"
    cells = ",,.5,.5,.5,.5,2,0"
    path.write_text(f"{','.join(PUBLISHED_COLUMNS)}\n12_2007_000032{cells}\n")
    [row] = read_attributes(path, class_name=lambda number: f"class {number}")
    assert (row.class_name, row.image) == ("class 12", "2007_000032")
    path.write_text(f"{','.join(PUBLISHED_COLUMNS)},class,image\n1_a{cells},cat,elsewhere\n2_b{cells},,\n")
    found = [(row.class_name, row.image) for row in read_attributes(path)]
    assert found == [("cat", "elsewhere"), ("2", "b")]


@pytest.mark.real
def test_the_published_table_reads_whole(shared_data):
    rows = read_attributes(shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv")
    # The spec counts six degenerate rows: six are negative, and four of them are -1.
    assert len(rows) == 15052 and sum(row.offset_ratio < 0 for row in rows) == 6
    assert sum(row.offset_ratio == -1 for row in rows) == 4


INDICES = {label.name: place for place, label in enumerate(LABELS)}


class Counting:
    """A model that counts the images it sees, and fails on request."""

    def __init__(self, name, role, broken=None):
        self.model, self.seen, self.broken = build(name, role), 0, broken
        self.labels = getattr(self.model, "labels", ())

    def saliency(self, images):
        self.seen += len(images)
        if self.broken is not None and any((image == self.broken).all() for image in images):
            raise RuntimeError("no such picture")
        return self.model.saliency(images)

    def segment(self, images):
        self.seen += len(images)
        return self.model.segment(images)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    write_world(folder / "voc", layout="voc", seed=0, count=12, size=(96, 72), correlation=0.0, image_format="png")
    return open_class_mask_folders({"voc": folder / "voc"})


@pytest.fixture
def models():
    saliency, segmenter = Counting("planted-saliency", "saliency"), Counting("planted-segmenter", "semantic-segmenter")
    return AttributeModels(saliency, segmenter, INDICES)


def measure(source, tokens, models):
    rows = []
    failures = measure_attributes(source, tokens, models, keep=rows.extend)
    return rows, failures


def test_every_mask_has_a_row_and_every_image_is_seen_once(source, models):
    rows, failures = measure(source, source.tokens(), models)
    assert not failures and sorted(row.filename for row in rows) == sorted(source.tokens())
    images = {source.image_of(token) for token in source.tokens()}
    assert models.saliency.seen == models.supervised.seen == len(images) < len(rows)


def test_a_perfect_segmenter_has_iou_one_and_rows_name_class_and_image(source, models):
    rows, _ = measure(source, source.tokens(), models)
    for row in rows:
        assert row.iou == 1.0
        assert row.class_name == source.class_of(row.filename) and row.image == source.image_of(row.filename)
        assert 0 <= row.saliou <= 1 and row.blob_count >= 2 and row.oss_perf is None


def test_distractors_are_the_other_classes_share(source, models):
    rows, _ = measure(source, source.tokens(), models)
    for row in rows:
        classes = source.read_classes(row.image)
        own = source.read_mask(row.filename).mask.sum()
        assert row.distractor_weight == pytest.approx(1 - own / ((classes > 0) & (classes < 255)).sum())


def test_without_models_their_columns_are_empty(source):
    rows, _ = measure(source, source.tokens()[:3], AttributeModels())
    assert {row.iou for row in rows} == {row.saliou for row in rows} == {None}


def test_a_class_the_segmenter_cannot_name_has_no_supervised_iou(source, models):
    known = {name: index for name, index in INDICES.items() if name != "cat"}
    rows, _ = measure(source, source.tokens(), AttributeModels(None, models.supervised, known))
    assert {row.iou is None for row in rows if row.class_name == "cat"} == {True}
    assert {row.iou is None for row in rows if row.class_name != "cat"} == {False}


def test_an_image_that_a_model_fails_on_costs_no_other(source):
    token = source.tokens()[0]
    broken = Counting("planted-saliency", "saliency", broken=source.read_image(token))
    rows, failures = measure(source, source.tokens(), AttributeModels(broken))
    assert [failure.image for failure in failures] == [source.image_of(token)]
    assert "no such picture" in failures[0].error
    assert {row.image for row in rows} == {source.image_of(one) for one in source.tokens()} - {failures[0].image}


def test_salience_is_the_iou_of_the_map_above_a_half():
    mask = np.zeros((512, 512), bool)
    mask[:, :256] = True
    seen = np.zeros((512, 512), np.float32)
    seen[:256] = 0.51
    seen[256:] = 0.5  # not above
    assert measure_salience(seen, mask) == (256 * 256) / (512 * 512 - 256 * 256)
    assert measure_salience(np.zeros((512, 512), np.float32), np.zeros((512, 512), bool)) == 0


def test_supervised_iou_leaves_open_pixels_out():
    mask, void = np.zeros((512, 512), bool), np.zeros((512, 512), bool)
    mask[:128], void[128:256] = True, True
    predicted = np.zeros((512, 512), bool)
    predicted[:256] = True
    assert measure_supervised_iou(predicted, ClassMask(mask, void)) == 1.0
    assert measure_supervised_iou(predicted, ClassMask(mask, np.zeros_like(void))) == 0.5


def test_a_table_goes_on_where_it_stopped(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()
    whole = measure_table(tmp_path / "whole.csv", source, tokens, models, {"models": "1"})
    half = measure_table(path, source, tokens[:7], models, {"models": "1"})
    assert half.found == 0
    with path.open("a") as stream:
        stream.write("12_2026_0000")  # a line that a killed run was writing
    models.saliency.seen = 0
    done = measure_table(path, source, tokens, models, {"models": "1"})
    assert done.found == 7 and done.rows == whole.rows
    assert models.saliency.seen == len({source.image_of(token) for token in tokens[7:]})
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    models.saliency.seen = 0
    assert measure_table(path, source, tokens, models, {"models": "1"}).found == len(tokens)
    assert models.saliency.seen == 0


def test_rows_of_a_ready_table_are_measured_again_by_models(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()[:4]
    measured = measure_table(path, source, tokens, models, {"models": "1"})
    foreign = [replace(row, saliou=0.123) for row in measured.rows]
    copy_table(path, foreign, "a" * 64)
    assert read_attributes(path) == tuple(foreign)
    again = measure_table(path, source, tokens, models, {"models": "1"})
    assert again.found == 0 and again.rows == measured.rows


def test_a_damaged_table_is_measured_again(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()[:4]
    measured = measure_table(path, source, tokens, models, {"models": "1"})
    path.write_bytes(b"\xff\xfe\x00")
    assert measure_table(path, source, tokens, models, {"models": "1"}).rows == measured.rows


def test_binary_masks_of_other_classes_are_distractors(tmp_path):
    """One label map, and the same as a mask a class: equal weights, and those counted by hand."""
    labels = np.zeros((8, 10), np.uint8)
    labels[:4, :5], labels[5:, :5], labels[0, 9] = 1, 2, 3
    for name in ("images", "maps", "binary"):
        (tmp_path / name).mkdir()
    Image.fromarray(np.zeros((8, 10, 3), np.uint8)).save(tmp_path / "images" / "a.png")
    Image.fromarray(labels).save(tmp_path / "maps" / "a.png")
    for number in (1, 2, 3):
        Image.fromarray((labels == number).astype(np.uint8) * 255).save(tmp_path / "binary" / f"{number}_a.png")
    (tmp_path / "names.txt").write_text("cat\ndog\ncup\n")
    found = []
    for kind, folder in (("masks", "maps"), ("binary", "binary")):
        given = {"images": tmp_path / "images", kind: tmp_path / folder}
        opened = open_class_mask_folders(given, labels=tmp_path / "names.txt")
        rows, _ = measure(opened, opened.tokens(), AttributeModels())
        found.append({row.filename: row.distractor_weight for row in rows})
    assert found[0] == found[1] == {"1_a": 16 / 36, "2_a": 21 / 36, "3_a": 35 / 36}
    # One token alone, as when a table goes on, has the same company.
    assert measure(opened, ["2_a"], AttributeModels())[0][0].distractor_weight == 21 / 36


def test_a_class_in_front_of_the_first_pixel_is_not_taken_for_the_mask(tmp_path):
    masks = {1: np.ones((4, 4), np.uint8), 2: np.zeros((4, 4), np.uint8)}
    masks[2][0, :2] = 1
    for name in ("images", "binary"):
        (tmp_path / name).mkdir()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "images" / "a.png")
    for number, mask in masks.items():
        Image.fromarray(mask).save(tmp_path / "binary" / f"{number}_a.png")
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    given = {"images": tmp_path / "images", "binary": tmp_path / "binary"}
    opened = open_class_mask_folders(given, labels=tmp_path / "names.txt")
    rows, _ = measure(opened, opened.tokens(), AttributeModels())
    assert {row.filename: row.distractor_weight for row in rows} == {"1_a": 2 / 16, "2_a": 14 / 16}


def test_rows_of_other_models_are_measured_again(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()[:4]
    measure_table(path, source, tokens, models, {"models": "1"})
    assert measure_table(path, source, tokens, models, {"models": "2"}).found == 0
    assert len(read_attributes(path)) == 4


def test_images_that_cannot_be_read_are_returned_and_cost_no_other():
    unread = {"b": DataError("no such mask"), "k": OSError(5, "Input/output error")}
    kept, counted = [], []

    def read(name):
        if name in unread:
            raise unread[name]
        return name.upper()

    failures = process_images(
        iter("abcdefghijkl"), read, lambda group: group, kept.append, lambda *counts: counted.append(counts)
    )
    assert [(one.image, one.error) for one in failures] == [(name, str(error)) for name, error in unread.items()]
    assert [list(group) for group in kept] == [list("acdefgh"), list("ijl")]
    assert all(value == name.upper() for group in kept for name, value in group.items())
    assert counted == [(8, 1), (4, 1)]
    # An error that is no failure to read is a bug, and raised.
    with pytest.raises(ZeroDivisionError):
        process_images("a", lambda name: 1 // 0, lambda group: group, kept.append)


def test_a_batch_that_fails_is_processed_image_by_image():
    kept = []

    def process(group):
        if "b" in group:
            raise KeyError("no label")
        return sorted(group)

    failures = process_images("abc", str.upper, process, kept.append)
    assert [(one.image, one.error) for one in failures] == [("b", "KeyError: 'no label'")]
    assert kept == [["a"], ["c"]]
    assert process_images("", str.upper, process, kept.append) == [] and len(kept) == 2


def test_void_pixels_are_no_distractors(tmp_path):
    labels = np.zeros((4, 4), np.uint8)
    labels[0], labels[1, :2], labels[3] = 1, 2, 255
    for name in ("images", "maps"):
        (tmp_path / name).mkdir()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "images" / "a.png")
    Image.fromarray(labels).save(tmp_path / "maps" / "a.png")
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    given = {"images": tmp_path / "images", "masks": tmp_path / "maps"}
    opened = open_class_mask_folders(given, labels=tmp_path / "names.txt")
    rows, _ = measure(opened, opened.tokens(), AttributeModels())
    assert {row.filename: row.distractor_weight for row in rows} == {"1_a": 2 / 6, "2_a": 4 / 6}


@pytest.mark.parametrize("what", ["saliency map", "label map"])
def test_an_answer_of_another_size_is_an_error_of_its_image(source, models, what):
    class Cropped:
        labels = models.supervised.labels

        def saliency(self, images):
            return [answer[:-1] for answer in models.saliency.saliency(images)]

        def segment(self, images):
            return [answer[:, :-1] for answer in models.supervised.segment(images)]

    token = source.tokens()[0]
    cropped = AttributeModels(Cropped()) if what == "saliency map" else AttributeModels(None, Cropped(), INDICES)
    rows, [failure] = measure(source, [token], cropped)
    expected = "(71, 96)" if what == "saliency map" else "(72, 95)"
    assert rows == [] and "(72, 96)" in failure.error and f"got {expected}" in failure.error
