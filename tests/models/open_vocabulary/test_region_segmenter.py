"""OVSeg and SimSeg as models: masks of another model, words, uncovered pixels, files."""

import json

import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch")

from tiny_clip import make_ovseg_state, make_state, make_transformers_network, write_settings  # noqa: E402
from tiny_fc_clip import write_tokenizer  # noqa: E402

from hardlook.errors import DataError, HardlookError, ModelError, OptionError  # noqa: E402
from hardlook.models.conformance import check_model  # noqa: E402
from hardlook.models.open_vocabulary.proposals import Proposals  # noqa: E402
from hardlook.models.open_vocabulary.region_segmenter import (  # noqa: E402
    choose_classes,
    choose_resized,
    find_places,
    spread_scores,
)
from hardlook.models.registry import build  # noqa: E402
from hardlook.models.roles import Instances  # noqa: E402

ROLE = "semantic-segmenter"
TINY = {"weights": "random:1", "size": "tiny"}


class Rectangles:
    """Instances in the corners of an image: cat top left, lamp bottom right; `kind` changes what there is.

    several: both overlap. empty: the second has no pixel. none: there is no instance.
    """

    labels = ("cat", "lamp")

    def __init__(self, kind: str = "several", score: float = 0.9):
        self.kind, self.score = kind, score

    def detect(self, images):
        return [self._detect(*image.shape[:2]) for image in images]

    def _detect(self, height, width):
        masks = np.zeros((2, height, width), bool)
        masks[0, : height // 2 + 2, : width // 2 + 2] = True
        if self.kind != "empty":
            masks[1, height // 2 :, width // 2 :] = True
        count = 0 if self.kind == "none" else 2
        boxes = np.zeros((2, 4), np.float32)
        scores = np.array([self.score, self.score / 2], np.float32)
        return Instances(masks[:count], boxes[:count], scores[:count], np.arange(2, dtype=np.int32)[:count])


HERE = f"{__name__}:Rectangles"


def make(name="ovseg", labels="cat,dog,red barn", kind="several", **more):
    return build(name, ROLE, {"labels": labels, "proposals": HERE, "proposal_args": f"kind={kind}", **TINY, **more})


@pytest.fixture(autouse=True)
def alone(one_thread, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 60, 3), (50, 30, 3))]


@pytest.mark.parametrize("name", ["ovseg", "simseg"])
@pytest.mark.parametrize("reading", ["ours", "released"])
def test_the_role_is_fulfilled(name, reading):
    model = make(name, reading=reading, shorter=64, longer=96)
    assert [finding.line() for finding in check_model(model, ROLE) if not finding.passed] == []


@pytest.mark.parametrize("name", ["ovseg", "simseg"])
def test_the_answer_is_that_of_the_region_step(name, images):
    """Scores of regions, mixed, summed over masks: as `RegionClassifier.segment` on the same proposals."""
    model = make(name)
    image = images[0]
    [found] = Rectangles().detect([image])
    # cat is a word and lamp is none: a part of .9 goes to cat, or to the new words dog and red barn.
    rest = 0.1 / 3
    proposed = np.array([[0.9 + rest, rest, rest], [rest, 0.45 + rest, 0.45 + rest]]) * found.scores[:, None]
    none = 1 - proposed.sum(1, keepdims=True)
    logits = torch.from_numpy(np.log(np.concatenate((proposed, none), 1))).float()
    masks = torch.from_numpy(np.where(found.masks, 40.0, -40.0)).float()
    trained = torch.tensor([True, False, False]) if name == "simseg" else None
    pixels = torch.from_numpy(image).movedim(2, 0).float()
    scores = model._network.segment(pixels, masks, logits, model.text, trained)
    [answer] = model.segment([image])
    covered = found.masks.any(0)
    assert np.array_equal(answer[covered], scores.argmax(0).numpy()[covered].astype(np.int32))
    assert (answer[~covered] == -1).all() and (~covered).any()
    assert model._network.weight == (0.7 if name == "ovseg" else 0.8)


