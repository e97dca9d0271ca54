"""MetaCoCo on files: layouts, splits and contexts that are chosen, what cannot form tasks."""

import shutil
from dataclasses import replace

import few_shot_oracle as oracle
import polars as pl
import pytest
from command_line import CommandLine

from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.world.layouts import CONCEPT_SPLITS

pytestmark = pytest.mark.usefixtures("own_cache")

TEST_CONCEPTS = {concept for concept, split in CONCEPT_SPLITS.items() if split == "test"}

CONTEXTS = {"autumn", "beach", "dusk", "fog", "meadow", "night", "street", "winter"}

# Two scenes of each concept in each context: one to show, one to ask about.
SMALL = {"shots": "1", "queries": 1, "tasks": 6, "repeats": 1, "resamples": 0}


def rehearse(root, **given):
    return InMemoryRun("metacoco", {**SMALL, "data": {"root": root}, **given})


def concepts_of(records):
    return {name for text in records["concepts"] for name in text.split("\n")}


def contexts_of(records):
    return {name for text in records["contexts"] for name in text.split("\n")}


def test_the_test_split_is_asked_about(written):
    records = rehearse(written).records("planted-learner", {"context": 0.5})
    assert concepts_of(records) <= TEST_CONCEPTS
    assert len(concepts_of(records)) >= 5
    assert contexts_of(records) <= CONTEXTS


def test_files_have_the_scores_of_the_specification(written):
    rehearsal = rehearse(written)
    records = rehearsal.records("planted-learner", {"context": 0.7, "noise": 0.2})
    card = rehearsal.score("planted-learner", {"context": 0.7, "noise": 0.2})
    gap, _, n = oracle.mean_with_interval(oracle.paired_differences(records.to_dicts(), "iid", "ood"))
    assert (card.get("gap").value, card.get("gap").n) == (pytest.approx(gap), n)
    assert rehearse(written).score("planted-learner").get("swapped").value == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"split": "train", "ways": "3"}, "train"), ({"split": "all"}, None), ({"split": "val", "ways": "2"}, "val")],
)
def test_another_split_or_all(written, given, expected):
    records = rehearse(written, **{**given, "tasks": 20, "modes": "iid,ood"}).records("planted-learner")
    wanted = {concept for concept, split in CONCEPT_SPLITS.items() if expected in (None, split)}
    assert concepts_of(records) == wanted


def test_a_split_that_is_not_there_is_answered_with_those_that_are(written):
    with pytest.raises(DataError, match="no image of split 'holdout'") as caught:
        rehearse(written, split="holdout")
    assert "train, val, test" in str(caught.value)


