"""Borders of saliency maps: blurred, crisp and blank, and the study of two models."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.border_study import (
    Border,
    build_border_page,
    draw_borders,
    measure_border,
    run_border_study,
    summarise_borders,
)
from hardlook.toss.tiers.dataset import OpenedData


def test_a_blurred_border_is_wider_and_a_blank_map_has_none():
    crisp = np.zeros((512, 512), np.float32)
    crisp[128:384, 128:384] = 1
    widths = [measure_border(cv2.GaussianBlur(crisp, (0, 0), sigma)).width for sigma in (1, 2, 4, 8)]
    assert measure_border(crisp).width == 0 and widths == sorted(widths)
    # Of a straight edge blurred by sigma, .1 to .9 is 2 * 1.2816 sigma wide.
    assert widths[3] == pytest.approx(2 * 1.2816 * 8, rel=0.05)
    blank = measure_border(np.zeros((64, 64), np.float32))
    assert blank.undecided == 0 and np.isnan(blank.width)
    summary = summarise_borders("model", [measure_border(crisp), blank])
    assert summary.blank == 1 and summary.width.value == 0


@pytest.mark.parametrize(("share", "bounds"), [(0.0, (0, 1 - 0.025 ** (1 / 20))), (1.0, (0.025 ** (1 / 20), 1))])
def test_where_all_images_agree_the_share_has_the_bounds_of_a_share_and_the_width_none(share, bounds):
    summary = summarise_borders("model", [Border(share, 2.0)] * 20)
    interval = summary.undecided.interval
    assert (interval.low, interval.high) == pytest.approx(bounds)
    assert not summary.width.interval.defined
    # A width has a lowest value and no highest.
    few = summarise_borders("model", [Border(share, width) for width in (0.0, 0.0, 0.0, 9.0)]).width.interval
    assert few.low >= 0 and few.high > 9


class Pictures:
    """Images of 512 x 512, white in the first n columns, where n is the image's name."""

    def image_of(self, token):
        return token.partition("_")[2]

    def read_image(self, token):
        image = np.zeros((512, 512, 3), np.uint8)
        image[:, : int(self.image_of(token))] = 255
        return image


def faded(grey, broken=()):
    """A named model whose map has the value `grey` where the image is white; images `broken` wide raise."""

    def saliency(images):
        white = np.stack([image[..., 0] == 255 for image in images])
        if white[0, 0].sum() in broken:
            raise RuntimeError("no such picture")
        return np.where(white, grey, 0).astype(np.float32)

    return SimpleNamespace(model=SimpleNamespace(saliency=saliency), facts=lambda: {"grey": grey})


OPENED = OpenedData(Pictures(), ("1_128", "2_128", "1_256", "1_384"), (FailedImage("512", "cut off"),))


def study(models, images=9):
    steps = []

    def start(total, done):
        steps.append((total, done))
        return lambda more, failed: steps.append((more, failed))

    return *run_border_study(opened=OPENED, models=models, images=images, seed=0, start=start), steps


def test_an_image_that_a_model_fails_on_is_named_and_costs_no_other():
    sections, document, failures, steps = study({"sure": faded(1.0), "unsure": faded(0.75, broken={256})})
    assert failures == [FailedImage("512", "cut off"), FailedImage("256", "RuntimeError: no such picture")]
    assert steps[0] == (3, 0) and sorted(steps[1:]) == [(1, 0), (1, 0), (1, 1)]
    # White is a quarter and three quarters of the two images that are left.
    assert document["images"] == 2 and document["models"] == [{"grey": 1.0}, {"grey": 0.75}]
    undecided = {name: one["undecided"] for name, one in document["borders"].items()}
    assert (undecided["sure"]["value"], undecided["unsure"]["value"]) == (0, 0.5)
    assert document["summary"] == (
        "Between .1 and .9 lie 0.0 % (sure) and 50.0 % (unsure) of the pixels, on 2 images. "
        "These data cannot tell: there are 2 images, and a verdict needs 10."
    )
    examples = [(one.unit.partition("_")[2], one.caption) for one in sections[0].blocks[-1].examples]
    assert examples == [("384", "undecided: 0.0 % and 75.0 %"), ("128", "undecided: 0.0 % and 25.0 %")]


