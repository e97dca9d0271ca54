"""`hl.run(preset=...)` and `hardlook run --preset`: a run per dataset, resumed, and one table beside the paper's."""

import json
import shlex

import numpy as np
import polars as pl
import preset_folders as folders
import pytest
from published_folders import SIZE

import hardlook as hl
from hardlook.api.preset_runs import plan_preset
from hardlook.errors import DataError, OptionError, RunWarning
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.rerun_command import build_rerun_command
from hardlook.models.roles import PhrasedAnswer

FEW = {"resamples": 0, "progress": False, "report": False}


def make_map(first, others):
    drawn = np.full((SIZE[1], SIZE[0]), others)
    drawn[0, 0] = first
    return drawn


@pytest.fixture(scope="module")
def semantic(tmp_path_factory):
    """The five datasets of Table 4; predictions are right but on A-847 (a neighbour's number)."""
    root = tmp_path_factory.mktemp("semantic")
    folders.make_semantic(root)
    ade = ("ADE_val_00000001", "ADE_val_00000002")
    for name, stems, numbers in (
        ("ade20k-847", "ab", (0, 845)),
        ("pascal-context-459", "ab", (0, 458)),
        ("ade20k", ade, (0, 149)),
        ("pascal-context", "ab", (1, 57)),
        ("pascal-voc-20", "ab", (0, 19)),
    ):
        path = root / "out" / name / "inference" / "sem_seg_predictions.json"
        folders.write_masks(path, {stem: make_map(*numbers) for stem in stems})
    return root


def test_five_datasets_begun_by_the_function_and_finished_by_the_command(semantic, tmp_path, hardlook):
    pred = str(semantic / "out" / "{dataset}" / "inference")
    with pytest.warns(RunWarning, match=r"no data given for PC-59 \(--data pascal-context=PATH\)"):
        four = dict.fromkeys(("ade20k", "ade20k-847", "pascal-voc-20", "pascal-context-459"), semantic)
        runs = hl.run("open-miou", preset="cross-dataset", pred=pred, out=tmp_path, data=four, compare="path", **FEW)
    assert runs.names == ("ade20k-847", "pascal-context-459", "ade20k", "pascal-voc-20")
    options = runs["ade20k"].manifest["options"]
    assert [options[name] for name in ("preset", "labels", "variant", "measure")] == [
        "cross-dataset/ade20k", "ade150", "published", "path"
    ]  # fmt: skip
    assert runs["ade20k-847"].manifest["options"]["variant"] == "corrected"
    assert runs["ade20k-847"].scorecard.get("miou").value == pytest.approx(1 / 3)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet") if "records" in path.parts}
    assert len(kept) == 4

    data = [word for name in ("ade20k", "pascal-context") for word in ("--data", f"{name}={semantic}")]
    answer = hardlook("run", "open-miou", "--preset", "cross-dataset", *data, "--pred", pred, "--resamples", 0,
                      "--compare", "path", "--quiet", "--out", tmp_path)  # fmt: skip
    assert answer.code == 0, answer.err
    assert "no data given for A-847 (--data ade20k-847=PATH)" in answer.err
    assert "not here" not in answer.out, "what ran before is in the table"
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in kept}.items()
    document = json.loads((tmp_path / "table.json").read_text())
    assert document["absent"] == [] and [part["dataset"] for part in document["parts"]] == [
        "A-847", "PC-459", "A-150", "PC-59", "PAS-20"
    ]  # fmt: skip
    own = {row["slice"]["dataset"]: (row["vanilla"], row["folder"]) for row in document["rows"] if row["kind"] == "run"}
    assert own == {
        "A-847": (pytest.approx(1 / 3), "ade20k-847"),
        "PC-459": (1, "pascal-context-459"),
        "A-150": (1, "ade20k"),
        "PC-59": (1, "pascal-context"),
        "PAS-20": (1, "pascal-voc-20"),
    }
    [san] = [row for row in document["rows"] if row["method"] == "SAN" and row["slice"] == {"dataset": "PAS-20"}]
    assert (san["kind"], san["vanilla"], san["open"], san["source"]) == ("published", 0.952, 0.96, "Table 4, PAS-20")
    for line in ("A-847: mIoU", "published, Table 4", "table: "):
        assert line in answer.out
    page = (tmp_path / "report.html").read_text()
    assert "hardlook run open-miou --data ade20k-847=PATH --variant corrected" in page and "Table 4, PAS-20" in page


