"""The family `hf`: roles by configuration, options of each kind, promptable models, refusals."""

from __future__ import annotations

import functools
import json
import shutil

import numpy as np
import pytest
import tiny_sam

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.models.arguments import convert_arguments
from hardlook.models.conformance import check_model
from hardlook.models.families import load_family
from hardlook.models.families.transformers_models import find_kind
from hardlook.models.registry import build, find, resolve

pytest.importorskip("transformers")


@pytest.mark.parametrize(
    ("model_type", "architecture", "roles"),
    [
        ("segformer", "SegformerForSemanticSegmentation", ("semantic-segmenter",)),
        ("segformer", "SegformerForImageClassification", ("encoder",)),
        ("dpt", "DPTForDepthEstimation", ("encoder",)),
        ("rt_detr_v2", "RTDetrV2ForObjectDetection", ("instance-segmenter",)),
        ("oneformer", "", ("semantic-segmenter", "instance-segmenter", "panoptic-segmenter")),
        ("siglip2", "Siglip2Model", ("image-text-encoder", "encoder")),
        ("sam2_video", "Sam2VideoModel", ("promptable-segmenter",)),
        ("owlv2", "Owlv2ForObjectDetection", ("instance-segmenter",)),
    ],
)
def test_roles_come_from_the_configuration(model_type, architecture, roles, tmp_path):
    config = {"model_type": model_type, "architectures": [architecture] if architecture else None}
    assert find_kind(config).roles == roles
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert find(f"hf:{tmp_path}").card.roles == roles
    assert set(roles) <= set(load_family("hf").roles)


@pytest.mark.parametrize("family", ["sam", "sam_hq", "sam2"])
def test_promptable_models_are_the_built_in_ones(family, tmp_path):
    tiny_sam.network(family).save_pretrained(tmp_path)
    image = tiny_sam.picture(48, 64)
    prompts = tiny_sam.prompts(48, 64, 2, 3)
    ours = build(f"hf:{tmp_path}", "promptable-segmenter", {"multimask": "first"})
    name = {"sam": "sam", "sam_hq": "sam-hq", "sam2": "sam2"}[family]
    theirs = build(name, "promptable-segmenter", {"path": tmp_path, "multimask": "first"})
    for one, other in zip(ours.open(image).predict(prompts), theirs.open(image).predict(prompts), strict=True):
        assert np.array_equal(one.mask, other.mask)
    assert {"torch", "transformers"} <= set(ours.libraries)
    if family == "sam":
        assert [finding.line() for finding in check_model(ours, "promptable-segmenter") if not finding.passed] == []


def test_texts_of_the_command_line_are_converted():
    given = {"labels": "cat,dog", "threshold": ".3", "batch": "4", "multimask": "none"}
    arguments = convert_arguments("hf:x", functools.partial(load_family("hf").build, "x"), given)
    assert arguments == {"labels": ("cat", "dog"), "threshold": 0.3, "batch": 4, "multimask": None}


def test_options_that_a_model_does_not_have_are_refused(hub_folder):
    name = f"hf:{hub_folder('segformer')}"
    with pytest.raises(OptionError, match="a segformer model has no labels"):
        build(name, "semantic-segmenter", {"labels": "cat"})
    with pytest.raises(OptionError, match="no multimask"):
        build(name, "semantic-segmenter", {"multimask": "always"})
    with pytest.raises(OptionError, match="not a probability"):
        build(f"hf:{hub_folder('clipseg')}", "semantic-segmenter", {"labels": "cat", "threshold": "2"})
    with pytest.raises(OptionError, match="batch is 0"):
        build(name, "semantic-segmenter", {"batch": "0"})
    with pytest.raises(ModelError, match="does not have the role encoder; it is a semantic-segmenter"):
        resolve(name, "encoder")


def test_code_of_a_repository_is_never_run(tmp_path):
    marker = tmp_path / "ran"
    (tmp_path / "mine.py").write_text(f"open({str(marker)!r}, 'w')")
    config = {"model_type": "mine", "architectures": ["Mine"], "auto_map": {"AutoModel": "mine.Mine"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="trust_remote_code stays off"):
        build(f"hf:{tmp_path}", "encoder")
    assert not marker.exists()


def test_damaged_folders_are_named(hub_folder, tmp_path):
    folder = shutil.copytree(hub_folder("vit"), tmp_path / "copy")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match="how images are prepared"):
        build(f"hf:{folder}", "encoder")
    (folder / "model.safetensors").unlink()
    with pytest.raises(DataError):
        build(f"hf:{folder}", "encoder")
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match="not a readable configuration"):
        find(f"hf:{folder}")
    (folder / "config.json").write_text('{"model_type": "nothing-of-this-name"}')
    with pytest.raises(ModelError, match="knows no 'nothing-of-this-name' model"):
        build(f"hf:{folder}", "encoder")
    with pytest.raises(DataError, match="does not exist"):
        find(f"hf:{tmp_path}/nowhere/at/all")
    with pytest.raises(ModelError, match="which model of hf"):
        find("hf:")