def test_a_model_has_crisper_borders_where_enough_images_agree():
    summaries = [summarise_borders(name, [Border(share, 1.0)] * 12) for name, share in (("sure", 0.1), ("unsure", 0.5))]
    sections, document = build_border_page(summaries, [f"1_{place}" for place in range(12)])
    assert document["summary"].endswith("on 12 images. sure has the crisper borders.")
    same, _ = build_border_page([summaries[0]] * 2, [f"1_{place}" for place in range(12)])
    assert len(sections[0].blocks[-1].examples) > 0 and not same[0].blocks[-1].examples


def test_at_most_the_wanted_images_are_measured():
    models = {"sure": faded(1.0), "unsure": faded(0.75)}
    assert [study(models, images)[1]["images"] for images in (1, 2, 3, 4)] == [1, 2, 3, 3]


def test_a_study_of_failures_alone_is_refused():
    with pytest.raises(DataError, match=r"no image could be measured \(4 images failed, the first: 512: cut off\)"):
        study({"sure": faded(1.0), "broken": faded(1.0, broken={128, 256, 384})})


def test_pictures_show_the_image_and_both_maps_in_grey():
    models = {"sure": faded(1.0), "unsure": faded(0.6)}
    sections, *_ = study(models)
    pictures = draw_borders(OPENED.source, models, sections)
    assert {token.partition("_")[2] for token in pictures} == {"128", "256", "384"}
    for token, shown in pictures.items():
        image = OPENED.source.read_image(token)
        assert [picture.label for picture in shown] == ["image", "sure", "unsure"]
        # .6 of 255 is 153; the image is black and white, as the sure map.
        for picture, expected in zip(shown, (image, image, np.where(image, 153, 0)), strict=True):
            assert np.abs(picture.image.astype(int) - expected).max() <= 1


def test_shares_of_undecided_pixels_are_in_percent_all_over_the_page():
    shares = {"sure": [0.125] * 11 + [0.25], "unsure": [0.5] * 12}
    summaries = [summarise_borders(name, [Border(share, 3.0) for share in own]) for name, own in shares.items()]
    [section], _ = build_border_page(summaries, [f"1_{place}" for place in range(12)])
    dots, widths, distribution, gallery = section.blocks
    assert [(name, list(values)) for name, values in distribution.groups] == [
        ("sure", [12.5] * 11 + [25.0]),
        ("unsure", [50.0] * 12),
    ]
    assert [(dot.label, dot.value) for dot in dots.rows] == [("sure", pytest.approx(13.5417, abs=1e-4)), ("unsure", 50)]
    assert 5 < dots.rows[0].low < 13.5417 < dots.rows[0].high < 25
    assert [(dot.label, dot.value) for dot in widths.rows] == [("sure", 3), ("unsure", 3)]
    captions = [(example.unit, example.caption) for example in gallery.examples]
    # The twelfth image differs least; of equal ones the first is shown first.
    assert captions[0] == ("1_0", "undecided: 12.5 % and 50.0 %") and "1_11" not in dict(captions[:11])


def test_blank_maps_alone_have_no_width():
    summary = summarise_borders("model", [Border(0.25, float("nan"))] * 3)
    assert (summary.width, summary.blank, summary.undecided.value) == (None, 3, 0.25)


def test_the_width_is_the_undecided_pixels_over_the_closed_contour():
    grey = np.zeros((512, 512), np.float32)
    grey[100:104, 100:104] = 0.6  # inside the threshold, and undecided: 16 pixels with a contour of 4 x 3 steps
    assert measure_border(grey) == Border(16 / 512**2, 16 / 12)
    for value, undecided in ((0.1, 0), (0.11, 16), (0.89, 16), (0.9, 0)):
        grey[100:104, 100:104] = value
        assert measure_border(grey).undecided == undecided / 512**2
