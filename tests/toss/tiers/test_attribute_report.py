"""Attributes beside those of another table."""

from types import SimpleNamespace

import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.harness.sections import Example, Gallery, Section, Table
from hardlook.harness.stats import Estimate, Interval
from hardlook.toss.tiers.attribute_report import (
    MAX_SPOTS,
    ExactShare,
    PublishedComparison,
    RankAgreement,
    build_distributions,
    build_extremes_section,
    build_published_section,
    build_scatter,
    build_sections,
    compare_with_published,
    comparison_to_json,
    draw_gallery_masks,
    group_by_class,
    list_gallery_units,
    summarise_attributes,
)
from hardlook.toss.tiers.attributes import ATTRIBUTES, AttributeRow, FailedImage, MeasuredTable


def row(token, salience, iou, **more):
    return AttributeRow(token, None, iou, 0.1, 0.5, salience, 2, 0.0, more.get("class_name", "cat"), token)


def test_comparison_with_another_table_counts_equal_values():
    ours = [row(str(n), n / 10, 1 - n / 10) for n in range(10)]
    theirs = [
        AttributeRow(str(n), 0.5, n / 10, 0.1 + (n == 3), 0.5, (n / 10) ** 2, 2, 0.0, "1", str(n)) for n in range(8)
    ]
    found = compare_with_published(ours, theirs)
    assert found.rows == 8
    assert {one.column: one.estimate.value for one in found.ranked} == {"saliou": 1.0, "iou": -1.0}
    assert {one.column: (one.equal, one.rows) for one in found.exact} == {
        "blob_count": (8, 8),
        "distractor_weight": (8, 8),
        "area_ratio": (7, 8),
        "offset_ratio": (8, 8),
    }


@pytest.mark.parametrize(
    ("masks", "step"), [(1, 1), (MAX_SPOTS, 1), (MAX_SPOTS + 1, 2), (2 * MAX_SPOTS, 2), (2 * MAX_SPOTS + 1, 3)]
)
def test_a_chart_of_many_masks_draws_evenly_spaced_ones_and_says_so(masks, step):
    rows = [row(str(n), n / masks, 0.5) for n in range(masks)]
    chart = build_scatter(rows, "saliou", "iou", {"0": "easy"}, "Caption.")
    assert [spot.label for spot in chart.spots] == [str(n) for n in range(0, masks, step)]
    assert [(spot.x, spot.y) for spot in chart.spots] == [(n / masks, 0.5) for n in range(0, masks, step)]
    assert chart.spots[0].group == "easy"
    assert ("One of every" in chart.caption) is (step > 1)
    assert step == 1 or f"One of every {step} of the {masks:,} masks is drawn." in chart.caption


def test_masks_without_a_value_are_in_no_chart():
    assert build_scatter([row("1", None, 0.5)], "saliou", "iou", {}, "") is None
    chart = build_scatter([row("1", None, 0.5), row("2", 0.25, 0.5)], "saliou", "iou", {}, "")
    assert [spot.label for spot in chart.spots] == ["2"]


def test_titles_begin_with_a_capital_and_keep_the_rest():
    rows = [row("1", 0.25, 0.5), row("2", 0.75, 1.0, class_name="dog")]
    chart = build_scatter(rows, "saliou", "iou", {}, "")
    assert (chart.title, chart.x_axis, chart.y_axis) == ("Salience and supervised IoU", "salience", "supervised IoU")
    first, second, *_ = build_distributions(rows, group_by_class(rows), "class")
    assert (first.title, second.title) == ("Salience by class", "Supervised IoU by class")
    assert second.caption.startswith("IoU of the supervised model's pixels of the class with the mask.")
    assert first.groups == [("all masks", [0.25, 0.75]), ("cat", [0.25]), ("dog", [0.75])]


def test_a_comparison_as_json_has_the_numbers_of_every_column():
    def ranked(column, value, low, high):
        estimate = Estimate(value, Interval(low, high, 0.95, "percentile", 3, "image"), 0.1, 2000, 0)
        return RankAgreement(column, estimate, np.zeros(3), np.zeros(3))

    undefined = ranked("iou", float("nan"), float("nan"), float("nan"))
    shares = (ExactShare("blob_count", 3, 4, 0.5), ExactShare("area_ratio", 0, 2, float("nan")))
    found = PublishedComparison(5, (ranked("saliou", 0.5, 0.25, 0.75), undefined), shares)
    assert comparison_to_json(found) == {
        "rows": 5,
        "spearman": {
            "saliou": {"value": 0.5, "low": 0.25, "high": 0.75, "masks": 3},
            "iou": {"value": None, "low": None, "high": None, "masks": 3},
        },
        "exact": {
            "blob_count": {"equal": 3, "rows": 4, "spearman": 0.5},
            "area_ratio": {"equal": 0, "rows": 2, "spearman": None},
        },
    }


def test_the_extremes_are_the_lowest_and_highest_mask_of_each_class():
    classes = ("cat", "dog", "bus", "owl", "cup")
    rows = [row(f"{n}", n / 10, None, class_name=classes[n % 5]) for n in range(10)]
    galleries = {gallery.title: gallery for gallery in build_extremes_section(rows).blocks}
    lowest, highest = galleries["Lowest salience"], galleries["Highest salience"]
    assert [example.unit for example in lowest.examples] == ["0", "1", "2", "3"]
    assert [example.unit for example in highest.examples] == ["9", "8", "7", "6"]
    assert highest.examples[0].caption == "cup: salience 0.90"
    assert not any("IoU" in title for title in galleries)
    assert build_extremes_section(rows[:7]).blocks == []


