"""`hardlook collect export`, and its files in the commands that read clicks."""

import json

import numpy as np
import pytest
from click_crowd import Person, open_store, take_part, world_study

from hardlook.collect.results.export import export_study
from hardlook.collect.study.click_tasks import region_study
from hardlook.collect.study.folder import open_study
from hardlook.collect.study.regions_to_click import Region
from hardlook.collect.study.settings import StudySettings
from hardlook.data.object_instances import list_instances
from hardlook.data.previous_masks import error_mask

PER_DEVICE = 11


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """World, study and answers: people on a PC click deep inside, those on a mobile device in the left half."""
    folder = tmp_path_factory.mktemp("collected")
    study = world_study(folder)
    rng = np.random.default_rng(5)
    with open_store(study) as store:
        for _ in range(PER_DEVICE):
            take_part(study, store, Person("pc", part="deep"), rng)
            take_part(study, store, Person("mobile", part="left"), rng)
    return folder


@pytest.fixture(scope="module")
def exported(collected, tmp_path_factory):
    out, study = tmp_path_factory.mktemp("exported"), open_study(collected / "study")
    with open_store(study) as store:
        return out, export_study(study, store, out).document


def test_the_same_files_as_from_python(hardlook, collected, exported, tmp_path):
    answer = hardlook("collect", "export", collected / "study", "--out", tmp_path, "-q", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document == json.loads((tmp_path / "report.json").read_text()) | {"out": str(tmp_path)}
    assert sorted(document["files"]) == sorted(path.name for path in tmp_path.iterdir())
    assert document["answers"]["valid"] == document["written"]["clicks"] == 2 * PER_DEVICE * 4
    assert (tmp_path / "clicks.csv").read_bytes() == (exported[0] / "clicks.csv").read_bytes()


def test_clicks_evaluate_reads_the_export_and_prefers_the_right_model(hardlook, collected, exported, tmp_path):
    out, document = exported
    words = ("--user-clicks", out / "clicks.csv", "--data", f"grabcut={collected / 'world'}")
    answer = hardlook(
        *("clicks", "evaluate", *words, "--models", "uniform,distance", "--draws", 20, "-q", "--json"),
        *("--out", tmp_path / "judged"),
    )
    assert answer.code == 0, answer.err
    judged = json.loads(answer.out)
    overall = {row["model"]: row for row in judged["scores"] if (row["slice"], row["value"]) == ("device", "pc")}
    better, worse = overall["distance"], overall["uniform"]
    assert better["nss"]["value"] > worse["nss"]["value"] and better["wd"]["value"] < worse["wd"]["value"]
    # Two ways to the same comparison: the files, and the store.
    [row] = judged["pc_against_mobile"]
    ours = document["pc_against_mobile"]["cut-out"]
    assert row["stems"] == ours["stems"] == 4
    for metric in ("ks", "pl1", "wd"):
        assert row[metric]["value"] == pytest.approx(ours[metric]["value"])
    assert ours["ks"]["value"] < 1


def test_clicks_train_runs_on_the_export(hardlook, collected, exported, tmp_path, one_thread):
    out, _ = exported
    answer = hardlook(
        *("clicks", "train", "--user-clicks", out / "clicks.csv", "--data", f"grabcut={collected / 'world'}"),
        *("--width", "small", "--size", 64, "--batch-size", 4, "--clip", 1, "--threads", 1, "--epochs", 1, "--quiet"),
        *("--json", "--out", tmp_path / "trained"),
    )
    assert answer.code == 0, answer.err
    assert (tmp_path / "trained/clickability.safetensors").is_file()


def test_the_benchmark_runs_with_the_users_of_the_export(hardlook, collected, exported, tmp_path):
    out, _ = exported
    answer = hardlook(
        *("run", "rclicks", "--model", "disc", "--data", f"grabcut={collected / 'world'}"),
        *("--user-clicks", out / "clicks.csv", "--clicks", "uniform", "--rounds", 2, "--groups", 2),
        *("--resamples", 0, "-q", "--json", "--out", tmp_path / "run"),
    )
    assert answer.code == 0, answer.err
    [score] = [one for one in json.loads(answer.out)["scores"] if one["name"] == "user-iou1" and not one["slice"]]
    assert score["n"] == 4 and 0 < score["value"] <= 100


def test_previews_are_read_with_their_modes(hardlook, tmp_path):
    study = world_study(tmp_path, modes=("text", "silhouette"), devices=("pc",), target_answers=10)
    rng = np.random.default_rng(6)
    with open_store(study) as store:
        for _ in range(20):
            take_part(study, store, Person("pc"), rng)
    answer = hardlook("collect", "export", study.path, "--out", tmp_path / "out", "-q", "--mode", "text", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["pc_against_mobile"] == {} and document["answers"]["of another display mode"] == 40
    judged = hardlook(
        *(
            "clicks",
            "evaluate",
            "--user-clicks",
            tmp_path / "out/clicks.csv",
            "--data",
            f"grabcut={tmp_path / 'world'}",
        ),
        *("--previews", tmp_path / "out/previews.csv", "--models", "uniform", "--draws", 2, "-q", "--json"),
        *("--out", tmp_path / "judged"),
    )
    assert judged.code == 0, judged.err
    theirs, ours = json.loads(judged.out)["modes_against_text"], document["modes_against_text"]
    assert list(theirs) == list(ours) == ["silhouette"]
    assert theirs["silhouette"]["wd"]["value"] == pytest.approx(ours["silhouette"]["wd"]["value"])


def test_a_second_round_is_read_with_its_masks(hardlook, collected, tmp_path):
    regions = []
    for one, kind in zip(list_instances({"grabcut": collected / "world"}).instances, ("fn", "fp"), strict=False):
        target = one.read_target().mask
        half = np.arange(target.shape[1]) < np.median(np.nonzero(target)[1])
        previous = target & half if kind == "fn" else np.logical_or(target, half)
        names = (one.dataset, one.image_stem, "", f"{one.image_stem}_ritm_{kind}_pc_1", one.read(), target)
        more = {"model_type": "ritm", "click_type": kind, "previous": previous, "subject": one.image_key}
        regions.append(Region(*names, error_mask(target, previous, kind), **more))
    settings = StudySettings(kind="clicks", title="Errors", devices=("pc",), training_tasks=0, least_inside=0.5)
    study, rng = region_study(tmp_path / "study", regions, settings), np.random.default_rng(7)
    with open_store(study) as store:
        for _ in range(3):
            take_part(study, store, Person("pc"), rng)
    answer = hardlook("collect", "export", study.path, "--out", tmp_path / "out", "-q", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["study"]["round"] == 2 and "previous-masks" in json.loads(answer.out)["files"]
    judged = hardlook(
        *(
            "clicks",
            "evaluate",
            "--user-clicks",
            tmp_path / "out/clicks.csv",
            "--data",
            f"grabcut={collected / 'world'}",
        ),
        *("--previous-masks", tmp_path / "out/previous-masks", "--models", "uniform", "--draws", 2, "-q", "--json"),
        *("--out", tmp_path / "judged"),
    )
    assert judged.code == 0, judged.err
    stems = {row["value"]: row["stems"] for row in json.loads(judged.out)["scores"] if row["slice"] == "click_type"}
    assert stems == {"fn": 1, "fp": 1}
    # Who gets which task first is drawn anew each time; three clicks of equal height would be noted as well.
    assert "stems in the comparison of devices" in {note["what"] for note in json.loads(judged.out)["left_out"]}


def test_the_report_names_the_reading_that_ran(hardlook, collected, tmp_path):
    words = ("collect", "export", collected / "study", "--out", tmp_path / "out", "-q", "--json")
    found = {}
    for reading in ("released", "paper"):
        answer = json.loads(hardlook(*words, "--reading", f"wd={reading}").out)
        assert answer["readings"] == {"wd": reading}
        assert f"by the reading <code>{reading}</code>" in (tmp_path / "out" / "page.html").read_text()
        found[reading] = [one["wd"]["value"] for one in answer["pc_against_mobile"].values() if one["wd"]]
    assert found["released"] and found["released"] != found["paper"]
    assert json.loads(hardlook(*words).out)["readings"] == {"wd": "released"}
    assert "--reading wd=ours: there is no such reading" in hardlook(*words, "--reading", "wd=ours").err


def test_words_for_people(hardlook, collected, tmp_path):
    (tmp_path / "rules.json").write_text('{"least_answers": 5}')
    words = ("collect", "export", collected / "study", "--out", tmp_path / "out", "--rules", tmp_path / "rules.json")
    answer = hardlook(*words)
    assert answer.code == 0, answer.err
    assert "88 answers of 22 participants: 0 valid; left out: 88 excluded by rule." in answer.out
    assert "Rules of exclusion from a file leave out 22 participants." in answer.out
    assert f"page: {tmp_path / 'out/page.html'}" in answer.out
    every = hardlook("collect", "export", collected / "study", "--out", tmp_path / "all", "--all-clicks", "-q")
    assert every.code == 0 and "clicks.csv holds 88 clicks, invalid ones too." in every.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--mode", "shifted"), "no display mode 'shifted'"),
        (("--rules", "gone.json"), "the rules cannot be read"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(hardlook, collected, tmp_path, more, said):
    answer = hardlook("collect", "export", collected / "study", "--out", tmp_path / "out", "-q", *more)
    assert answer.code == 1 and said in answer.err and not (tmp_path / "out").exists()


def test_a_database_of_another_study_is_refused(hardlook, collected, tmp_path):
    other = world_study(tmp_path, modes=("text",), training_tasks=1)
    database = f"sqlite:///{collected / 'study/answers.sqlite'}"
    for verb in (("export", "--out", tmp_path / "out"), ("status",)):
        answer = hardlook("collect", verb[0], other.path, *verb[1:], "--database", database)
        assert answer.code == 1 and "answers to other tasks" in answer.err, answer.err
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_study(hardlook, tmp_path):
    answer = hardlook("collect", "export", tmp_path, "--out", tmp_path / "out")
    assert answer.code == 1 and "no study here" in answer.err
