"""An encoder of images and texts as a segmenter of free words: dense, by windows, and on proposed masks."""

from __future__ import annotations

import json

import numpy as np
import PIL.Image
import pytest
import tiny_sam

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance import check_model
from hardlook.models.families.zero_shot import ZeroShotSegmenter, list_encoders, list_windows
from hardlook.models.identity import ModelIdentity
from hardlook.models.named_model import NamedModel
from hardlook.models.registry import build, find
from hardlook.models.roles import Instances

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = "cat,red dog,barn"


class Colours:
    """An encoder whose three dimensions are red, green and blue; texts name them."""

    dimension, logit_scale = 3, 10.0

    def encode_images(self, images):
        means = np.array([image.reshape(-1, 3).mean(0) + 1e-3 for image in images], np.float32).reshape(-1, 3)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def encode_text(self, texts):
        return np.array([[word in text for word in ("red", "green", "blue")] for text in texts], np.float32)


class Halves:
    """Proposes the left and the right half of an image, the right one with score .5."""

    labels = ("half",)

    def detect(self, images):
        answers = []
        for image in images:
            masks = np.zeros((2, *image.shape[:2]), bool)
            middle = image.shape[1] // 2
            masks[0, :, :middle], masks[1, :, middle:] = True, True
            boxes = np.zeros((2, 4), np.float32)
            answers.append(Instances(masks, boxes, np.array([1, 0.5], np.float32), np.zeros(2, np.int32)))
        return answers


def make_segmenter(**options):
    inner = NamedModel(Colours(), ModelIdentity("colours", "image-text-encoder", {}, "source"))
    return ZeroShotSegmenter(inner, ("red", "green", "blue"), **options)


def make_image():
    """Red on the left, blue on the right, 40 high and 80 wide."""
    image = np.zeros((40, 80, 3), np.uint8)
    image[:, :40, 0], image[:, 40:, 2] = 200, 200
    return image


def test_each_patch_has_the_label_whose_prompts_are_most_similar(hub_folder, pictures):
    folder = hub_folder("clip")
    templates = ["a photo of a {label}", "the {label}"]
    model = build(f"zero-shot:hf:{folder}", "semantic-segmenter", {"labels": WORDS, "templates": templates})
    encoder = build("clip", "image-text-encoder", {"path": folder})
    network = transformers.CLIPModel.from_pretrained(folder).eval()
    texts = [encoder.encode_text([t.replace("{label}", word) for t in templates]).mean(0) for word in WORDS.split(",")]
    texts = np.stack([text / np.linalg.norm(text) for text in texts])
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    for image, labels in zip(pictures, model.segment(pictures), strict=True):
        pixels = processor(
            PIL.Image.fromarray(image), size={"height": 32, "width": 32}, do_center_crop=False, return_tensors="pt"
        ).pixel_values
        vision = network.vision_model
        with torch.inference_mode():
            hidden = vision(pixels, output_hidden_states=True).hidden_states[-2]
            last = vision.encoder.layers[-1]
            hidden = hidden + last.self_attn.out_proj(last.self_attn.v_proj(last.layer_norm1(hidden)))
            hidden = hidden + last.mlp(last.layer_norm2(hidden))
            cells = network.visual_projection(vision.post_layernorm(hidden[:, 1:]))[0]
            cells = torch.nn.functional.normalize(cells, dim=1)
            maps = (torch.from_numpy(texts).float() @ cells.T).reshape(1, 3, 4, 4)
            large = torch.nn.functional.interpolate(maps, size=image.shape[:2], mode="bilinear", align_corners=False)
        assert (labels == large[0].argmax(0).numpy()).mean() > 0.995


@pytest.mark.parametrize("way", ["hf", "windows", "siglip"])
def test_the_contract_of_a_semantic_segmenter(way, hub_folder):
    if way == "windows":
        name, args = "zero-shot:clip", {"labels": WORDS, "encoder_args": f"path={hub_folder('clip')}"}
    else:
        name, args = f"zero-shot:hf:{hub_folder('siglip' if way == 'siglip' else 'clip')}", {"labels": WORDS}
    assert find(name).card.roles == ("semantic-segmenter", "instance-segmenter")
    model = build(name, "semantic-segmenter", args)
    assert [finding.line() for finding in check_model(model, "semantic-segmenter") if not finding.passed] == []
    assert {"config.json", "model.safetensors"} <= {path.name for path in model.weights_files}


def test_windows_say_what_they_show():
    model = make_segmenter(window=0.5)
    [labels] = model.segment([make_image()])
    assert (labels[:, :30] == 0).all() and (labels[:, 50:] == 2).all()
    assert list_windows(80, 20) == [0, 10, 20, 30, 40, 50, 60]
    assert list_windows(25, 20)[-1] == 5  # the last window ends with the image


def test_a_pixel_below_the_threshold_has_no_label():
    grey = np.full((20, 20, 3), 90, np.uint8)
    assert (make_segmenter().segment([grey])[0] >= 0).all()
    assert (make_segmenter(threshold=0.5).segment([grey])[0] == -1).all()
    red = make_image()[:, :40]
    assert (make_segmenter(threshold=0.5).segment([red])[0] == 0).all()


