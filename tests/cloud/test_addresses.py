"""Addresses are known in all their spellings, and others are refused: none becomes a local folder."""

from pathlib import Path

import pytest

from hardlook.cloud import addresses
from hardlook.errors import OptionError


@pytest.mark.parametrize("text", ["s3://bucket/a/b", "s3://bucket/a/b/", "S3://bucket/a/b", "s3:/bucket/a/b"])
def test_an_address_is_known_as_text_and_as_a_path(text):
    assert addresses.find_address(text) == "s3://bucket/a/b"
    assert addresses.find_address(Path(text)) == "s3://bucket/a/b"


@pytest.mark.parametrize("text", ["runs/first", "/tmp/s3:/b", "C:/runs", "run:1", "a/s3://b", "module:Class", "."])
def test_paths_stay_paths(text):
    assert addresses.find_address(text) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("s4://bucket/run", "s4:// is not a known kind"),
        ("https://host/run", "https:// is not a known kind"),
        ("file:///tmp/run", "file: addresses are not read"),
        ("s3://", "no bucket"),
        ("s3:bucket/run", "no bucket"),
        ("s3://bucket/../other", "no empty parts"),
        ("s3://bucket//run", "no empty parts"),
    ],
)
def test_what_is_no_address_is_refused_in_a_sentence(text, what):
    with pytest.raises(OptionError, match=what) as caught:
        addresses.find_address(text)
    assert caught.value.remedy and caught.value.file == text


def test_the_place_of_a_copy_gives_its_address_back(monkeypatch, tmp_path):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    copy = addresses.locate_copy("s3://bucket/VOC 2012/é", "data")
    assert copy == tmp_path / "addresses" / "data" / "s3" / "bucket" / "VOC 2012" / "é"
    assert addresses.find_address(copy) == "s3://bucket/VOC 2012/é"
    assert addresses.find_run_address(copy) is None, "data are never written"
    run = addresses.locate_copy("gs://b/run", "runs") / "records"
    assert addresses.find_run_address(run) == "gs://b/run/records"
    named = addresses.name_addresses({"data": {"voc": str(copy)}, "seed": 1, "more": [str(run), "s3"]})
    assert named == {"data": {"voc": "s3://bucket/VOC 2012/é"}, "seed": 1, "more": ["gs://b/run/records", "s3"]}
    assert addresses.replace_copies(f"see {run}/a.parquet.") == "see gs://b/run/records/a.parquet."