def test_the_released_answer_is_resized_before_and_after(images):
    model = make(reading="released", shorter=48, longer=60)
    image = images[0]
    [found] = Rectangles().detect([image])
    assert image.shape[:2] == (40, 60)
    small = torch.from_numpy(np.array(PIL.Image.fromarray(image).resize((60, 40), PIL.Image.Resampling.BILINEAR)))
    model_small = make(reading="released", shorter=30, longer=60)
    smaller = torch.from_numpy(np.array(PIL.Image.fromarray(image).resize((45, 30), PIL.Image.Resampling.BILINEAR)))
    rest = 0.1 / 3
    proposed = np.array([[0.9 + rest, rest, rest], [rest, 0.45 + rest, 0.45 + rest]]) * found.scores[:, None]
    logits = torch.from_numpy(np.log(np.concatenate((proposed, 1 - proposed.sum(1, keepdims=True)), 1))).float()
    for one, pixels in ((model, small), (model_small, smaller)):
        masks = torch.from_numpy(found.masks)[:, None].float()
        masks = torch.nn.functional.interpolate(masks, pixels.shape[:2], mode="bilinear")[:, 0]
        scores = one._network.segment(pixels.movedim(2, 0).float(), masks.logit(), logits, one.text)
        scores = torch.nn.functional.interpolate(scores[None], (40, 60), mode="bilinear")[0]
        assert np.array_equal(one.segment([image])[0], scores.argmax(0).numpy().astype(np.int32))
        assert not one._network.smooth and make()._network.smooth


def test_masks_that_overlap_are_added():
    scores = torch.tensor([[0.6, 0.0, 0.5], [0.0, 0.7, 0.3]])
    masks = torch.tensor([[[True, True, False, False]], [[False, True, True, False]]])
    best, classes = choose_classes(scores, masks)
    assert classes.tolist() == [[0, 2, 1, 0]] and best[0].tolist() == pytest.approx([0.6, 0.8, 0.7, 0])


