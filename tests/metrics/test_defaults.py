"""Numbers that the specifications and the field's tools fix, and the defaults of public functions."""

import inspect
from dataclasses import fields

import numpy as np

from hardlook.metrics import arrays, boundaries, click_sets, confusion, mask_attributes, panoptic, regions
from hardlook.metrics.average_precision import RECALL_LEVELS, RECALL_LIMITS
from hardlook.metrics.detection_batches import match_at_once
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, match_image
from hardlook.metrics.open_ap import OpenAP, open_average_precision
from hardlook.metrics.open_miou import OpenMeanIoU, open_miou
from hardlook.metrics.open_pq import OpenPQ, open_pq, segment_costs


def defaults(function):
    """The default of each argument that has one."""
    given = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in given if one.default is not inspect.Parameter.empty}


def test_coco_fixes_thresholds_areas_and_the_number_of_detections():
    assert IOU_THRESHOLDS.tolist() == np.linspace(0.5, 0.95, 10).tolist()
    assert AREA_RANGES == {
        "all": (0, 1e10),
        "small": (0, 1024),
        "medium": (1024, 9216),
        "large": (9216, 1e10),
    }
    assert RECALL_LEVELS.tolist() == np.linspace(0, 1, 101).tolist() and RECALL_LIMITS == (1, 10)
    rules = {"max_detections": 100, "released": False, "category_zero": 0}
    for function in (match_image, match_at_once):
        assert defaults(function).items() >= rules.items()
    assert defaults(OpenAP).items() >= {"max_detections": 100, "released": False, "asymmetric": False}.items()


def test_no_similarity_is_asymmetric_unless_it_is_said():
    for function in (
        open_average_precision,
        OpenMeanIoU,
        open_miou,
        OpenPQ,
        open_pq,
    ):
        assert defaults(function)["asymmetric"] is False
    assert defaults(arrays.checked_similarity)["symmetric"] is defaults(arrays.check_similarity)["symmetric"] is False
    assert arrays.ROUNDING == 1e-6
    assert defaults(confusion.confusion_costs)["most"] is defaults(segment_costs)["most"] is None


def test_one_image_is_one_image():
    assert {one.name: one.default for one in fields(panoptic.SegmentMatches)}["images"] == 1
    assert panoptic.NO_PARTNER == -1 and confusion.USUAL_IGNORED == 255


def test_shares_of_the_specifications():
    assert (boundaries.BAND_RATIO, boundaries.CONTOUR_RATIO) == (0.02, 0.008)
    assert (click_sets.PASSES_ABOVE, mask_attributes.SIDE) == (0.05, 512)
    assert (regions.MARGIN, regions.MIN_REGION_SIDE, regions.MIN_CROP_SIDE) == (0.4, 40, 256)
