from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.click_names import (
    FullStem,
    format_full_stem,
    format_instance_stem,
    parse_full_stem,
    parse_later_stem,
)
from hardlook.errors import DataError

NUMBERS = st.integers(0, 10**6)

IMAGES = st.text("ab._# -é", min_size=1, max_size=12)

METHODS = st.text("abc-2", min_size=1, max_size=6)


def test_the_spec_s_forms() -> None:
    assert parse_full_stem("IMG") == FullStem("IMG")
    assert parse_full_stem("IMG_______4") == FullStem("IMG", "4")
    assert parse_full_stem("IMG_______4_sam_fp_mobile_12") == FullStem("IMG", "4", "sam", "fp", "mobile", 12)
    assert parse_full_stem("IMG_______4_mivos_fn") == FullStem("IMG", "4", "mivos", "fn")
    # Six underscores are part of an image's name, and an eighth too.
    assert parse_full_stem("IMG______4") == FullStem("IMG______4")
    assert parse_full_stem("IMG________4") == FullStem("IMG_", "4")
    # Only MiVOS leaves out device and number.
    assert parse_full_stem("IMG_sam_fn") == FullStem("IMG_sam_fn")


@given(IMAGES, st.one_of(st.just(""), NUMBERS.map(str)), METHODS, st.sampled_from(["fn", "fp"]), NUMBERS)
def test_names_read_back(image: str, number: str, method: str, error: str, count: int) -> None:
    for parts in (
        FullStem(image, number),
        FullStem(image, number, method, error, "pc", count),
        FullStem(image, number, method, error, "mobile", count),
        FullStem(image, number, "mivos", error),
    ):
        name = format_full_stem(parts)
        assert parse_full_stem(name, parts.click_type) == parts
        assert name.startswith(format_instance_stem(image, number))


@pytest.mark.parametrize(
    "parts",
    [
        FullStem(""),
        FullStem("a", "x"),
        FullStem("a_______3"),
        FullStem("a", "", "two_words", "fn", "pc", 1),
        FullStem("a", "", "sam", "fn"),
        FullStem("a", "", "sam", "fn", "tablet", 1),
    ],
)
def test_names_that_would_not_read_back_are_refused(parts: FullStem) -> None:
    with pytest.raises(DataError, match=r"has no full stem|not a full stem of"):
        format_full_stem(parts)


def test_the_click_type_decides_what_an_ending_means() -> None:
    assert parse_full_stem("a_mivos_fn", "first").image == "a_mivos_fn"
    with pytest.raises(DataError, match="expected click type fp, got a full stem of type fn"):
        parse_full_stem("a_mivos_fn", "fp")
    with pytest.raises(DataError, match="click type fn"):
        parse_full_stem("a", "fn")
    with pytest.raises(DataError):
        parse_full_stem("")


@given(IMAGES, st.one_of(st.just(""), NUMBERS.map(str)), st.from_regex(r"[a-c][a-c_2]{0,7}", fullmatch=True), NUMBERS)
def test_a_known_instance_tells_any_method(image: str, number: str, method: str, count: int) -> None:
    parts = FullStem(image, number, method, "fp", "mobile", count)
    assert parse_later_stem(str(parts), format_instance_stem(image, number)) == parts
    assert parse_later_stem(str(parts), format_instance_stem(image, number) + "x") is None


@pytest.mark.real
@pytest.mark.parametrize(("dataset", "instances"), [("GrabCut", 50), ("Berkeley", 100), ("DAVIS", 345), ("COCO", 800)])
def test_published_stems(shared_data: Path, dataset: str, instances: int) -> None:
    path = shared_data / "reference" / "rclicks" / f"{dataset}_per_image.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        stems = {(row["full_stem"], row["click_type"]) for row in csv.DictReader(stream)}
    parsed = {name: parse_full_stem(name, click_type) for name, click_type in stems}
    assert all(format_full_stem(parts) == name and parse_full_stem(name) == parts for name, parts in parsed.items())
    first = {parts.image for parts in parsed.values() if parts.click_type == "first"}
    assert len(first) == instances
    # Every error is one of a known image.
    assert {parts.image for parts in parsed.values()} == first
    assert {parts.method for parts in parsed.values()} == {"", "ritm", "sam", "simple", "mivos"}
