"""MobileSAM with its real weights on real photographs."""

import numpy as np
import pytest

from hardlook.metrics.click_robustness import clicks_to_reach
from hardlook.models.weights.install import get_weights_status
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.scores import read_results
from hardlook.rclicks.units import list_units, prepare_unit

pytestmark = pytest.mark.real

STEMS = ("grabcut/banana1", "grabcut/flower")

# As many trajectories of an object as take several calls: one per group, and that of the usual benchmark.
GROUPS = 4
TRAJECTORIES = GROUPS + 1


class OpenedBefore:
    """A model whose images are encoded once for all layouts of one test: the encoding is not what is compared.

    `calls` are the numbers of prompts that each call had.
    """

    def __init__(self, model):
        self.model, self.sessions, self.conduct, self.calls = model, {}, model.conduct, []

    def open(self, image):
        key = hash(image.tobytes())
        if key not in self.sessions:
            self.sessions[key] = self.model.open(image)
        inner, calls = self.sessions[key], self.calls

        class Session:
            def predict(self, prompts):
                calls.append(len(prompts))
                return inner.predict(prompts)

        return Session()


@pytest.fixture(scope="module")
def grabcut(shared_data):
    folder = shared_data / "data" / "GrabCut"
    if not folder.is_dir():
        pytest.skip("no GrabCut here")
    return folder


@pytest.fixture(scope="module")
def model(grabcut):
    pytest.importorskip("torch").set_num_threads(1)
    if get_weights_status("mobile-sam") != "installed":
        pytest.skip("mobile-sam is not installed; hardlook weights install mobile-sam")
    from hardlook.models.interactive.mobile_sam import MobileSam

    return OpenedBefore(MobileSam(batch=TRAJECTORIES))


def records(grabcut, model, **given):
    options = RClicksOptions(data={"grabcut": grabcut}, rounds=2, groups=GROUPS, **given)
    units = [prepare_unit(unit) for unit in list_units(options) if unit.id in STEMS]
    assert len(units) == len(STEMS)
    return RCLICKS.schema.frame(RCLICKS.evaluate(units, model)).sort("unit")


def clicks_needed(rows):
    table = read_results(rows)
    return clicks_to_reach(table.intersection, table.union, 90)


def test_the_number_of_trajectories_a_batch_changes_no_count_of_clicks(grabcut, model):
    """The network's last bits may differ between layouts; clicks, and the clicks needed, do not."""
    found = {}
    for together in (1, 2, TRAJECTORIES):
        model.calls.clear()
        found[together] = records(grabcut, model, prompts_a_call=together)
        # The first round has a prompt per trajectory: were the option ignored, all layouts would be one.
        assert max(model.calls) == together
    single, pairs, whole = found.values()
    for other in (single, pairs):
        assert (clicks_needed(other) == clicks_needed(whole)).all()
        for column in ("x", "y", "positive"):
            assert other[column].to_list() == whole[column].to_list()
    # One click in the centre of the object finds it: GrabCut's photographs are easy for this model.
    assert clicks_needed(whole)[:, 0].tolist() == [1, 1]
    assert read_results(whole).iou[:, 0, 0].min() > 0.95
    assert "Three masks" in whole["conduct"][0]


def test_a_whole_object_of_voc_and_of_coco_can_be_clicked_on(shared_data):
    """The other layouts of real data, with a model that needs no weights."""
    data = shared_data / "data"
    if not (data / "VOCdevkit").is_dir() or not (data / "coco100").is_dir():
        pytest.skip("no VOC or COCO here")
    coco = data / "coco100"
    given = {
        "voc": data / "VOCdevkit" / "VOC2012", "panoptic": coco / "panoptic.json", "segments": coco / "panoptic",
        "images": coco / "images",
    }  # fmt: skip
    from hardlook.harness.runs.in_memory import InMemoryRun

    rehearsal = InMemoryRun("rclicks", {"data": given, "at_most": 2, "min_area": 1000, "rounds": 3, "split": "train"})
    card = rehearsal.score("disc")
    assert card.get("noc90", dataset="voc").n == card.get("noc90", dataset="panoptic").n == 2
    ious = read_results(rehearsal.records("disc")).iou
    assert np.isfinite(ious).all()
    assert 0 < ious.mean() < 1
    assert {"objects of voc below 1000 pixels", "crowds of panoptic"} <= {note.what for note in card.left_out}