def test_the_leaderboard_ranks_each_dataset_beside_its_published_rows(semantic, tmp_path):
    pred = semantic / "out" / "{dataset}" / "inference"
    with pytest.warns(RunWarning):
        runs = hl.run("open-miou", preset="cross-dataset", pred=pred, out=tmp_path, **FEW,
                      data={"ade20k": semantic, "pascal-context": semantic})  # fmt: skip
    assert [path.name for path in runs.leaderboard.pages] == ["leaderboard.html", "leaderboard.parquet"]
    [board] = hl.leaderboard(tmp_path).boards
    seen = {(one.meaning.name, one.where["dataset"]): one for one in (*board.rankings, *board.slices)}
    for dataset, best in (("A-150", 0.404), ("PC-59", 0.654)):
        ranking = seen["open-miou", dataset]
        own = [row for row in ranking.of("run") if not row.flags]
        assert [(row.folder, row.rank) for row in own] == [("ade20k" if dataset == "A-150" else "pascal-context", 1)]
        assert max(row.value for row in ranking.of("published")) == best
        assert {row.where["dataset"] for row in (*own, *ranking.of("published"))} == {dataset}
    frame = pl.read_parquet(tmp_path / "leaderboard.parquet")
    assert set(frame.filter(kind="published")["source"]) >= {"Table 4, A-150", "Table 4, PC-59"}


def test_options_that_are_given_count_before_those_of_the_preset(semantic, tmp_path):
    pred = semantic / "out" / "ade20k" / "inference"
    with pytest.warns(RunWarning):
        runs = hl.run("open-miou", preset="cross-dataset", data={"ade20k": semantic}, pred=pred, variant="corrected",
                      out=tmp_path, **FEW)  # fmt: skip
    assert runs[0].manifest["options"]["variant"] == "corrected"
    [row] = runs.table.runs
    assert "Not comparable" in row.note


def test_one_part_alone_is_a_run_in_out_itself(semantic, tmp_path):
    run = hl.run("open-miou", preset="cross-dataset/ade20k", data={"ade20k": semantic}, out=tmp_path / "run",
                 pred=semantic / "out" / "ade20k" / "inference", **FEW)  # fmt: skip
    assert run.scorecard.get("miou").value == 1 and run.manifest["options"]["labels"] == "ade150"
    with pytest.raises(OptionError, match="this is a run"), pytest.warns(RunWarning):
        hl.run("open-miou", preset="cross-dataset", data={"ade20k": semantic}, out=tmp_path / "run", **FEW,
               pred=semantic / "out" / "ade20k" / "inference")  # fmt: skip


def test_units_of_one_dataset_are_evaluated_alone(semantic):
    results = hl.run("open-miou", preset="cross-dataset", data={"ade20k": semantic}, unit="ADE_val_00000002",
                     pred=semantic / "out" / "ade20k" / "inference", progress=False)  # fmt: skip
    assert [result.unit.id for result in results] == ["ADE_val_00000002"]


@pytest.mark.parametrize(
    ("given", "message", "remedy"),
    [
        ({}, "needs data", "--data ade20k-847=PATH"),
        ({"data": {"voc": "x"}}, "no data 'voc'", "pascal-voc-20"),
        ({"gt": "x", "pred": "y"}, "not said of which dataset", "--data NAME=PATH"),
        ({"data": {"ade20k": "x", "ade20k-847": "x"}, "pred": "y"}, "2 datasets", "{dataset}"),
    ],
)
def test_what_does_not_say_what_to_run_is_refused_before_anything_runs(tmp_path, given, message, remedy):
    with pytest.raises(OptionError, match=message) as caught:
        hl.run("open-miou", preset="cross-dataset", out=tmp_path / "runs", **given)
    assert remedy in caught.value.remedy and not (tmp_path / "runs").exists()


