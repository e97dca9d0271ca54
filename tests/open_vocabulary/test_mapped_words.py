"""Free words with synonyms get senses by `hardlook labels map`, and all three benchmarks use them."""

import csv
import json

import pytest

from hardlook.models.planted.segmenters import PlantedInstances, PlantedPanoptic, PlantedSegmenter

LINES = {"cat": "kitten, kitty, pussy", "barn": "red barn; stable"}


def rename(labels):
    """The planted labels, two of them in other words."""
    return tuple({name: text.replace(";", ",").split(",")[0] for name, text in LINES.items()}.get(label, label)
                 for label in labels)  # fmt: skip


class Segmenter(PlantedSegmenter):
    """The truth of planted scenes in other words."""

    labels = rename(PlantedSegmenter.labels)


class Detector(PlantedInstances):
    """The objects of planted scenes in other words."""

    labels = rename(PlantedInstances.labels)


class Panoptic(PlantedPanoptic):
    """The segments of planted scenes in other words."""

    labels = rename(PlantedPanoptic.labels)


@pytest.fixture
def map_words(hardlook, tmp_path):
    """A function from senses of the two words to the table of the model's vocabulary."""
    lines = [LINES.get(name, name) for name in PlantedSegmenter.labels]
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n")

    def choose(**senses):
        table = tmp_path / "words.csv"
        table.unlink(missing_ok=True)
        assert hardlook("labels", "map", tmp_path / "words.txt", "--out", table, "--no-ask").code == 0
        with table.open(encoding="utf-8") as stream:
            rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
        with table.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            # Words of the truth need none: it has their senses.
            writer.writerows({**row, "synset": senses.get(row["name"], ""), "status": ""} for row in rows)
        # Run again, the command keeps what is chosen, with the synonyms.
        assert hardlook("labels", "map", tmp_path / "words.txt", "--out", table, "--no-ask").code == 0
        assert "kitten,kitty|pussy" in table.read_text()
        return table

    return choose


@pytest.mark.parametrize(
    ("benchmark", "model", "closed", "opened"),
    [
        ("open-miou", "Segmenter", "miou", "open-miou"),
        ("open-ap", "Detector", "ap", "open-ap"),
        ("open-pq", "Panoptic", "pq", "open-pq"),
    ],
)
def test_chosen_senses_change_the_open_score_alone(hardlook, map_words, tmp_path, benchmark, model, closed, opened):
    found = {}
    senses = {"near": ("kitten.n.01", "barn.n.01"), "far": ("cat-o'-nine-tails.n.01", "barn.n.02")}
    for name, (kitten, barn) in senses.items():
        table = map_words(**{"kitten": kitten, "red barn": barn})
        words = ["--model", f"{__name__}:{model}", "--pred-labels", table, "--scenes", "6", "--resamples", "0"]
        answer = hardlook("run", benchmark, *words, "--out", tmp_path / name)
        assert answer.code == 0, answer.err
        scores = json.loads((tmp_path / name / "scores.json").read_text())["scores"]
        values = {score["name"]: score["value"] for score in scores if not score.get("slice")}
        found[name] = values[closed], values[opened]
    assert found["near"][0] == found["far"][0]
    assert found["near"][1] > found["far"][1], "a kitten is nearer to a cat than a whip is"


def test_words_without_senses_are_sent_to_the_command(hardlook, map_words, tmp_path):
    map_words()
    words = ["--model", f"{__name__}:Segmenter", "--pred-labels", tmp_path / "words.txt", "--scenes", "2"]
    answer = hardlook("run", "open-miou", *words, "--out", tmp_path / "run")
    assert answer.code != 0 and "kitten" in answer.err and "hardlook labels map" in answer.err
