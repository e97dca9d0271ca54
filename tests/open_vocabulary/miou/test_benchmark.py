import json

import numpy as np
import polars as pl
import pytest
from command_line import CommandLine
from small_runs import small_run

from hardlook.errors import DataError, OptionError
from hardlook.harness.calibration import calibrate
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.scoring import score_run
from hardlook.metrics.open_miou import open_miou

CHECK_A = ([0, 0, 0, 0, 1, 1, 1, 2, 2, 255], [0, 0, 0, 1, 1, 1, 0, 2, 1, 0])

CHECK_B = (CHECK_A[0], [0, 0, 0, 1, 1, 1, 0, 2, 3, 0])

S_A = [[1, 0.5, 0.25], [0.5, 1, 0.2], [0.25, 0.2, 1]]

S_B = [[1, 0.5, 0.25, 0.1], [0.5, 1, 0.2, 0.1], [0.25, 0.2, 1, 0.5], [0.1, 0.1, 0.5, 1]]


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


def write_check(folder, check, similarity):
    """One image as label maps on disk, names, and the similarity as CSV."""
    names = ["alpha", "beta", "gamma", "delta"][: len(similarity)]
    for name, values in zip(("gt", "pred"), check, strict=True):
        (folder / name).mkdir(parents=True)
        np.save(folder / name / "image.npy", np.array([values]))
    (folder / "labels.txt").write_text("\n".join(names))
    rows = [",".join([name, *map(str, row)]) for name, row in zip(names, similarity, strict=True)]
    (folder / "S.csv").write_text("\n".join([",".join(["", *names]), *rows]))
    words = ["run", "open-miou", "--gt", folder / "gt", "--pred", folder / "pred", "--labels", folder / "labels.txt"]
    return [*words, "--similarity", folder / "S.csv", "--out", folder / "run", "--quiet", "--json"]


def test_the_golden_numbers_through_the_command_line(hardlook, tmp_path):
    answer = hardlook(*write_check(tmp_path, CHECK_A, S_A))
    assert answer.code == 0, answer.err
    values = {row["name"]: row["value"] for row in json.loads(answer.out)["scores"] if not row["slice"]}
    expected = {"miou": 0.5, "open-miou": 0.653058, "open-fw-iou": 0.672811, "open-pixel-accuracy": 0.8,
                "open-mean-accuracy": 0.769444}  # fmt: skip
    assert {name: round(values[name], 6) for name in expected} == expected
    by_class = [row["value"] for row in json.loads(answer.out)["scores"] if row["name"] == "open-iou"]
    assert by_class == pytest.approx([0.777778, 0.581395, 0.6], abs=1e-6)


def test_a_class_that_is_only_predicted(hardlook, tmp_path):
    answer = hardlook(*write_check(tmp_path, CHECK_B, S_B))
    values = {row["name"]: row["value"] for row in json.loads(answer.out)["scores"] if not row["slice"]}
    assert values["open-miou"] == pytest.approx(0.560516, abs=1e-6)


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("open-miou", {"scenes": 24, "resamples": 100})


def test_scores_equal_the_metric_on_the_whole_confusion(rehearsal):
    from hardlook.open_vocabulary.label_similarity import compute_label_similarity
    from hardlook.open_vocabulary.miou.evaluation import sum_pairs
    from hardlook.open_vocabulary.record_columns import read_label_names

    records = rehearsal.records("planted-segmenter", {"sibling": 0.4, "stranger": 0.2})
    scorecard = rehearsal.benchmark.score(records, rehearsal.options)
    matrix = compute_label_similarity(read_label_names(records), rehearsal.options).matrix
    result = open_miou(sum_pairs(records).table(), matrix)
    assert scorecard.get("open-miou").value == pytest.approx(result.open.miou)
    assert scorecard.get("miou").value == pytest.approx(result.vanilla.miou)
    assert scorecard.get("open-gain").value == pytest.approx(result.open.miou - result.vanilla.miou)
    assert scorecard.get("open-miou", measure="path").value == pytest.approx(result.open.miou)


def test_identity_similarity_gives_the_vanilla_scores(tmp_path):
    done = small_open_run(tmp_path, given={"measure": "identity"}, args={"stranger": 0.5})
    card = done.scored.scorecard
    for name in ("miou", "pixel-accuracy", "mean-accuracy", "fw-iou"):
        assert card.get(f"open-{name}").value == pytest.approx(card.get(name).value)
    assert card.get("open-gain").value == pytest.approx(0, abs=1e-12)


def small_open_run(out, given=None, args=None, **more):
    given = {"scenes": 12, "resamples": 50, **(given or {})}
    return launch("open-miou", out=out, model="planted-segmenter", model_args=args or {}, given=given, **more)


def test_a_stored_run_is_rescored_under_any_measure_without_the_model(tmp_path, monkeypatch):
    small_open_run(tmp_path, args={"sibling": 0.5})
    monkeypatch.setattr("hardlook.models.registry.build", lambda *a, **k: pytest.fail("the model was built"))
    values = {}
    for measure in ("path", "wup", "lin", "lesk"):
        card = score_run(RunFolder(tmp_path), {"measure": measure}).scorecard
        values[measure] = card.get("open-miou").value
        assert card.get("open-miou", measure=measure).value == pytest.approx(values[measure])
        assert ("measure", measure) in [(reading.name, reading.value) for reading in card.readings]
    assert len(set(values.values())) == 4
    assert values["wup"] > values["path"]