def test_a_dataset_that_stops_leaves_the_table_of_those_before(semantic, tmp_path):
    pred = semantic / "out" / "{dataset}" / "inference"
    with pytest.raises(DataError, match="no such folder"), pytest.warns(RunWarning):
        hl.run("open-miou", preset="cross-dataset", pred=pred, out=tmp_path, **FEW,
               data={"ade20k": semantic, "pascal-voc-20": semantic / "nowhere"})  # fmt: skip
    document = json.loads((tmp_path / "table.json").read_text())
    assert [row["folder"] for row in document["rows"] if row["kind"] == "run"] == ["ade20k"]
    assert [one["data"] for one in document["absent"]] == [
        "ade20k-847",
        "pascal-context-459",
        "pascal-context",
        "pascal-voc-20",
    ]


class Painter:
    """Calls every pixel by one of its labels."""

    def __init__(self, label):
        self.labels, self.label = ("wall", "flag"), label

    def segment(self, images):
        return [np.full(image.shape[:2], self.labels.index(self.label), np.int32) for image in images]


class OtherPainter(Painter):
    """The same under another name."""


def test_several_models_with_the_words_of_the_dataset(semantic, tmp_path):
    with pytest.warns(RunWarning):
        runs = hl.run("open-miou", preset="cross-dataset", data={"ade20k": semantic}, out=tmp_path, **FEW,
                      model=[Painter("wall"), OtherPainter("flag")])  # fmt: skip
    assert runs.names == ("ade20k/Painter", "ade20k/OtherPainter")
    assert runs[0].manifest["options"]["pred_labels"] == "ade150"
    found = {row.method: (row.folder, row.values["vanilla"]) for row in runs.table.runs}
    assert found["Painter"][0] == "ade20k/Painter" and found["OtherPainter"][1] > found["Painter"][1]


class Talker:
    """Calls every pixel `the walls`, in words of its own."""

    labels, free_words = (), True

    def segment(self, images):
        return [PhrasedAnswer(np.zeros(image.shape[:2], np.int32), ["the walls"]) for image in images]


def test_a_model_with_words_of_its_own_gets_no_labels(semantic, tmp_path):
    data = {"ade20k": semantic, "pascal-context": semantic}
    with pytest.warns(RunWarning):
        runs = hl.run("open-miou", model=Talker(), preset="cross-dataset", data=data, out=tmp_path, **FEW,
                      pred_words="free")  # fmt: skip
    assert [run.manifest["options"]["pred_labels"] for run in runs] == [None, None]
    assert runs["ade20k"].scorecard.get("miou").value > 0


def test_arguments_of_a_model_name_the_dataset_and_its_labels():
    plan = plan_preset(
        find_benchmark("open-miou"), "cross-dataset", {"data": {"ade20k": "a", "pascal-voc-20": "b"}}, has_model=True
    )
    filled = [one.fill({"words": "{labels}", "weights": "{dataset}.pth", "size": 3}) for one in plan.runs.values()]
    assert filled == [
        {"words": "ade150", "weights": "ade20k.pth", "size": 3},
        {"words": "voc20", "weights": "pascal-voc-20.pth", "size": 3},
    ]
    assert plan.runs["ade20k"].fill({"files": ["{dataset}.a", "b"]}) == {"files": ["ade20k.a", "b"]}


PRESETS = {
    "panoptic": ("open-pq", {"coco-panoptic": {3: 8}, "ade20k-panoptic": {7: 57}}, ("COCO", "PQ", 1 / 3, None)),
    "known-unknown": ("open-pq", {"coco-panoptic": {3: 8}}, ("unknown", "PQ", 0, None)),
    "measures": ("open-pq", {"ade20k-panoptic": {}}, ("A-150", "SQ", 1, None)),
    "instances": ("open-ap", {"ade20k-instances": {149: 64}}, ("A-150", "AP", 0.5, 0.5)),
    "base-novel-masks": ("open-ap", {"coco-instances": {17: 18}}, ("novel", "AP50", 0, 0)),
    "base-novel-boxes": ("open-ap", {"coco-instances": {17: 18}}, ("base", "AP50", 1, 1)),
}
MAKE = {
    "coco-panoptic": folders.make_coco_panoptic,
    "ade20k-panoptic": folders.make_ade_panoptic,
    "coco-instances": folders.make_coco_instances,
    "ade20k-instances": folders.make_ade_instances,
}


