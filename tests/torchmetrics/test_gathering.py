"""Two real processes that talk by gloo: every metric has the value of one pass over all data, bit for bit."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchmetrics", reason="needs the extra torchmetrics")
import metric_processes
import torch
from command_server import python_command
from detection_scenes import accumulated
from training_batches import CLASSES, LABELS, SIMILARITY, plain_ap, plain_pq

from hardlook import metrics
from hardlook.torchmetrics import MeanIoU, OpenMeanIoU, gather_metric

SUPPORT = Path(metric_processes.__file__).parent


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answers of both processes."""
    if not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    folder = tmp_path_factory.mktemp("gloo")
    program = (
        f"import sys; sys.path.insert(0, {str(SUPPORT)!r}); import metric_processes as m; m.work(%d, {str(folder)!r})"
    )
    started = [
        subprocess.Popen([*python_command(), "-c", program % rank], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=300)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], "\n".join(errors)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def in_one_process(metric, *batches):
    for batch in batches:
        metric.update(*batch)
    return metric_processes.exact(metric.compute())


def test_both_processes_have_the_same_answers(answers):
    assert answers[0] == answers[1]


def test_pixel_metrics_in_a_collection_equal_one_pass(answers):
    preds, target = metric_processes.maps()
    for name, images in (("semantic", slice(None)), ("early", [0, 4])):
        maps = preds[images], target[images]
        expected = in_one_process(OpenMeanIoU(LABELS, SIMILARITY), maps)
        assert answers[0][name] == expected | {"mean": in_one_process(MeanIoU(CLASSES), maps)[""]}
    assert answers[0]["early"] != answers[0]["semantic"]


def test_a_value_of_all_processes_at_each_step(answers):
    assert answers[0]["step"] == in_one_process(OpenMeanIoU(LABELS, SIMILARITY), metric_processes.maps())


def test_a_process_without_data_takes_part(answers):
    many = OpenMeanIoU(metric_processes.MANY_LABELS, metric_processes.half_alike)
    assert answers[0]["many"] == in_one_process(many, metric_processes.many_maps())
    expected = metric_processes.exact(plain_ap(metric_processes.detections(False)[0]))
    assert answers[0]["boxes"] == expected
    pq = plain_pq(*metric_processes.panoptic()).compute()
    assert answers[0]["segments"]["open-pq"] == pq.open.all.pq.hex()
    assert answers[0]["segments"]["pq-stuff"] == pq.vanilla.stuff.pq.hex()
    # Afterwards the process goes on with a state of its own: the images were all added once, by both.
    assert answers[0]["local"]["AP"] == answers[1]["local"]["AP"] == expected["open-ap"]


def test_detections_of_unequal_lengths_equal_one_pass(answers):
    data = metric_processes.detections(True)[0]
    assert answers[0]["masks"] == metric_processes.exact(plain_ap(data, iou_type="segm"))


def test_an_image_of_two_processes_counts_once(answers):
    assert answers[0]["repeated"] == metric_processes.exact(plain_ap(metric_processes.detections(False)[0]))
    assert answers[0]["warnings"] == [
        "1 images came from two processes, as samplers do to give each as many; each is counted once"
    ]


def test_plain_metrics_are_gathered(answers):
    preds, target = metric_processes.maps()
    plain = metrics.OpenMeanIoU(LABELS, SIMILARITY)
    plain.update(target, preds)
    result = plain.compute().open
    assert answers[0]["plain"] == metric_processes.exact(result.__dict__ | {"per_class": 0})
    assert answers[0]["unchanged"]
    boxes = accumulated(*metric_processes.detections(False)[0], SIMILARITY, "bbox").compute()
    assert answers[0]["plain boxes"] == metric_processes.exact(boxes.summary()["open"])
    segments = plain_pq(*metric_processes.panoptic()).compute()
    assert answers[0]["plain segments"] == metric_processes.exact(segments.open.all.__dict__)
    assert float.fromhex(answers[0]["function"]) == pytest.approx(result.miou, abs=1e-12)


def test_processes_of_other_settings_are_an_error(answers):
    assert answers[0]["other settings"] == "OptionError"


def test_without_a_group_gathering_copies():
    preds, target = metric_processes.maps()
    plain = metrics.OpenMeanIoU(LABELS, SIMILARITY)
    plain.update(target, preds)
    gathered = gather_metric(plain)
    assert gathered.compute().open.miou == plain.compute().open.miou
    gathered.update(target, preds)
    assert np.array_equal(gathered.confusion, 2 * plain.confusion)
    assert plain.similarity is not None


def test_the_modules_are_importable_without_torchmetrics():
    program = (
        "import sys\nsys.modules['torchmetrics'] = None\n"
        "import hardlook.extras as extras\nextras.is_installed = lambda name: False\n"
        "import hardlook.torchmetrics as ours\n"
        "try:\n    ours.MeanIoU(2)\nexcept Exception as error:\n    print(type(error).__name__, error)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("MissingExtra")
    assert 'pip install "hardlook[torchmetrics]"' in answer.stdout