def test_seen_and_unseen_with_their_harmonic_mean(tmp_path):
    (tmp_path / "sets.json").write_text(json.dumps({"seen": ["cat", "dog", "car"], "unseen": ["bus", "owl"]}))
    done = small_open_run(tmp_path / "run", given={"class_sets": tmp_path / "sets.json"}, args={"sibling": 0.4})
    seen, unseen, both = (
        done.scored.scorecard.get("open-miou", classes=name).value for name in ("seen", "unseen", "harmonic mean")
    )
    assert both == pytest.approx(2 * seen * unseen / (seen + unseen))


@pytest.mark.parametrize(
    ("content", "message"),
    [('["cat"]', "not a table of class sets"), ('{"seen": ["quark"]}', "1 classes of the set 'seen' are not labels")],
)
def test_class_sets_that_do_not_fit(tmp_path, content, message):
    (tmp_path / "sets.json").write_text(content)
    with pytest.raises(DataError, match=message):
        small_open_run(tmp_path / "run", given={"class_sets": tmp_path / "sets.json"})


def test_things_and_stuff(rehearsal):
    card = rehearsal.score("planted-segmenter", {"stranger": 0.5})
    assert card.get("miou", kind="stuff").value == 1.0
    assert card.get("miou", kind="things").value < card.get("miou").value
    assert card.get("open-miou", kind="things").interval is not None


def test_the_most_costly_confusions_are_what_was_confused(rehearsal):
    records = rehearsal.records("planted-segmenter", {"stranger": 1.0})
    scorecard = rehearsal.benchmark.score(records, rehearsal.options)
    pairs = {(s.slice["true"], s.slice["called"]) for s in scorecard.scores if s.name == "confused-pixels"}
    assert ("cat", "car") in pairs
    for true, called in pairs:
        hard = scorecard.get("confused-pixels", true=true, called=called).value
        assert 0 <= scorecard.get("unforgiven-pixels", true=true, called=called).value <= hard


def test_words_nobody_mapped_are_never_guessed(tmp_path):
    write_check(tmp_path, CHECK_A, S_A)
    given = {"gt": tmp_path / "gt", "pred": tmp_path / "pred", "labels": str(tmp_path / "names.txt")}
    (tmp_path / "names.txt").write_text("glorp\nblick\nwug\n")
    with pytest.raises((DataError, OptionError), match="glorp"):
        launch("open-miou", out=tmp_path / "a", given=given)
    done = launch("open-miou", out=tmp_path / "b", given={**given, "unknown": "zero"})
    assert done.scored.scorecard.get("open-gain").value == pytest.approx(0, abs=1e-12)
    assert [note.count for note in done.scored.scorecard.noted] == [3]
    assert done.scored.scorecard.left_out == ()


def test_calibration():
    calibration = calibrate("open-miou", {"scenes": 96, "resamples": 0})
    assert calibration.passed, [(c.dial.name, c.dial.score, c.spearman, c.score_range) for c in calibration.curves]


def test_engines_agree(tmp_path, forked_workers):
    from hardlook.harness.runs.engines import EngineOptions
    from hardlook.harness.runs.launch import RunSettings

    small_open_run(tmp_path / "a", args={"sibling": 0.5})
    small_open_run(tmp_path / "b", args={"sibling": 0.5}, settings=RunSettings(engine=EngineOptions("processes", 2)))
    texts = [(tmp_path / name / "scores.json").read_text() for name in "ab"]
    assert texts[0] == texts[1]


@pytest.mark.real
def test_deeplab_speaks_voc_about_coco(tmp_path, shared_data):
    from hardlook.errors import HardlookError
    from hardlook.models.registry import build

    try:
        build("deeplabv3-voc", role="semantic-segmenter")
    except HardlookError as error:
        pytest.skip(f"DeepLabv3 is not here: {error}")
    coco = shared_data / "data" / "coco100"
    given = {
        "data": {"images": coco / "images", "masks": coco / "semantic"},
        "labels": "coco133", "pred_labels": "voc20", "numbering": "category-id", "ignore": 0, "resamples": 50,
    }  # fmt: skip
    done = launch("open-miou", out=tmp_path, model="deeplabv3-voc", given=given)
    card = done.scored.scorecard
    # VOC says aeroplane and motorbike where COCO says airplane and motorcycle: wrong to vanilla, right to WordNet.
    assert card.get("iou", **{"class": "airplane"}).value == 0
    assert card.get("open-iou", **{"class": "airplane"}).value > 0.5
    assert card.get("open-miou").value > card.get("miou").value
    records = pl.concat([pl.read_parquet(part) for part in (tmp_path / "records").iterdir()])
    # Beside COCO's 133: aeroplane, motorbike, sofa, tvmonitor and background.
    assert records["labels"].unique().to_list() == [133 + 5]


def test_small_runs_support_the_closed_benchmark_still(tmp_path):
    assert small_run(tmp_path, args={}).scored.scorecard.get("miou").value == 1.0