@pytest.mark.parametrize(("masks", "step"), [(3, 1), (MAX_SPOTS, 1), (MAX_SPOTS + 1, 2), (2 * MAX_SPOTS + 1, 3)])
def test_charts_beside_the_published_table_draw_evenly_spaced_masks_and_say_so(masks, step):
    estimate = Estimate(0.5, Interval(0.25, 0.75, 0.95, "percentile", 3, "image"), 0.1, 2000, 0)
    ours, published = np.arange(masks) / masks, 1 - np.arange(masks) / masks
    shares = (ExactShare("blob_count", 3, 4, 0.5),)
    comparison = PublishedComparison(masks, (RankAgreement("saliou", estimate, ours, published),), shares)
    section = build_published_section(comparison)
    dots, table, chart = section.blocks
    assert section.text.startswith(f"{masks:,} masks are in both tables.")
    assert [(dot.label, dot.value, dot.low, dot.high) for dot in dots.rows] == [("salience", 0.5, 0.25, 0.75)]
    assert [row[:5] for row in table.rows] == [("blob_count", 4, 3, 75.0, 0.5)]
    assert [(spot.x, spot.y) for spot in chart.spots] == list(zip(published[::step], ours[::step], strict=True))
    assert (chart.title, chart.x_axis, chart.y_axis) == ("Salience: published and ours", "published", "ours")
    assert chart.caption.endswith("line." if step == 1 else f"One of every {step} of the {masks:,} masks is drawn.")


def test_a_page_has_a_section_for_what_there_is():
    rows = [row("1", 0.25, 0.5), row("2", 0.5, 0.75, class_name="dog")]
    bare = [AttributeRow("1", None, None, None, None, None, None, None, "cat", "1")]
    failed = [FailedImage("2007_1", "no such picture"), FailedImage("2007_2", "no mask")]
    comparison = compare_with_published(rows, rows)
    titles = ["By class", "Two at a time"]
    sections = build_sections(rows, comparison, failed)
    published = build_published_section(comparison).title
    extremes = build_extremes_section(rows).title
    assert [one.title for one in sections] == [*titles, published, extremes, "What was left out"]
    assert len(sections[1].blocks) == 4
    assert sections[-1].text == "2 images failed."
    assert list(sections[-1].blocks[0].rows) == [("2007_1", "no such picture"), ("2007_2", "no mask")]
    assert [one.title for one in build_sections(rows, None, [])] == [*titles, extremes]
    assert [one.title for one in build_sections(bare, None, [])] == ["By class", extremes]


def test_the_numbers_of_a_table_as_json():
    rows = [row("1", 0.25, 0.5), row("2", None, 1.0)]
    failed = [FailedImage("2007_1", "no such picture")]
    found = summarise_attributes(MeasuredTable(tuple(rows), tuple(failed), 1), failed, None, {"data": "voc"})
    assert (found["masks"], found["found_before"], found["data"], found["published"]) == (2, 1, "voc", None)
    assert found["attributes"][ATTRIBUTES["saliou"]] == {"masks": 1, "mean": 0.25}
    assert found["attributes"][ATTRIBUTES["iou"]] == {"masks": 2, "mean": 0.75}
    nothing = summarise_attributes(MeasuredTable((row("2", None, 1.0),), (), 0), (), None, {})
    assert nothing["attributes"][ATTRIBUTES["saliou"]] == {"masks": 0, "mean": None}
    assert found["failures"] == [{"image": "2007_1", "error": "no such picture"}]


class OneClass:
    """Images and masks of tokens; image 3 cannot be read, and the mask of 4 is missing."""

    def class_of(self, token):
        return f"class {token}"

    def read_image(self, token):
        if token == "3":
            raise OSError("no such image")
        return np.full((2, 2, 3), int(token), np.uint8)

    def read_mask(self, token):
        if token == "4":
            raise DataError("no such mask")
        return SimpleNamespace(mask=np.eye(2, dtype=bool))


def test_a_gallerys_masks_are_drawn_once_each_and_errors_stand_in_their_place():
    examples = [Example(token, "") for token in ("2", "3", "2", "4")]
    table = Table("Other", "", ("a",), [(1,)])
    sections = [
        Section("A", "", [table, Gallery("G", "", examples[:2])]),
        Section("B", "", [Gallery("H", "", examples)]),
    ]
    assert list_gallery_units(sections) == ["2", "3", "4"]
    pictures = draw_gallery_masks(OneClass(), sections)
    assert list(pictures) == ["2", "3", "4"]
    [picture] = pictures["2"]
    assert picture.label == "class 2" and (picture.image == 2).all() and picture.mask.tolist() == np.eye(2).tolist()
    assert pictures["3"] == "no such image" and "no such mask" in pictures["4"]


def test_a_column_that_one_table_lacks_is_not_compared():
    ours = [row(str(n), None if n else 0.5, n / 4) for n in range(4)]
    theirs = [AttributeRow(str(n), None, n / 4, 0.1, 0.5, None, None, 0.25, "cat", str(n)) for n in range(4)]
    found = compare_with_published(ours, theirs)
    assert [one.column for one in found.ranked] == ["iou"]
    assert {one.column: one.equal for one in found.exact} == {
        "distractor_weight": 0,
        "area_ratio": 4,
        "offset_ratio": 4,
    }
    assert found.rows == 4