@pytest.mark.parametrize("preset", PRESETS)
def test_tables_5_to_10_from_the_output_folders_of_evaluators(tmp_path, preset):
    benchmark, swaps, (word, quantity, vanilla, dagger) = PRESETS[preset]
    for name, swapped in swaps.items():
        truth = MAKE[name](tmp_path)
        if benchmark == "open-pq":
            folders.write_panoptic_output(tmp_path / "out" / name, truth, swapped)
        else:
            folders.write_results(tmp_path / "out" / name / "coco_instances_results.json", truth, swapped)
    runs = hl.run(benchmark, preset=preset, data=dict.fromkeys(swaps, tmp_path), out=tmp_path / "runs",
                  pred=tmp_path / "out" / "{dataset}", **FEW)  # fmt: skip
    assert runs.names == tuple(swaps) and not runs.table.absent
    rows = [row for row in runs.table.runs if word in row.where.values() and row.quantity == quantity]
    assert rows and all(row.values["vanilla"] == pytest.approx(vanilla) for row in rows)
    assert all(row.values.get("dagger") == dagger for row in rows)
    groups = {(tuple(row.where.items()), row.quantity) for row in runs.table.rows}
    own = {(tuple(row.where.items()), row.quantity) for row in runs.table.runs}
    # Every group of published rows has ours beside it, but those of measures whose vectors are not given.
    assert {where for where, _ in groups - own} <= {
        (("dataset", "A-150"), ("measure", name)) for name in ("glove", "t5")
    }
    assert runs.table.frame.height == len(runs.table.rows)


def test_measures_with_sources_stand_beside_their_published_rows(tmp_path):
    truth = folders.make_ade_panoptic(tmp_path)
    folders.write_panoptic_output(tmp_path / "out", truth, {0: 1, 7: 57})
    vectors = tmp_path / "vectors.txt"
    names = ("wall", "building", "bed", "pillow")
    vectors.write_text("".join(f"{name} {place} 1\n" for place, name in enumerate(names)))
    runs = hl.run("open-pq", preset="measures", data={"ade20k-panoptic": tmp_path}, pred=tmp_path / "out", **FEW,
                  compare=f"path,glove={vectors}", unknown="zero", out=tmp_path / "runs")  # fmt: skip
    rows = {row.where.get("measure", "path"): row for row in runs.table.runs if row.quantity == "PQ"}
    assert set(rows) == {"path", "glove"}
    assert rows["glove"].values["open"] > rows["path"].values["open"]


def test_a_json_of_ones_own_stands_for_the_only_dataset_of_a_preset(tmp_path, hardlook):
    truth = folders.make_coco_instances(tmp_path)
    folders.write_results(tmp_path / "found.json", truth)
    found, out = tmp_path / "found.json", tmp_path / "runs"
    answer = hardlook("run", "open-ap", "--preset", "base-novel-boxes", "--gt", truth, "--pred", found, "--out", out,
                      "--resamples", 0, "--quiet", "--json")  # fmt: skip
    assert answer.code == 0, answer.err
    rows = [row for row in json.loads(answer.out)["rows"] if row["kind"] == "run"]
    assert len(rows) == 5 and {(row["vanilla"], row["folder"]) for row in rows} == {(1, "coco-instances")}


def test_a_run_of_a_preset_is_scored_again_and_its_command_repeats_it(tmp_path, hardlook):
    truth = folders.make_ade_panoptic(tmp_path)
    folders.write_panoptic_output(tmp_path / "out", truth, {7: 57})
    hl.run("open-pq", preset="measures", data={"ade20k-panoptic": tmp_path}, pred=tmp_path / "out",
           out=tmp_path / "runs", **FEW)  # fmt: skip
    run = hl.load(tmp_path / "runs" / "ade20k-panoptic")
    before = run.scorecard.get("open-pq").value
    answer = hardlook("score", run.folder, "--set", "measure=wup", "--json")
    assert answer.code == 0, answer.err
    after = {one["name"]: one["value"] for one in json.loads(answer.out)["scores"] if not one["slice"]}
    assert after["open-pq"] > before
    words = shlex.split(build_rerun_command(run.manifest))
    assert words[words.index("--preset") + 1] == "measures/ade20k-panoptic"
    again = hardlook(*words[1:-1], tmp_path / "again", "--quiet", "--json")
    assert again.code == 0, again.err
    assert hl.load(tmp_path / "again").scorecard.get("open-pq").value == before
