"""What FC-CLIP, SAN and CAT-Seg share as models: files, words, batches, hostile files, runs that are killed."""

import json
import pickle

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hostile_pickles import attacks  # noqa: E402
from killed_runs import check_killed_and_resumed  # noqa: E402
from open_vocabulary_files import WORDS, write_files  # noqa: E402

from hardlook.errors import DataError, ModelError, OptionError  # noqa: E402
from hardlook.models.conformance import check_model  # noqa: E402
from hardlook.models.identity import identify  # noqa: E402
from hardlook.models.registry import build  # noqa: E402

ROLE = "semantic-segmenter"
SMALL = {
    "fc-clip": {"shorter": "64", "longer": "96"},
    "san": {"shorter": "96", "longer": "160"},
    "cat-seg": {"shorter": "96", "longer": "160"},
}
IMAGES = 4


@pytest.fixture(autouse=True)
def own_cache(one_thread, tmp_path, monkeypatch):
    """One thread, and a cache of its own."""
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The arguments of each model with files of its own."""
    return {name: write_files(name, tmp_path_factory.mktemp(name)) for name in SMALL}


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 60, 3), (50, 30, 3), (40, 60, 3))]


@pytest.mark.parametrize("name", ["san", "cat-seg"])  # FC-CLIP: test_fc_clip
def test_a_model_from_files_keeps_the_contract_and_tells_what_it_is(name, files):
    # A window takes CAT-Seg as long as an image takes the others.
    more = {"windows": "false"} if name == "cat-seg" else {}
    args = {"labels": ",".join(WORDS[:2]), **files[name], **SMALL[name], **more}
    model = build(name, ROLE, args)
    assert [finding.line() for finding in check_model(model, ROLE) if not finding.passed] == []
    assert f"with {name}.pth" in model.conduct and "2 names of 2 labels" in model.conduct
    weights = identify(model, name=name, role=ROLE, args=args).weights
    assert {f"{name}.pth", "vocab.json", "merges.txt"} <= set(weights)


@pytest.mark.parametrize("name", SMALL)
def test_images_of_one_size_are_answered_together_as_each_alone(name, files, images):
    args = {"labels": ",".join(WORDS[:3]), **files[name], **SMALL[name]}
    alone, together = build(name, ROLE, args), build(name, ROLE, {**args, "batch": "3"})
    sizes = []
    together._network.register_forward_pre_hook(lambda network, given: sizes.append(len(given[0])))
    for image, one, other in zip(images, alone.segment(images), together.segment(images), strict=True):
        assert one.shape == other.shape == image.shape[:2] and (one != other).mean() < 0.01
    assert sizes == ([6] if name == "cat-seg" else [2, 1])  # CAT-Seg: a window and the whole of each


@pytest.mark.parametrize("name", SMALL)
def test_what_a_word_of_the_background_wins_has_no_label(name, files, images):
    args, words = {**files[name], **SMALL[name]}, WORDS[:3]
    [plain] = build(name, ROLE, {"labels": ",".join(words), **args}).segment(images[:1])
    winner = words[np.bincount(plain.ravel()).argmax()]
    labels = [one for one in words if one != winner]
    model = build(name, ROLE, {"labels": ",".join(labels), "background": winner, **args})
    [answer] = model.segment(images[:1])
    assert list(model.labels) == labels
    places = np.array([labels.index(one) if one in labels else -1 for one in words])
    assert (answer != places[plain]).mean() < 0.02 and (answer == -1).any()


def test_the_background_has_neither_segments_nor_instances(files, images):
    given = {**files["fc-clip"], **SMALL["fc-clip"], "overlap": "0.05"}
    model = build("fc-clip", "panoptic-segmenter", {"labels": "cat,dog,sky", "things": "cat,dog", **given})
    [plain] = model.segment_panoptic(images[:1])
    winner = ("cat", "dog", "sky")[next(iter(plain.labels.values()))]
    labels = [word for word in ("cat", "dog", "sky") if word != winner]
    changed = {"labels": ",".join(labels), "things": labels[0], "background": winner, **given}
    model = build("fc-clip", "panoptic-segmenter", changed)
    [answer] = model.segment_panoptic(images[:1])
    assert set(np.unique(answer.map)) - {0} == set(answer.labels) and max(answer.labels.values(), default=0) < 2
    assert (answer.map == 0).sum() > (plain.map == 0).sum()
    [found] = model.detect(images[:1])
    assert set(found.labels.tolist()) == {0}, "the countable label alone"


@pytest.mark.parametrize("name", SMALL)
def test_texts_are_encoded_once_for_all_runs(name, files, monkeypatch):
    from hardlook.networks.open_vocabulary.clip_text import CLIP

    args = {"labels": ",".join(WORDS[:2]), **files[name], **SMALL[name]}
    first = build(name, ROLE, args)
    monkeypatch.setattr(CLIP, "encode_tokens", None)
    assert torch.equal(build(name, ROLE, args).text, first.text)
    with pytest.raises(ModelError, match="'NoneType' object is not callable"):
        build(name, ROLE, {**args, "templates": "a {label}"})
    monkeypatch.setattr("hardlook.models.open_vocabulary.clip_segmenter.hash_sources", lambda paths: "changed")
    with pytest.raises(ModelError, match="'NoneType' object is not callable"):
        build(name, ROLE, args)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"weights": "random:x"}, "no seed"),
        ({"weights": "random:1", "clip": "clip.bin"}, "are both given"),
        ({"size": "tiny"}, "a file tells its size"),
        ({"longer": "32"}, "no image has sides of"),
        ({"precision": "bfloat16"}, "bfloat16 is for a GPU"),
        ({"background": "cat"}, "'cat' is a label and a word of the background"),
        ({"tokenizer": "none"}, "without the tokenizer"),
    ],
)
def test_wrong_options_are_refused(name, files, wrong, words):
    with pytest.raises(OptionError, match=words):
        build(name, ROLE, {"labels": "cat,dog", **files[name], **SMALL[name], **wrong})


@pytest.mark.parametrize("name", SMALL)
def test_an_unknown_size_is_refused(name):
    with pytest.raises(OptionError, match="no 'RN18' for"):
        build(name, ROLE, {"labels": "cat,dog", "weights": "random:1", "size": "RN18", **SMALL[name]})


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("attack", ["os.system", "eval", "nested reduce"])
def test_a_file_that_would_run_code_is_refused(name, attack, files, tmp_path):
    hostile, trace = tmp_path / "hostile.pth", tmp_path / "trace"
    state = torch.load(files[name]["weights"], weights_only=True)["model"]
    torch.save({"model": state, "config": attacks(trace)[attack]}, hostile, pickle_module=pickle)
    with pytest.raises(DataError, match="it would call") as caught:
        build(name, ROLE, {"labels": "cat,dog", **files[name], "weights": str(hostile)})
    assert "hostile.pth" in str(caught.value) and not trace.exists()


def test_a_run_on_photographs_is_killed_and_resumed(files, tmp_path, shared_data):
    folder = _take_photographs(shared_data, tmp_path)
    (tmp_path / "words.txt").write_text("cat, kitten\nDog\nsea\n")
    for name in ("san", "cat-seg"):
        given = {**files[name], **SMALL[name], "background": "wall"}
        records = check_killed_and_resumed(
            [
                *("open-miou", "--model", name, *_list_arguments(given), "--pred-labels", str(tmp_path / "words.txt")),
                *("--data", f"images={folder / 'small'}", "--data", f"masks={folder / 'small_masks'}"),
                *("--labels", "coco133", "--numbering", "category-id", "--ignore", "0"),
                *("--resamples", "20", "--batch-size", "1"),
            ],
            tmp_path / name,
            units=IMAGES,
        )
        assert records["prediction"].n_unique() > 1 and "sea" in records["names"][0].split("\n")


def test_a_panoptic_run_on_photographs_is_killed_and_resumed(files, tmp_path, shared_data):
    folder = _take_photographs(shared_data, tmp_path)
    words = [
        *("open-pq", "--model", "fc-clip", *_list_arguments({**files["fc-clip"], **SMALL["fc-clip"]})),
        *("--model-arg", "overlap=0.05", "--pred-labels", "coco133", "--data", f"coco-panoptic={folder}"),
        *("--resamples", "20", "--batch-size", "1"),
    ]
    records = check_killed_and_resumed(words, tmp_path / "fc-clip", units=IMAGES)
    assert sum(records["called"].explode() >= 0) > 0, "some segments are drawn"


def _list_arguments(given):
    return [word for key, value in given.items() for word in ("--model-arg", f"{key}={value}")]


def _take_photographs(shared_data, tmp_path):
    """The first photographs of COCO in COCO's folders, and small ones with label maps."""
    source, folder = shared_data / "data" / "coco100", tmp_path / "coco"
    if not source.is_dir():
        pytest.skip(f"no coco100 at {source}")
    content = json.loads((source / "panoptic.json").read_text())
    content["annotations"] = content["annotations"][:IMAGES]
    kept = {one["image_id"] for one in content["annotations"]}
    content["images"] = [one for one in content["images"] if one["id"] in kept]
    for part in ("annotations", "val2017", "annotations/panoptic_val2017", "small", "small_masks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "annotations" / "panoptic_val2017.json").write_text(json.dumps(content))
    for one in content["annotations"]:
        png = one["file_name"]
        (folder / "annotations" / "panoptic_val2017" / png).symlink_to(source / "panoptic" / png)
        name = png.replace(".png", ".jpg")
        (folder / "val2017" / name).symlink_to(source / "images" / name)
        for part, path in (("small", source / "images" / name), ("small_masks", source / "semantic" / png)):
            picture = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
            small = cv2.resize(picture, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_NEAREST)
            cv2.imwrite(str(folder / part / png), small)
    return folder
