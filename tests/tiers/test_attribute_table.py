"""Attributes of masks: what they are, that models see each image once, and that failures cost one image."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hardlook.data.class_masks import ClassMask, open_class_masks
from hardlook.models.registry import build
from hardlook.tiers.attribute_rows import read_attributes
from hardlook.tiers.attribute_table import AttributeModels, measure_attributes, salience, supervised_iou
from hardlook.tiers.resumed_table import adopted_table, resumed_table
from hardlook.world.vocabulary import LABELS
from hardlook.world.write import write_world

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
    return open_class_masks({"voc": folder / "voc"})


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
    assert salience(seen, mask) == (256 * 256) / (512 * 512 - 256 * 256)
    assert salience(np.zeros((512, 512), np.float32), np.zeros((512, 512), bool)) == 0


def test_supervised_iou_leaves_open_pixels_out():
    mask, void = np.zeros((512, 512), bool), np.zeros((512, 512), bool)
    mask[:128], void[128:256] = True, True
    predicted = np.zeros((512, 512), bool)
    predicted[:256] = True
    assert supervised_iou(predicted, ClassMask(mask, void)) == 1.0
    assert supervised_iou(predicted, ClassMask(mask, np.zeros_like(void))) == 0.5


def test_a_table_goes_on_where_it_stopped(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()
    whole = resumed_table(tmp_path / "whole.csv", source, tokens, models, {"models": "1"})
    half = resumed_table(path, source, tokens[:7], models, {"models": "1"})
    assert half.found == 0
    with path.open("a") as stream:
        stream.write("12_2026_0000")  # a line that a killed run was writing
    models.saliency.seen = 0
    done = resumed_table(path, source, tokens, models, {"models": "1"})
    assert done.found == 7 and done.rows == whole.rows
    assert models.saliency.seen == len({source.image_of(token) for token in tokens[7:]})
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    models.saliency.seen = 0
    assert resumed_table(path, source, tokens, models, {"models": "1"}).found == len(tokens)
    assert models.saliency.seen == 0


def test_rows_of_a_ready_table_are_measured_again_by_models(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()[:4]
    measured = resumed_table(path, source, tokens, models, {"models": "1"})
    foreign = [replace(row, saliou=0.123) for row in measured.rows]
    adopted_table(path, foreign, "a" * 64)
    assert read_attributes(path) == tuple(foreign)
    again = resumed_table(path, source, tokens, models, {"models": "1"})
    assert again.found == 0 and again.rows == measured.rows


def test_a_damaged_table_is_measured_again(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()[:4]
    measured = resumed_table(path, source, tokens, models, {"models": "1"})
    path.write_bytes(b"\xff\xfe\x00")
    assert resumed_table(path, source, tokens, models, {"models": "1"}).rows == measured.rows


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
        opened = open_class_masks(given, labels=tmp_path / "names.txt")
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
    opened = open_class_masks(given, labels=tmp_path / "names.txt")
    rows, _ = measure(opened, opened.tokens(), AttributeModels())
    assert {row.filename: row.distractor_weight for row in rows} == {"1_a": 2 / 16, "2_a": 14 / 16}


def test_rows_of_other_models_are_measured_again(source, models, tmp_path):
    path, tokens = tmp_path / "attributes.csv", source.tokens()[:4]
    resumed_table(path, source, tokens, models, {"models": "1"})
    assert resumed_table(path, source, tokens, models, {"models": "2"}).found == 0
    assert len(read_attributes(path)) == 4
