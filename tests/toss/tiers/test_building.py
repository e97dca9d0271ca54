"""Building tiers: what the manifest says of models, thresholds and tables, and tier 3 from FSS-1000."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hardlook.data.class_masks import open_fss
from hardlook.data.toss_pairs import locate_tier_list, read_pairs
from hardlook.errors import OptionError
from hardlook.models.named_model import build_named
from hardlook.toss.tiers.attributes import AttributeRow, read_attributes, write_attributes
from hardlook.toss.tiers.building import BuildPlan, build_from_data, build_from_memberships
from hardlook.toss.tiers.dataset import open_tokens
from hardlook.toss.tiers.folder import Memberships
from hardlook.world.layouts import write_world


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=4, size=(64, 64), correlation=0.0, image_format="png")
    return BuildPlan(open_tokens({"voc": folder}, None, None), build_named("planted-encoder", "encoder", {}))


@pytest.fixture(scope="module")
def saliency():
    return build_named("planted-saliency", "saliency", {})


@pytest.fixture(scope="module")
def table(plan, tmp_path_factory):
    """A finished table of all masks, each easy and salient."""
    path = tmp_path_factory.mktemp("table") / "ready.csv"
    rows = [AttributeRow(token, None, 0.9, 0.5, 0.5, 0.9, 2, 0.0) for token in plan.opened.tokens]
    write_attributes(path, rows)
    return path


def build(plan, out):
    return build_from_data(plan, out, lambda total, done: lambda more, failed: None)


def test_the_manifest_names_the_models_that_ran_and_the_thresholds(plan, saliency, tmp_path):
    supervised = build_named("planted-segmenter", "semantic-segmenter", {})
    manifest, report = build(replace(plan, saliency=saliency, supervised=supervised), tmp_path)
    assert {role: facts["name"] for role, facts in manifest["models"].items()} == {
        "saliency": "planted-saliency",
        "supervised": "planted-segmenter",
        "encoder": "planted-encoder",
    }
    thresholds = manifest["thresholds"]
    assert (thresholds["easy_above"], thresholds["salient_above"]) == (0.75, 0.5)
    assert thresholds["similar_above"] == report.mean_cosine
    assert manifest["attributes"] is manifest["memberships"] is manifest["resembling"] is None
    assert manifest["masks"] == manifest["partitioned"] == len(plan.opened.tokens)


def test_memberships_have_no_thresholds(plan, tmp_path):
    tokens = plan.opened.tokens
    memberships = Memberships(dict.fromkeys(tokens[:2], "hard_sal"), {"list": "a" * 64})
    manifest, report = build(replace(plan, memberships=memberships), tmp_path)
    assert set(manifest["models"]) == {"encoder"} and set(manifest["thresholds"]) == {"similar_above"}
    assert (manifest["memberships"]["masks_used"], manifest["masks"]) == (2, len(tokens))
    assert report.partitions == dict.fromkeys(tokens[:2], "hard_sal")


def test_rows_of_a_finished_table_get_class_and_image_of_the_data(plan, table, tmp_path):
    source, tokens = plan.opened.source, plan.opened.tokens
    write_attributes(tmp_path / "short.csv", [*read_attributes(table)[1:], AttributeRow("1_elsewhere")])
    manifest, report = build(replace(plan, attributes=tmp_path / "short.csv"), tmp_path / "built")
    assert [(row.filename, row.class_name, row.image) for row in report.rows] == [
        (token, source.class_of(token), source.image_of(token)) for token in tokens[1:]
    ]
    assert manifest["masks_without_a_row"] == [tokens[0]]
    assert (manifest["attributes"]["rows"], manifest["attributes"]["rows_of_other_masks"]) == (len(tokens), 1)


def test_a_table_of_other_data_is_refused(plan, tmp_path):
    write_attributes(tmp_path / "other.csv", [AttributeRow("1_elsewhere", iou=0.5, saliou=0.5)])
    with pytest.raises(OptionError, match="no row is a mask of the data") as caught:
        build(replace(plan, attributes=tmp_path / "other.csv"), tmp_path / "built")
    assert caught.value.remedy


@pytest.fixture
def fss(plan, tmp_path):
    """Two classes of four images; the mask of the fourth is cut off."""
    source = plan.opened.source
    images = {source.image_of(token): source.read_image(token) for token in plan.opened.tokens}
    for name in ("abacus", "bus"):
        folder = tmp_path / "fss" / name
        folder.mkdir(parents=True)
        for number, image in enumerate(images.values(), start=1):
            Image.fromarray(image).save(folder / f"{number}.bmp")
            Image.fromarray(np.full((64, 64), 255, np.uint8)).save(folder / f"{number}.png")
        (folder / "4.png").write_bytes((folder / "4.png").read_bytes()[:20])
    return open_fss(tmp_path / "fss")


@pytest.mark.parametrize(("resembling", "kept"), [((), ("abacus", "bus")), (("bus",), ("abacus",))])
def test_tier_three_is_of_the_classes_that_are_kept(plan, saliency, table, fss, tmp_path, resembling, kept):
    general = replace(plan, attributes=table, saliency=saliency, fss=fss, resembling=frozenset(resembling))
    manifest, report = build(general, tmp_path / "built")
    assert [failure.image for failure in report.failures] == [f"{name}/4" for name in kept]
    assert manifest["resembling"]["dropped"] == list(resembling)
    # Of three images, the most and the least salient one: each is the other's support.
    assert report.general == dict.fromkeys(kept, 2)


def test_tier_three_without_a_saliency_model_is_refused(plan, table, fss, tmp_path):
    with pytest.raises(OptionError, match="tier 3 needs a saliency model"):
        build(replace(plan, attributes=table, fss=fss), tmp_path / "built")


def test_lists_alone_give_tier_one_and_the_fixed_lists(tmp_path):
    partitions = {"1_a": "easy_sal", "1_b": "hard_sal", "2_c": "easy_nsal"}
    memberships = Memberships(partitions, {"list": "a" * 64}, ("1_z",))
    manifest, report = build_from_memberships(memberships, ("cat", "dog"), tmp_path, folds=2, seed=3, name="mine")
    assert [(row.filename, row.class_name, row.image) for row in report.rows] == [
        ("1_a", "cat", "a"), ("1_b", "cat", "b"), ("2_c", "dog", "c"),
    ]  # fmt: skip
    assert {tier for tier, *_ in report.built.lists} == {0, 1} and report.built.levels == {}
    assert report.built.unfilled and not any(one.part.startswith("tier 2") for one in report.built.unfilled)
    pairs = {(pair.query, pair.support) for key, own in report.built.lists.items() if key[0] == 1 for pair in own}
    assert pairs == {("1_a", "1_a"), ("1_a", "1_b"), ("1_b", "1_a"), ("1_b", "1_b"), ("2_c", "2_c")}
    assert (report.unmeasured, report.given_partitions, manifest["seed"]) == (0, True, 3)
    assert (manifest["masks"], manifest["partitioned"], manifest["models"], manifest["failures"]) == (3, 3, {}, [])
    assert manifest["memberships"] == {
        "lists": {"list": "a" * 64},
        "masks": 3,
        "masks_used": 3,
        "supports_without_a_partition": ["1_z"],
    }
    written = sum(len(own) for own in report.built.lists.values())
    page = (tmp_path / "report.html").read_text()
    assert f"{written:,} pairs from 3 masks of 2 classes, by the rule of TOSS" in page


def test_masks_without_a_partition_are_counted(plan, table, tmp_path):
    rows = read_attributes(table)
    write_attributes(tmp_path / "some.csv", [replace(rows[0], saliou=None), replace(rows[1], iou=None), *rows[2:]])
    manifest, report = build(replace(plan, attributes=tmp_path / "some.csv"), tmp_path / "built")
    assert report.unmeasured == 2
    assert (manifest["masks"], manifest["partitioned"]) == (len(rows), len(rows) - 2)


def test_tier_three_is_written_with_its_table_and_counted_on_the_page(plan, saliency, table, fss, tmp_path):
    out = tmp_path / "built"
    manifest, report = build(replace(plan, attributes=table, saliency=saliency, fss=fss, seed=2), out)
    written = read_pairs(locate_tier_list(out, 3)).pairs
    assert len(written) == 4 and {(pair.tier, pair.fold) for pair in written} == {(3, -1)}
    assert {"analysis/test_stats.csv", "analysis/general_stats.csv"} <= {
        name.removeprefix("data/") for name in manifest["files"]
    }
    pairs = sum(len(own) for own in report.built.lists.values()) + 4
    classes = len(plan.opened.source.classes)
    page = (out / "report.html").read_text()
    assert f"{pairs:,} pairs from {len(report.rows):,} masks of {classes} classes" in page
    assert manifest["seed"] == 2 and report.given_partitions is False
    plain, _ = build(replace(plan, attributes=table), tmp_path / "plain")
    assert not [name for name in plain["files"] if "general" in name]


def test_masks_of_images_that_the_encoder_fails_on_are_in_no_list(plan, table, tmp_path):
    broken = plan.opened.source.read_image(plan.opened.tokens[0])
    encoder = plan.encoder.model

    class Fails:
        dimension = encoder.dimension

        def encode(self, images):
            if any(np.array_equal(image, broken) for image in images):
                raise RuntimeError("no such picture")
            return encoder.encode(images)

    manifest, report = build(
        replace(plan, attributes=table, encoder=replace(plan.encoder, model=Fails())), tmp_path / "built"
    )
    gone = plan.opened.source.image_of(plan.opened.tokens[0])
    assert [failure.image for failure in report.failures] == [gone] == [one["image"] for one in manifest["failures"]]
    assert report.rows and gone not in {row.image for row in report.rows}
    assert manifest["masks"] == len(report.rows) < len(plan.opened.tokens)


def test_without_two_images_of_a_class_there_is_no_mean_similarity(plan, table, tmp_path):
    source = plan.opened.source
    first = {}
    for row in read_attributes(table):
        first.setdefault(source.class_of(row.filename), row)
    write_attributes(tmp_path / "few.csv", list(first.values()))
    manifest, report = build(replace(plan, attributes=tmp_path / "few.csv"), tmp_path / "built")
    assert manifest["thresholds"]["similar_above"] is None and np.isnan(report.mean_cosine)
    assert report.cosines == {}