def test_proposed_masks_are_named_by_their_crops():
    proposals = NamedModel(Halves(), ModelIdentity("halves", "instance-segmenter", {}, "source"))
    [found] = make_segmenter(proposals=proposals).detect([make_image()])
    assert found.labels.tolist() == [0, 2]
    assert found.boxes.tolist() == [[0, 0, 40, 40], [40, 0, 80, 40]]
    # Cosines 1, 0 and 0, times 10: the chance of the label; the right half's proposal has score .5.
    sure = np.exp(10) / (np.exp(10) + 2)
    assert np.allclose(found.scores, [sure, sure / 2], atol=1e-3)
    [sure_ones] = make_segmenter(proposals=proposals, threshold=0.7).detect([make_image()])
    assert sure_ones.labels.tolist() == [0]


def test_what_is_around_a_mask_is_grey_or_the_image():
    class Ring:
        labels = ("ring",)

        def detect(self, images):
            masks = np.ones((1, *images[0].shape[:2]), bool)
            masks[0, 4:-4, 4:-4] = False
            return [Instances(masks, np.zeros((1, 4), np.float32), np.ones(1, np.float32), np.zeros(1, np.int32))]

    image = np.zeros((40, 40, 3), np.uint8)
    image[..., 0] = 200  # a red ring around blue
    image[4:-4, 4:-4] = (0, 0, 255)
    proposals = NamedModel(Ring(), ModelIdentity("ring", "instance-segmenter", {}, "source"))
    assert make_segmenter(proposals=proposals).detect([image])[0].labels.tolist() == [0]
    assert make_segmenter(proposals=proposals, surrounding="image").detect([image])[0].labels.tolist() == [2]


def test_a_promptable_segmenter_proposes_from_a_grid_of_points(hub_folder, tmp_path, pictures):
    tiny_sam.network("sam").save_pretrained(tmp_path)
    args = {"labels": WORDS, "proposals": f"hf:{tmp_path}", "points": "3", "proposal_args": "multimask=never"}
    model = build(f"zero-shot:hf:{hub_folder('clip')}", "instance-segmenter", args)
    [found] = model.detect(pictures[:1])
    assert 0 < len(found.scores) <= 9
    assert (np.diff(found.scores) <= 0).all()
    sam = build(f"hf:{tmp_path}", "promptable-segmenter", {"multimask": "never"})
    height, width = pictures[0].shape[:2]
    clicks = [
        tiny_sam.prompt(((x + 0.5) * width / 3 - 0.5, (y + 0.5) * height / 3 - 0.5, True))
        for y in range(3)
        for x in range(3)
    ]
    masks = {answer.mask.tobytes() for answer in sam.open(pictures[0]).predict(clicks)}
    assert {mask.tobytes() for mask in found.masks} <= masks
    assert [finding.line() for finding in check_model(model, "instance-segmenter") if not finding.passed] == []
    names = [path.parent for path in model.weights_files if path.name == "model.safetensors"]
    assert set(names) == {hub_folder("clip"), tmp_path}


def test_maskclip_is_the_dense_segmenter_of_an_encoder_by_argument(hub_folder, pictures):
    folder = hub_folder("clip")
    model = build("maskclip", "semantic-segmenter", {"encoder": f"hf:{folder}", "labels": WORDS})
    dense = build(f"zero-shot:hf:{folder}", "semantic-segmenter", {"labels": WORDS})
    for one, other in zip(model.segment(pictures), dense.segment(pictures), strict=True):
        assert np.array_equal(one, other)
    assert [finding.line() for finding in check_model(model, "semantic-segmenter") if not finding.passed] == []
    given = {"encoder": "clip", "labels": WORDS, "encoder_args": f"path={folder}", "window": "1"}
    assert build("maskclip", "semantic-segmenter", given).conduct.startswith("windows of 1")
    with pytest.raises(ModelError, match="needs an image-text-encoder"):
        build("maskclip", "semantic-segmenter", {"encoder": "grabcut", "labels": WORDS})
    with pytest.raises(ModelError, match="needs a value for 'encoder'"):
        build("maskclip", "semantic-segmenter", {"labels": WORDS})


def test_errors_name_the_remedy(hub_folder, pictures):
    name = f"zero-shot:hf:{hub_folder('clip')}"
    with pytest.raises(OptionError, match="needs the words"):
        build(name, "semantic-segmenter")
    with pytest.raises(ModelError, match="no masks to name") as caught:
        build(name, "instance-segmenter", {"labels": WORDS}).detect(pictures)
    assert "proposals=" in caught.value.remedy
    with pytest.raises(ModelError, match="needs an image-text-encoder"):
        find(f"zero-shot:hf:{hub_folder('dinov2')}")
    with pytest.raises(OptionError, match="window is 0"):
        build(name, "semantic-segmenter", {"labels": WORDS, "window": "0"})


