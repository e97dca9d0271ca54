"""Words of a trained projection: synonyms, words without a vector, the background, penalties, damaged folders."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from hardlook.errors import HardlookError, ModelError, OptionError  # noqa: E402
from hardlook.models.conformance import check_model  # noqa: E402
from hardlook.models.families.words import Word  # noqa: E402
from hardlook.models.identity import identify  # noqa: E402
from hardlook.models.roles import Features  # noqa: E402
from hardlook.open_vocabulary.word_projection import (  # noqa: E402
    WordProjection,
    encode_words,
    find_possible_labels,
)
from hardlook.training.checkpoint import write_checkpoint  # noqa: E402
from hardlook.training.projection.recipes import change_projection_recipe, find_projection_recipe  # noqa: E402
from hardlook.training.projection.trainee import build_projection  # noqa: E402

VECTORS = "cat 1 0 0\nkitten 0.8 0.6 0\ncar 0 1 0\nthe 1 1 1\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, one_thread):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """A projection that changes nothing: features are vectors of words, the background lies along the third axis."""
    (tmp_path / "vectors.txt").write_text(VECTORS)
    recipe = find_projection_recipe("planted-encoder", "glove")
    recipe = change_projection_recipe(recipe, {"text.source": str(tmp_path / "vectors.txt")})
    network = build_projection(recipe, 3, 3, seed=0)
    with torch.no_grad():
        network.project[0].weight.copy_(torch.eye(3))
        network.project[0].bias.zero_()
        network.background.copy_(torch.eye(3)[2])
    card = {
        "kind": "projection", "method": "semantic-projection", "backbone": "planted-encoder", "channels": 3,
        "dimension": 3, "finished": True, "selected": {"step": 1, "by": "last", "validation": {}},
        "identity": {"recipe": recipe.to_json(), "classes": ["cat"]},
    }  # fmt: skip
    write_checkpoint(tmp_path / "weights", network.state_dict(), card)
    return tmp_path / "weights"


@pytest.fixture
def features(monkeypatch):
    """The map (3, h, w) that every image has."""
    from hardlook.models.planted.encoders import PlantedEncoder

    given = {}

    def encode(self, images):
        return Features(np.zeros((len(images), 64), np.float32), [given["map"] for _ in images])

    monkeypatch.setattr(PlantedEncoder, "encode", encode)
    return given


def segment(model, features, cells, image=None):
    """The answer for an image as large as the map, whose cells (h, w, 3) are given."""
    features["map"] = np.ascontiguousarray(np.moveaxis(np.array(cells, np.float32), -1, 0))
    height, width = features["map"].shape[1:]
    return model.segment([np.zeros((height, width, 3), np.uint8) if image is None else image])[0].tolist()


def test_each_cell_has_the_nearest_word(folder, features):
    model = WordProjection(str(folder), ["car", "background", "cat"], cached=False)
    assert segment(model, features, [[[1, 0.1, 0], [0.1, 1, 0], [0, 0.1, 2]]]) == [[2, 0, 1]]


def test_without_the_word_background_every_pixel_is_another(folder, features):
    model = WordProjection(str(folder), ["car", "cat"], cached=False)
    assert segment(model, features, [[[0.2, 0.1, 9], [0.1, 0.2, 9]]]) == [[1, 0]]


def test_maps_are_resized_before_the_best_label_is_chosen(folder, features):
    model = WordProjection(str(folder), ["car", "cat"], cached=False)
    (answer,) = segment(model, features, [[[1, 0, 0], [0, 1, 0]]], np.zeros((1, 4, 3), np.uint8))
    assert answer == [1, 1, 0, 0]


@pytest.mark.parametrize("cells", [(5, 7), (1, 6), (4, 1), (1, 1), (2, 2)])
def test_labels_that_no_pixel_can_have_are_left_out_and_no_others(cells):
    """The best labels of resized scores are the same with and without the labels that are left out."""
    rng = np.random.default_rng(sum(cells))
    scores = torch.from_numpy(rng.standard_normal((*cells, 40)).astype(np.float32))
    scores[..., 10:] -= 1.5
    kept = find_possible_labels(scores)

    def resize(some):
        channels = some.movedim(-1, 0)[None].contiguous()
        return torch.nn.functional.interpolate(channels, (37, 41), mode="bilinear", align_corners=False)[0].argmax(0)

    assert torch.equal(kept[resize(scores[..., kept])], resize(scores))
    assert len(kept) < 40 and kept.tolist() == sorted(kept.tolist())


def test_synonyms(folder, features, tmp_path):
    (tmp_path / "words.txt").write_text("tabby, glorp, kitten, cat\ncar\n")
    words = str(tmp_path / "words.txt")
    # Between kitten and car: by the first known name, kitten, the car wins; nearer to cat it is a cat by all names.
    first, best = (WordProjection(str(folder), [words], cached=False, synonyms=given) for given in (False, True))
    cell = [[[0.2, 1, 0], [1, -0.5, 0]]]
    assert segment(first, features, cell) == [[1, 0]] == segment(best, features, cell)
    assert len(first._owner_list) == 2 and len(best._owner_list) == 3
    assert encode_words(_Texts(), [Word("a", "x", synonyms=("y",))]).vectors.tolist() == [[0, 1]]


class _Texts:
    dimension = 2

    def encode_text(self, texts):
        return np.array([[0, 2] if text == "y" else [0, 0] for text in texts], np.float32)


def test_words_without_a_vector(folder, features):
    with pytest.raises(OptionError, match="2 of 3 labels have no vector of glove: glorp, zibble") as caught:
        WordProjection(str(folder), ["glorp", "cat", "zibble"])
    assert "unknown=never" in caught.value.remedy
    model = WordProjection(str(folder), ["glorp", "cat"], unknown="never", cached=False)
    assert segment(model, features, [[[-1, 0, 0]]]) == [[1]]
    assert "1 labels without a vector never predicted" in model.conduct
    with pytest.raises(OptionError, match="unknown=zero"):
        WordProjection(str(folder), ["cat"], unknown="zero")


def test_a_penalty_of_trained_words(folder, features):
    cell = [[[1, 0.9, 0]]]
    assert segment(WordProjection(str(folder), ["car", "cat"], cached=False), features, cell) == [[1]]
    assert segment(WordProjection(str(folder), ["car", "Cat"], seen_penalty=0.2, cached=False), features, cell) == [[0]]


def test_features_are_kept_on_disk(folder, features):
    image = np.full((1, 1, 3), 7, np.uint8)
    assert segment(WordProjection(str(folder), ["car", "cat"]), features, [[[1, 0, 0]]], image) == [[1]]
    # Another map of the same image is not asked for.
    assert segment(WordProjection(str(folder), ["car", "cat"]), features, [[[0, 1, 0]]], image) == [[1]]


def test_its_identity_names_weights_words_and_recipe(folder, features, tmp_path):
    (tmp_path / "words.txt").write_text("cat\ncar\n")

    def fingerprint():
        labels = [str(tmp_path / "words.txt")]
        model = WordProjection(str(folder), labels)
        return identify(model, name=str(folder), role="semantic-segmenter", args={"labels": labels}).fingerprint()

    first = fingerprint()
    assert fingerprint() == first
    card = json.loads((folder / "checkpoint.json").read_text())
    card["identity"]["recipe"]["encoder_args"] = {"turn": 0.5}
    (folder / "checkpoint.json").write_text(json.dumps(card))
    assert fingerprint() != first


def test_damaged_and_other_folders(folder, tmp_path):
    path = folder / "checkpoint.json"
    card = json.loads(path.read_text())
    for change, message in (
        ({"finished": False}, "the training is not finished"),
        ({"kind": "one-shot"}, "not a semantic projection"),
        ({"channels": "many"}, "describes no semantic projection"),
        ({"identity": {}}, "describes no semantic projection"),
        ({"channels": 4}, "the weights do not fit"),
    ):
        path.write_text(json.dumps({**card, **change}))
        with pytest.raises(ModelError, match=message):
            WordProjection(str(folder), ["cat"])
    path.write_text(json.dumps({**card, "finished": False}))
    assert WordProjection(str(folder), ["cat"], unfinished=True).labels == ("cat",)
    path.write_text(json.dumps(card))
    shard = next(folder.glob("model-*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(HardlookError, match="damaged"):
        WordProjection(str(folder), ["cat"])


def test_it_keeps_the_contract_of_its_role(folder, monkeypatch):
    from hardlook.models.planted.encoders import PlantedEncoder

    def encode(self, images):
        maps = [np.moveaxis(image[::4, ::4].astype(np.float32), -1, 0) for image in images]
        return Features(np.zeros((len(images), 64), np.float32), maps)

    monkeypatch.setattr(PlantedEncoder, "encode", encode)
    findings = check_model(lambda: WordProjection(str(folder), ["cat", "car"], cached=False), "semantic-segmenter")
    assert all(finding.passed for finding in findings), [one for one in findings if not one.passed]
