"""`hardlook clicks ablation`, tiny: each network is that of `clicks train`, and the published table is beside it."""

import csv
import json

import pytest

from hardlook.errors import OptionError
from hardlook.rclicks.published import published_numbers
from hardlook.rclicks.training.ablation import parse_sigmas

SMALL = ("--scenes", 5, "--epochs", 1, "--width", "small", "--size", 64, "--quiet")


def test_every_sigma_is_trained_evaluated_and_kept(hardlook, tmp_path):
    pytest.importorskip("torch")
    out = tmp_path / "out"
    words = ("clicks", "ablation", *SMALL, "--draws", 2, "--out", out, "--json")
    first = json.loads(hardlook(*words, "--sigma", "20").out)
    alone = tmp_path / "alone"
    assert hardlook("clicks", "train", *SMALL, "--sigma", 20, "--out", alone).code == 0
    kept = (out / "sigma-20" / "clickability.safetensors").read_bytes()
    assert kept == (alone / "clickability.safetensors").read_bytes()
    both = json.loads(hardlook(*words, "--sigma", "20,2").out)
    assert [row["sigma"] for row in both["rows"]] == [2, 20] and both["rows"][1] == first["rows"][0]
    assert (out / "sigma-2" / "clickability.safetensors").read_bytes() != kept
    assert len((out / "sigma-20" / "history.jsonl").read_text().splitlines()) == 1
    with (out / "table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["nss"]) for row in rows] == pytest.approx([row["nss"]["value"] for row in both["rows"]], rel=1e-6)
    printed = {str(row["sigma"]): row["KS"] for row in both["published"]}
    assert len(printed) == 12 and printed["5"] == 0.55
    assert "0.55" in (out / "page.html").read_text()
    for metric, best in (("ks", max), ("pl1", min), ("wd", min), ("nss", max), ("pde", max)):
        values = [row[metric]["value"] for row in both["rows"]]
        sigmas = " and ".join(f"{row['sigma']:g}" for row in both["rows"] if row[metric]["value"] == best(values))
        assert f"{metric.upper()} {sigmas}" in both["in_words"][0]


def test_sigmas_are_the_paper_s_or_those_that_are_given():
    assert parse_sigmas("") == tuple(float(row) for row in published_numbers().rows("table-7"))
    for text, why in (("1,two", "not numbers"), ("0,1", "above 0"), ("nan", "above 0"), ("inf", "above 0")):
        with pytest.raises(OptionError, match=why):
            parse_sigmas(text)