def test_the_fingerprint_covers_both_models(hub_folder, tmp_path):
    tiny_sam.network("sam").save_pretrained(tmp_path)
    name, args = f"zero-shot:hf:{hub_folder('clip')}", {"labels": WORDS}
    plain = build(name, "semantic-segmenter", args).fingerprint()
    assert plain == build(name, "semantic-segmenter", args).fingerprint()
    proposing = {**args, "proposals": f"hf:{tmp_path}", "proposal_args": "multimask=never"}
    assert plain != build(name, "semantic-segmenter", proposing).fingerprint()
    assert plain != build(name, "semantic-segmenter", {**args, "encoder_args": "batch=2"}).fingerprint()


def test_encoders_are_listed():
    assert "clip" in list_encoders()
    assert list_encoders("nothing*") == []


def run_free_words(hardlook, hub_folder, out, *more):
    """`hardlook run open-miou` with a model that is asked for words which the planted world does not all have."""
    words = ["--model", f"zero-shot:hf:{hub_folder('clip')}", "--model-arg", "labels=cat,dog,car,glorp,red barn"]
    answer = hardlook("run", "open-miou", *words, "--unknown", "zero", "--resamples", 20, "--out", out, *more)
    assert answer.code == 0, answer.err
    return json.loads((out / "scores.json").read_text())


def test_free_words_are_scored_in_one_command(hardlook, hub_folder, tmp_path):
    scores = run_free_words(hardlook, hub_folder, tmp_path / "a", "--scenes", 3)
    names = {score["name"]: score["value"] for score in scores["scores"] if not score.get("slice")}
    assert 0 <= names["miou"] <= names["open-miou"] <= 1
    report = (tmp_path / "a" / "report.html").read_text()
    assert "glorp" in report and "red barn" in report
    run = json.loads((tmp_path / "a" / "run.json").read_text())
    model = json.dumps(run)
    assert "a photo of a {label}" in model and "glorp" in model  # prompts and words are recorded
    assert run_free_words(hardlook, hub_folder, tmp_path / "b", "--scenes", 3) == scores
    # Words are named for the records' sake, too: a label that the model has and the options have not.
    named = run_free_words(
        hardlook, hub_folder, tmp_path / "c", "--scenes", 3, "--pred-labels", "cat,dog,car,glorp,red barn"
    )
    assert [one["value"] for one in named["scores"]] == [one["value"] for one in scores["scores"]]


def test_a_word_without_a_sense_stops_the_run_before_it_begins(hardlook, hub_folder, tmp_path):
    model = ["--model", f"zero-shot:hf:{hub_folder('clip')}", "--model-arg", "labels=cat,glorp"]
    answer = hardlook("run", "open-miou", *model, "--pred-labels", "cat,glorp", "--scenes", 2, "--out", tmp_path / "a")
    assert answer.code != 0 and "glorp" in answer.err
    assert not list((tmp_path / "a").glob("records/*"))


def test_processes_give_the_same_scores(hardlook, hub_folder, tmp_path, forked_workers):
    one = run_free_words(hardlook, hub_folder, tmp_path / "a", "--scenes", 4)
    two = run_free_words(hardlook, hub_folder, tmp_path / "b", "--scenes", 4, "--engine", "processes", "--workers", 2)
    assert one == two


def test_instances_of_free_words_are_scored(hardlook, hub_folder, tmp_path):
    tiny_sam.network("sam").save_pretrained(tmp_path / "sam")
    words = ["--model", f"zero-shot:hf:{hub_folder('clip')}", "--model-arg", "labels=cat,dog,glorp"]
    proposals = ["--model-arg", f"proposals=hf:{tmp_path / 'sam'}", "--model-arg", "points=2"]
    answer = hardlook(
        "run",
        "open-ap",
        *words,
        *proposals,
        "--unknown",
        "zero",
        "--scenes",
        2,
        "--resamples",
        0,
        "--out",
        tmp_path / "run",
    )
    assert answer.code == 0, answer.err
    names = [score["name"] for score in json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]]
    assert "open-ap" in names


@pytest.mark.real
def test_free_words_on_coco(hardlook, hub_folder, shared_data, tmp_path):
    coco = shared_data / "data" / "coco100"
    (tmp_path / "masks").mkdir()
    for path in sorted((coco / "semantic").iterdir())[:8]:
        (tmp_path / "masks" / path.name).write_bytes(path.read_bytes())
    answer = hardlook(
        "run", "open-miou", "--model", f"zero-shot:hf:{hub_folder('clip')}", "--model-arg", "labels=coco133",
        "--data", f"images={coco / 'images'}", "--data", f"masks={tmp_path / 'masks'}", "--labels", "coco133",
        "--numbering", "category-id", "--ignore", 0, "--resamples", 20, "--out", tmp_path / "run",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    values = {score["name"]: score["value"] for score in scores if not score.get("slice")}
    assert 0 < values["miou"] < values["open-miou"] < 1  # random weights: few right, and near misses count
    assert "sky-other-merged" in (tmp_path / "run" / "report.html").read_text()
