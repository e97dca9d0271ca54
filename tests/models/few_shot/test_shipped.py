import json
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest

import hardlook.models.few_shot.shipped as shipped
from hardlook.errors import DataError
from hardlook.models.few_shot.shipped import FOLDER, ShippedProtoNet, convolve, pool_by_twos, read_tensors
from hardlook.models.registry import build
from hardlook.models.roles import Episode


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    shapes = [(40, 60), (37, 37), (90, 31), (12, 200)]
    return [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]


def test_it_is_small_and_a_checkpoint_like_any_other():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 260_000
    card = json.loads((FOLDER / "checkpoint.json").read_text())
    assert card["finished"] and card["method"] == "protonet" and card["backbone"] == "conv64f" and card["half"]


def test_vectors_and_answers_are_those_of_torch(images, one_thread):
    ours = build("protonet-caltech101", "few-shot-learner")
    theirs = build(str(FOLDER), "few-shot-learner")
    vectors = ours.encode(images).vectors
    expected = theirs.encode(images).vectors
    assert vectors.shape == (4, ours.dimension) == expected.shape
    # Its weights have three digits, and both add up in float32.
    assert np.allclose(vectors, expected, atol=1e-4 * np.abs(expected).max())
    episode = Episode(vectors[:2], np.array([0, 1]), vectors[2:], ways=2, key="a task")
    assert np.allclose(ours.classify([episode])[0], theirs.classify([episode])[0], rtol=1e-3)


def test_convolution_and_pooling_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    maps, kernel = rng.normal(size=(2, 5, 7, 3)).astype(np.float32), rng.normal(size=(3, 3, 3, 4)).astype(np.float32)
    given = torch.from_numpy(maps.transpose(0, 3, 1, 2))
    expected = torch.nn.functional.conv2d(given, torch.from_numpy(kernel.transpose(3, 2, 0, 1)), padding=1)
    assert np.allclose(convolve(maps, kernel).transpose(0, 3, 1, 2), expected.numpy(), atol=1e-5)
    pooled = torch.nn.functional.max_pool2d(given, 2).numpy()
    assert np.array_equal(pool_by_twos(maps).transpose(0, 3, 1, 2), pooled)


def test_an_image_has_the_same_vector_alone_and_among_many(images):
    model = ShippedProtoNet()
    many = model.encode(images * 20).vectors
    assert np.allclose(many[:4], np.concatenate([model.encode([one]).vectors for one in images]), atol=1e-4)


def test_damaged_weights_are_named(tmp_path, monkeypatch):
    copied = tmp_path / "copied"
    shutil.copytree(FOLDER, copied)
    [path] = copied.glob("model-*.safetensors")
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    with pytest.raises(DataError, match="damaged") as raised:
        read_tensors(copied)
    assert str(path) in str(raised.value)
    monkeypatch.setattr(shipped, "FOLDER", copied)
    with pytest.raises(DataError):
        ShippedProtoNet()


def test_it_needs_no_torch():
    script = (
        "import sys; sys.modules['torch'] = None; sys.modules['safetensors'] = None\n"
        "import numpy as np\n"
        "from hardlook.models.registry import build\n"
        "model = build('protonet-caltech101', 'few-shot-learner')\n"
        "print(model.encode([np.zeros((8, 8, 3), np.uint8)]).vectors.shape)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "(1, 256)", done.stderr


UNSEEN = ("airplanes", "bonsai", "brain", "chair", "dolphin", "euphonium", "helicopter", "revolver", "yin_yang")


def measure_on_photographs(root, model, *, tasks=60, shots=5, queries=5):
    """The share of right answers in 5-way tasks, as photographs are, without planted contexts."""
    assert not {*UNSEEN} & {*json.loads((FOLDER / "checkpoint.json").read_text())["identity"]["classes"]}
    images = [cv2.imread(str(path))[..., ::-1] for name in UNSEEN for path in sorted((root / name).iterdir())[:12]]
    vectors = model.encode(images).vectors.reshape(len(UNSEEN), 12, -1)
    rng, right = np.random.default_rng(0), 0
    for _ in range(tasks):
        chosen = rng.choice(len(UNSEEN), 5, replace=False)
        rows = np.stack([vectors[one][rng.permutation(12)[: shots + queries]] for one in chosen])
        support, query = rows[:, :shots].reshape(5 * shots, -1), rows[:, shots:].reshape(5 * queries, -1)
        [scores] = model.classify([Episode(support, np.repeat(np.arange(5), shots), query, ways=5)])
        right += (scores.argmax(1) == np.repeat(np.arange(5), queries)).sum()
    return right / (tasks * 5 * queries)


def test_it_has_learned_photographs(shared_data):
    """On classes of Caltech101 that it was not trained on: far better than with random weights."""
    root, model = shared_data / "data" / "caltech101", ShippedProtoNet()
    trained = measure_on_photographs(root, model)
    rng = np.random.default_rng(0)
    model.blocks = [
        (rng.normal(0, (2 / (9 * kernel.shape[2])) ** 0.5, kernel.shape).astype(np.float32), np.zeros_like(bias))
        for kernel, bias in model.blocks
    ]
    # 1,500 answers: a share has a standard error of .013 at most.
    assert trained > measure_on_photographs(root, model) + 0.08
