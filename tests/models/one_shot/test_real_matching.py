"""The matchers with EfficientNet-Lite0 on photos: better than not looking, and core models need no runtime."""

import subprocess
import sys

import numpy as np
import pytest

from hardlook.errors import HardlookError
from hardlook.models.registry import build
from hardlook.models.roles import Support
from hardlook.randomness import generator

ROLE = "one-shot-segmenter"


def test_core_models_import_no_runtime():
    script = (
        "import sys; from hardlook.models.registry import build\n"
        "for name, key, inner in (('empty', '', ''), ('whole-image', '', ''), ('center-box', 'share', '.3'),\n"
        "    ('saliency', 'model', 'planted-saliency'), ('prototype', 'encoder', 'planted-encoder'),\n"
        "    ('nearest', 'encoder', 'planted-encoder')):\n"
        f"    assert build(name, '{ROLE}', {{key: inner}} if key else {{}}).segment_queries([], []) == []\n"
        "print([name for name in ('torch', 'onnxruntime', 'transformers') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


@pytest.fixture(scope="module")
def pairs(shared_data):
    """Sixteen pairs of one class each from VOC: query, support, and the query's true mask."""
    from hardlook.data.voc import open_devkit

    devkit = open_devkit(shared_data / "data" / "VOCdevkit" / "VOC2012")
    names = sorted(path.stem for path in (devkit.root / "SegmentationClass").glob("*.png"))
    maps = {name: devkit.image(name).read_classes() for name in names}
    drawn = []
    for number in (1, 3, 6, 8, 12, 13, 17, 19):
        having = [name for name in names if (maps[name] == number).any()]
        for query, support in generator(0, "pairs", number).permutation(having)[:4].reshape(2, 2):
            example = Support(devkit.image(support).read(), maps[support] == number)
            drawn.append((devkit.image(query).read(), example, maps[query] == number))
    return drawn


def mean_iou(name, pairs, args=None, own=False):
    try:
        model = build(name, ROLE, args)
    except HardlookError as error:
        pytest.skip(str(error))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    supports = [[Support(query, true) if own else support] for query, support, true in pairs]
    masks = model.segment_queries([query for query, _, _ in pairs], supports)
    return np.mean([(m & t).sum() / (m | t).sum() for m, (_, _, t) in zip(masks, pairs, strict=True)])


@pytest.mark.real
@pytest.mark.parametrize("name", ["prototype", "nearest"])
def test_matching_beats_not_looking(name, pairs):
    matched = mean_iou(name, pairs)
    assert matched > mean_iou("whole-image", pairs) + 0.05
    assert mean_iou(name, pairs, own=True) > matched + 0.1


@pytest.mark.real
def test_several_layers_beat_each_alone(pairs):
    both = mean_iou("prototype", pairs, {"encoder_args": "layer=stride16+stride32,size=320"})
    assert both > mean_iou("prototype", pairs, {"encoder_args": "layer=stride8,size=320"})