def unsplit(world, folder):
    """concept/context/image without splits and manifest."""
    for image in world.glob("*/*/*/*.png"):
        place = folder.joinpath(*image.relative_to(world).parts[1:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, place)
    return folder


def test_folders_without_splits_and_rules_that_split_them(written, tmp_path):
    folder = unsplit(written, tmp_path / "unsplit")
    everything = rehearse(folder, tasks=20, modes="iid").records("planted-learner")
    assert concepts_of(everything) == set(CONCEPT_SPLITS)
    rule = tmp_path / "splits.csv"
    chosen = ["cat", "owl", "pear"]
    rule.write_text(
        "concept,split\n" + "".join(f"{name},{'test' if name in chosen else 'train'}\n" for name in CONCEPT_SPLITS)
    )
    by_file = rehearse(folder, split_rule=str(rule), ways="3", modes="iid,ood").records("planted-learner")
    assert concepts_of(by_file) == set(chosen)
    for seed in (0, 1):
        # A fifth of twelve concepts: two test.
        by_seed = rehearse(folder, split_rule="seed", seed=seed, ways="2", modes="iid,ood").records("planted-learner")
        assert len(concepts_of(by_seed)) == 2


def test_the_sizes_of_concepts_split_them_as_in_the_paper(written, tmp_path):
    folder = unsplit(written, tmp_path / "unsplit")
    for concept in ("cat", "dog"):
        # The smallest two validate; of twelve, eight train and two test.
        for image in list((folder / concept).rglob("*.png"))[:4]:
            image.unlink()
    for concept in ("bus", "car"):
        for image in list((folder / concept).rglob("*.png"))[:2]:
            image.unlink()
    given = {"split_rule": "size", "ways": "2", "modes": "iid,ood"}
    assert concepts_of(rehearse(folder, **given).records("planted-learner")) == {"bus", "car"}
    assert concepts_of(rehearse(folder, **given, split="val").records("planted-learner")) == {"cat", "dog"}


def test_a_manifest_of_either_kind_gives_the_tasks_of_the_folders(written, tmp_path):
    expected = rehearse(written).records("planted-learner", {"context": 0.5})
    (folder := tmp_path / "moved").mkdir()
    table = pl.read_csv(written / "manifest.csv").with_columns(path=str(written) + "/" + pl.col("path"))
    table.write_csv(folder / "list.csv")
    table.write_parquet(folder / "list.parquet")
    for name in ("list.csv", "list.parquet"):
        assert rehearse(folder / name).records("planted-learner", {"context": 0.5}).equals(expected)


def test_class_folders_without_contexts_are_refused_with_a_remedy(written, tmp_path):
    for image in written.glob("test/*/*/*.png"):
        place = tmp_path / image.parts[-3] / image.name
        place.parent.mkdir(exist_ok=True)
        shutil.copy(image, place)
    with pytest.raises(DataError, match="a class and no context: barn/") as caught:
        rehearse(tmp_path)
    assert "concept/context/image" in str(caught.value)


def test_contexts_of_test_and_training_choose_images_and_count_the_rest(written):
    kept = rehearse(written, test_contexts="fog,night,dusk", tasks=12)
    assert contexts_of(kept.records("planted-learner")) == {"fog", "night", "dusk"}
    [note] = kept.left_out
    assert (note.what, note.count) == ("images", 6 * 5 * 2)
    without = rehearse(written, train_contexts="fog,night,dusk", tasks=12)
    assert contexts_of(without.records("planted-learner")) == CONTEXTS - {"fog", "night", "dusk"}
    assert without.left_out[0].count == 6 * 3 * 2
    assert without.left_out[0].examples == ("dusk", "fog", "night")


@pytest.fixture
def listed_twice(written, tmp_path):
    """A manifest of the test split, its scenes in fog listed once more as in rain."""
    table = pl.read_csv(written / "manifest.csv").filter(split="test")
    table = table.with_columns(path=str(written) + "/" + pl.col("path"))
    foggy = table.filter(context="fog").with_columns(context=pl.lit("rain"))
    pl.concat([table, foggy]).write_csv(tmp_path / "manifest.csv")
    return tmp_path / "manifest.csv"


def test_an_image_of_two_contexts_is_asked_about_in_the_one_that_is_kept(listed_twice):
    kept = rehearse(listed_twice, test_contexts="fog,night", tasks=12)
    assert contexts_of(kept.records("planted-learner")) == {"fog", "night"}
    [note] = kept.left_out
    assert note.count == 6 * 6 * 2


def test_an_image_of_two_contexts_one_of_training_is_left_out(listed_twice):
    without = rehearse(listed_twice, train_contexts="rain", tasks=12)
    assert contexts_of(without.records("planted-learner")) == CONTEXTS - {"fog"}
    [note] = without.left_out
    assert (note.count, note.examples) == (6 * 2, ("fog", "rain"))


def test_contexts_of_training_may_be_those_of_another_split(written, tmp_path):
    table = pl.read_csv(written / "manifest.csv").with_columns(path=str(written) + "/" + pl.col("path"))
    jungle = pl.when(split="train", context="fog").then(pl.lit("jungle")).otherwise("context")
    table.with_columns(context=jungle).write_csv(tmp_path / "manifest.csv")
    found = rehearse(tmp_path / "manifest.csv", train_contexts="jungle,dusk").records("planted-learner")
    assert "dusk" not in contexts_of(found)


def test_contexts_whose_names_differ_in_case_are_noted(written, tmp_path):
    table = pl.read_csv(written / "manifest.csv").with_columns(path=str(written) + "/" + pl.col("path"))
    shouted = pl.when(pl.col("context") == "fog").then(pl.lit("Fog")).otherwise("context")
    odd = pl.int_range(pl.len()) % 2 == 1
    table.with_columns(context=pl.when(odd).then(shouted).otherwise("context")).write_csv(tmp_path / "manifest.csv")
    [note] = rehearse(tmp_path / "manifest.csv", modes="blind").left_out
    assert (note.what, note.count, note.examples, note.kept) == (
        "contexts of similar names", 2, ("Fog", "fog"), True,
    )  # fmt: skip


@pytest.mark.parametrize("option", ["test_contexts", "train_contexts", "support_contexts"])
def test_an_unknown_context_is_answered_with_those_there_are(written, option):
    with pytest.raises((DataError, OptionError), match="no context 'jungle'") as caught:
        rehearse(written, **{option: "fog,jungle"})
    assert "autumn, beach" in str(caught.value)


def test_no_context_left_is_an_error(written):
    with pytest.raises(DataError, match="no image is left"):
        rehearse(written, train_contexts=",".join(CONTEXTS))


def test_one_context_only_cannot_leave_it(written):
    with pytest.raises(OptionError, match="0 of 6 classes can form 5-way 1-shot tasks with 1 queries") as caught:
        rehearse(written, test_contexts="fog")
    message = str(caught.value)
    assert "one context only" in message
    assert "fewer ways, shots, queries or modes" in message and "--modes blind needs no second context" in message
    assert rehearse(written, test_contexts="fog", modes="iid").score("planted-learner").get("iid").value == 1


def test_a_class_that_cannot_take_part_is_named(world):
    for image in (world / "test" / "cat").rglob("*.png"):
        if image.parent.name != "fog":
            image.unlink()
    (world / "manifest.csv").unlink()
    rehearsal = rehearse(world, modes="iid,ood", ways="3")
    [note] = rehearsal.left_out
    assert (note.what, note.count, note.examples) == ("classes in ood tasks, 3-way 1-shot", 1, ("cat",))
    assert note.why == "one context only"
    assert "cat" not in concepts_of(rehearsal.records("planted-learner"))


def test_without_single_answers_accuracies_and_gaps_remain(written):
    full, short = (rehearse(written, keep_predictions=keep) for keep in (True, False))
    expected, found = (one.score("planted-learner", {"context": 0.6}) for one in (full, short))
    for name in ("iid", "ood", "swapped", "blind", "gap", "swapped-gap"):
        assert found.get(name) == replace(expected.get(name), wider=None)
    assert {score.name for score in found.scores}.isdisjoint({"accuracy", "attraction"})
    [note] = found.left_out
    assert (note.what, note.count) == ("tasks without single answers", 6 * 4)


def test_other_names_of_data_are_refused(written):
    with pytest.raises(OptionError, match="MetaCoCo reads one dataset"):
        InMemoryRun("metacoco", {**SMALL, "data": {"voc": written}})


def test_from_the_command_line_to_a_report(tmp_path, capsys, monkeypatch):
    line = CommandLine(capsys, monkeypatch)
    world = tmp_path / "world"
    made = line("world", "make", world, "--layout", "concept-context", "--scenes", 192, "--width", 64, "--height", 64)
    assert made.code == 0, made.err
    words = ("run", "metacoco", "--model", "planted-learner", "--data", f"root={world}")
    words += ("--shots", "1", "--queries", "1", "--tasks", "5")
    words += ("--repeats", "1", "--model", "planted-learner", "--model-arg", "context=.8", "--out", tmp_path / "run")
    answer = line(*words, "--no-keep-predictions", "--resamples", "20", "--quiet")
    assert answer.code == 0, answer.err
    assert "20 units planned, 20 scored, 0 failed" in answer.out
    assert "gap: accuracy lost when queries leave" in answer.out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "What context is worth" in page
    assert "the run was told not to keep them" in page
    wrong = line(*words[:-2], "--out", tmp_path / "other", "--modes", "iid,upside-down")
    assert wrong.code == 1
    assert "some of blind, iid, ood, swapped, shared" in wrong.err