def test_pixels_are_chosen_a_few_at_a_time(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    scores, masks = torch.rand(5, 7, generator=rng), torch.rand(5, 9, 11, generator=rng) > 0.5
    whole = choose_classes(scores, masks)
    resized = choose_resized(scores, masks.float(), (20, 30))
    assert resized.shape == (20, 30) and len(resized.unique()) > 1
    monkeypatch.setattr("hardlook.models.open_vocabulary.region_segmenter._AT_ONCE", 300)
    for one, other in zip(whole, choose_classes(scores, masks), strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(resized, choose_resized(scores, masks.float(), (20, 30)))


def test_uncovered_pixels_have_no_label_or_the_given_one(images):
    covered = Rectangles().detect(images[:1])[0].masks.any(0)
    [plain] = make().segment(images[:1])
    [given] = make(uncovered="Red_Barn").segment(images[:1])
    assert (plain[~covered] == -1).all() and (given[~covered] == 2).all()
    assert np.array_equal(plain[covered], given[covered]) and (plain[covered] >= 0).all()
    [released] = make(reading="released", shorter=40, longer=60).segment(images[:1])
    assert (released[:15, -10:] == 0).all(), "the first word, as argmax has it"
    with pytest.raises(OptionError, match="uncovered=sky is no label"):
        make(uncovered="sky")
    with pytest.raises(OptionError, match="first word"):
        make(uncovered="dog", reading="released")


def test_an_image_without_proposals(images):
    assert [(one == -1).all() for one in make(kind="none").segment(images)] == [True, True]
    assert (make(kind="none", uncovered="dog").segment(images)[0] == 1).all()
    assert (make(kind="none", reading="released").segment(images)[0] == 0).all()


def test_a_proposal_without_a_pixel_or_a_score_has_no_part(images):
    [answer] = make(kind="empty").segment(images[:1])
    assert (answer[30:, 40:] == -1).all() and (answer[:20, :30] >= 0).all()
    for share in ("0.7", "1"):  # with a share of 1 proposals have the exponent 0, and 0 ** 0 is 1
        given = {"labels": "cat,dog", "proposals": HERE, "proposal_args": "score=0", "share": share, **TINY}
        assert (build("ovseg", ROLE, given).segment(images)[0] == -1).all()


def test_images_are_taken_a_few_at_a_time(images, monkeypatch):
    expected = make().segment(images)
    monkeypatch.setattr("hardlook.models.open_vocabulary.region_segmenter._PIXELS", 1)
    for one, other in zip(expected, make(batch=1).segment(images), strict=True):
        assert np.array_equal(one, other)


def test_what_proposals_say_of_the_words():
    found = Proposals(np.ones((3, 1, 1), bool), np.array([0.8, 0.5, 1], np.float32), np.array([1, 0, -1], np.int32))
    got = spread_scores(found, np.array([-1, 0], np.int32), 3, 0.6)
    np.testing.assert_allclose(got.sum(1), found.scores, rtol=1e-6)
    rest = 0.4 / 3
    expected = [[0.6 + rest, rest, rest], [rest, 0.3 + rest, 0.3 + rest], [1 / 3] * 3]
    np.testing.assert_allclose(got, np.array(expected) * found.scores[:, None], rtol=1e-6)
    # Every word has a label of its own: a label that is none of them says nothing.
    full = spread_scores(found, np.array([-1, 0, 1, 2], np.int32), 3, 0.6)
    np.testing.assert_allclose(full[1], [0.5 / 3] * 3, rtol=1e-6)
    np.testing.assert_allclose(spread_scores(found, np.array([-1, 0], np.int32), 3, 0)[0], [0.8 / 3] * 3, rtol=1e-6)


def test_labels_are_words_by_any_of_their_names():
    groups = (("sofa", "couch"), ("dining table",), ("sofa",))
    assert find_places(["Couch", "diningtable", "sofa", "cow"], groups).tolist() == [0, 1, 0, -1]
    assert find_places([], groups).tolist() == []


def test_words_that_were_trained(tmp_path, images):
    assert make()._trained is None
    assert make("simseg")._trained.tolist() == [True, False, False]
    assert make("simseg", reading="released")._trained is None
    assert make("simseg", trust=0)._trained is None
    given = make("simseg", trained="Red_Barn,lion")
    assert given._trained.tolist() == [False, False, True]
    assert make("simseg", trained="Red_Barn,lion", reading="released")._trained is None
    path = tmp_path / "trained.txt"
    path.write_text("hound,dog\n")
    listed = make("simseg", trained=str(path))
    assert listed._trained.tolist() == [False, True, False] and path in listed.weights_files
    other = [model.segment(images)[0] for model in (make("simseg", share=0.9), make("simseg", share=0.1))]
    assert other[0].shape == other[1].shape


def test_synonyms_are_names_of_their_own_or_one_text(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("feline, cat, kitten\nlamp post\n")
    model = make(labels=str(path))
    assert model.labels == ("feline", "lamp post") and len(model.text) == 4 and path in model.weights_files
    assert model._places.tolist() == [0, -1]
    assert len(make(labels=str(path), reading="released").text) == 2


def test_words_of_the_background_have_no_label(images):
    model = make(labels="cat", background="wall,floor,sky", trust=0, share=1)
    [answer] = model.segment(images[:1])
    assert set(np.unique(answer)) <= {-1, 0} and len(model.text) == 4


def test_the_mask_prompt_and_the_share_count(images):
    """The same towers: a text's vectors do not depend on the mask prompt, the answers' scores do."""
    learnt, none = make(), make(prompt="none")
    torch.testing.assert_close(learnt.text, none.text)
    assert make("simseg")._network.clip_adapter.clip_model.visual.prompts == 0
    pixels = torch.from_numpy(images[0]).movedim(2, 0).float()
    masks, proposed = torch.zeros(1, 40, 60), torch.full((1, 3), 1 / 3)
    masks[:, :20, :30] = 1
    masks[:, 5:15, 5:25] = 0
    one, other = (model._network.score(pixels, masks, proposed, model.text) for model in (learnt, none))
    assert not torch.allclose(one, other, atol=1e-3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("clip")
    torch.save(make_state(), folder / "clip.pt")
    torch.save({"model": make_ovseg_state(), "trainer": {"iteration": 3}}, folder / "ovseg.pth")
    make_transformers_network().save_pretrained(folder / "hub")
    write_tokenizer(folder / "hub")
    write_tokenizer(folder / "tokenizer")
    return folder


def make_from(files, name="ovseg", **more):
    given = {key: str(files / value) for key, value in more.items() if key in ("clip", "weights", "tokenizer")}
    others = {key: value for key, value in more.items() if key not in given}
    return build(name, ROLE, {"labels": "cat,dog", "proposals": HERE, **given, **others})


def test_files_and_folders(files, images):
    whole = make_from(files, weights="ovseg.pth", tokenizer="tokenizer")
    two = make_from(files, weights="ovseg.pth", clip="clip.pt", tokenizer="tokenizer")
    plain = make_from(files, "simseg", clip="clip.pt", tokenizer="tokenizer")
    folder = make_from(files, "simseg", clip="hub")
    for model in (whole, two, plain, folder):
        [answer] = model.segment(images[:1])
        assert (answer[:20, :30] >= 0).all()
    assert {path.name for path in two.weights_files} == {"ovseg.pth", "clip.pt", "vocab.json", "merges.txt"}
    names = {path.name for path in folder.weights_files}
    assert names == {"config.json", "model.safetensors", "vocab.json", "merges.txt"}
    torch.testing.assert_close(whole.text, two.text)
    exact = make_from(files, "simseg", clip="clip.pt", tokenizer="tokenizer", gelu="exact")
    assert not torch.allclose(exact.text, plain.text, atol=1e-5), "vectors that are kept know the GELU"
    prints = {model.fingerprint() for model in (whole, make_from(files, weights="ovseg.pth", tokenizer="tokenizer"))}
    assert len(prints) == 1
    other = make_from(files, weights="ovseg.pth", tokenizer="tokenizer", proposal_args="score=.5")
    assert other.fingerprint() not in prints, "the proposing model's arguments count"


def test_a_folder_tells_its_gelu_and_its_heads(files, tmp_path):
    folder = tmp_path / "hub"
    folder.mkdir()
    for path in (files / "hub").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    given = {"labels": "cat,dog", "proposals": HERE, "clip": str(folder)}
    quick = build("simseg", ROLE, given)
    write_settings(folder, hidden_act="gelu")
    assert not torch.allclose(build("simseg", ROLE, given).text, quick.text, atol=1e-5)
    write_settings(folder, hidden_act="relu")
    with pytest.raises(HardlookError, match="activations relu") as caught:
        build("simseg", ROLE, given)
    assert "config.json" in str(caught.value)
    write_settings(folder, hidden_act="gelu", num_attention_heads=2)
    with pytest.raises(HardlookError, match="64 channels in 2 heads"):
        build("simseg", ROLE, given)
    (folder / "config.json").write_text(json.dumps({"model_type": "siglip"}))
    with pytest.raises(ModelError, match="'siglip'"):
        build("simseg", ROLE, given)


@pytest.mark.parametrize(
    "given, kind, words",
    [
        ({"clip": "clip.pt", "tokenizer": "tokenizer"}, ModelError, "no mask prompt"),
        ({"weights": "ovseg.pth"}, OptionError, "without the tokenizer"),
        ({"clip": "nothing.pt"}, DataError, "does not exist"),
        ({}, OptionError, "no weights"),
    ],
)
def test_what_is_missing_is_named(files, given, kind, words):
    with pytest.raises(kind, match=words):
        make_from(files, **given)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"weights": "random:x"}, "no seed"),
        ({"clip": "clip.pt"}, "both given"),
        ({"size": "RN50"}, "no CLIP 'RN50'"),
        ({"reading": "paper"}, "ours, released was expected"),
        ({"share": "1.5"}, "share is 1.5"),
        ({"trust": "1"}, "trust is 1"),
        ({"threshold": "0"}, "threshold is 0"),
        ({"points": "0"}, "points is 0"),
        ({"shorter": "900", "longer": "800"}, "sides of 900 and 800"),
        ({"proposals": "deeplabv3-voc"}, "proposes no masks"),
        ({"proposals": "ovseg"}, "proposes no masks"),
        ({"proposal_args": "colour=red"}, "no argument 'colour'"),
    ],
)
def test_wrong_options_are_refused(wrong, words):
    with pytest.raises(HardlookError, match=words):
        build("ovseg", ROLE, {"labels": "cat,dog", "proposals": HERE, **TINY, **wrong})
