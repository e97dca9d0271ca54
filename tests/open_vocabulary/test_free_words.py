"""Runs of predictions in free words on the planted world, and how records become one vocabulary."""

import json
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_runs import check_killed_and_resumed
from small_runs import all_records, scores_text

import hardlook as hl
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.evaluation import evaluate_batch
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.models.registry import build
from hardlook.models.roles import PhrasedAnswer
from hardlook.open_vocabulary import label_similarity
from hardlook.open_vocabulary.free_words import (
    build_words_section,
    check_truth_names,
    count_truth,
    flatten_tables,
    join_image_names,
    merge_named_words,
    merge_words,
    name_phrases,
)
from hardlook.open_vocabulary.label_similarity import compute_label_pairs, compute_label_similarity, merge_label_senses
from hardlook.open_vocabulary.miou import evaluation as miou_evaluation
from hardlook.open_vocabulary.miou import scores as miou_scores
from hardlook.open_vocabulary.options import SimilarityOptions
from hardlook.similarity.free_words.phrases import parse_class_name
from hardlook.world.vocabulary import BY_NAME

MODELS = {
    "open-miou": ("planted-segmenter", "planted-phrase-segmenter"),
    "open-ap": ("planted-instances", "planted-phrase-instances"),
    "open-pq": ("planted-panoptic", "planted-phrase-panoptic"),
}
HEADLINES = {"open-miou": ("miou", "open-miou"), "open-ap": ("ap", "open-ap"), "open-pq": ("pq", "open-pq")}
FAULTS = {"sibling": 0.3, "ragged": 0.3}
FREE = {"pred_words": "free"}


def make_records(name, model, dials=None, scenes=6, **options):
    """The records of one model, whole, in the order of the units."""
    benchmark = find_benchmark(name)
    chosen = benchmark.options(scenes=scenes, resamples=0, compare=(), **options)
    built = build(model, role=benchmark.card.role, args=dials or {}) if isinstance(model, str) else model
    outcome = evaluate_batch(benchmark, benchmark.list_units(chosen), built)
    assert not outcome.failures, outcome.failures
    return benchmark.schema.frame(outcome.records).sort("unit"), chosen


def score(name, model, dials=None, **options):
    records, chosen = make_records(name, model, dials, **options)
    return find_benchmark(name).score(records, chosen)


def headline(name, scorecard):
    return [scorecard.get(one).value for one in HEADLINES[name]]


@pytest.mark.parametrize("name", MODELS)
def test_synonyms_score_as_the_labels_do(name):
    labelled, phrased = MODELS[name]
    with_labels = score(name, labelled, FAULTS)
    free = score(name, phrased, FAULTS, **FREE)
    shared = [one for one in with_labels.scores if "class" not in one.slice]
    assert len(shared) > 5
    for one in shared:
        assert free.get(one.name, **one.slice).value == pytest.approx(one.value, nan_ok=True, abs=1e-12)
    merged = {one.slice["said"]: one.slice["label"] for one in free.scores if one.name == "said-in"}
    assert merged["automobile (car.n.01)"] == "car" and merged["true cat (cat.n.01)"] == "cat"


@pytest.mark.parametrize("name", MODELS)
def test_hypernyms_cost_the_more_the_further_they_are(name):
    said = [{}, {"hypernym": 0.5}, {"hypernym": 1.0}, *({"hypernym": 1.0, "steps": steps} for steps in (2, 3))]
    values = [headline(name, score(name, MODELS[name][1], dials, **FREE)) for dials in said]
    opened = [value for _, value in values]
    assert opened[0] == 1 and all(after < before for before, after in pairwise(opened))
    assert values[2][0] == values[3][0] == values[4][0] < values[1][0]  # vanilla scores see no difference


@pytest.mark.parametrize("name", MODELS)
def test_unknown_words_are_similar_to_nothing_and_named(name):
    free = score(name, MODELS[name][1], {"misspelled": 0.3}, scenes=12, **FREE)
    vanilla, opened = headline(name, free)
    assert opened == pytest.approx(vanilla) and opened < 1
    notes = {note.what: note for note in free.noted}
    unknown = notes["phrases without a sense"]
    assert unknown.count >= 1 and all(" (" in one for one in unknown.examples)  # each has a suggestion
    assert "only these count in vanilla scores" in notes["different phrases in free words"].why


def test_a_run_of_unknown_words_is_refused():
    with pytest.raises(DataError, match=r"\d+ of \d+ phrases have no noun in WordNet"):
        score("open-ap", MODELS["open-ap"][1], {"misspelled": 1.0}, scenes=12, **FREE)


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_images_changes_nothing(name):
    records, options = make_records(name, MODELS[name][1], {"hypernym": 0.5, **FAULTS}, **FREE)
    assert records["names"].n_unique() > 1
    benchmark = find_benchmark(name)
    straight, turned = benchmark.score(records, options), benchmark.score(records.reverse(), options)
    for one in straight.scores:
        other = turned.get(one.name, **one.slice)
        assert other.value == pytest.approx(one.value, nan_ok=True, abs=1e-12) and other.n == one.n


@pytest.mark.parametrize("name", MODELS)
def test_qualities_tallies_report_and_comparison(name):
    benchmark = find_benchmark(name)
    free, options = make_records(name, MODELS[name][1], {"hypernym": 0.4, **FAULTS}, **FREE)
    labelled, plain = make_records(name, MODELS[name][0], FAULTS)
    light = free.select(benchmark.schema.light)
    qualities = benchmark.qualities(light, options)
    for unit, *values in qualities.iter_rows():
        alone = benchmark.qualities(light.filter(pl.col("unit") == unit), options)
        assert alone.row(0)[1:] == pytest.approx(tuple(values), nan_ok=True)
    # Two runs with one list of labels: the same entries in both, and the scores of each as by itself.
    ours, theirs = benchmark.merge_vocabularies([light, labelled.select(benchmark.schema.light)])
    for records, chosen, whole in ((ours, options, free), (theirs, plain, labelled)):
        (first, *_) = benchmark.tallies(records, chosen)
        values = dict(zip([(e.name, *e.slice.values()) for e in first.entries], first.values()[0], strict=True))
        alone = benchmark.score(whole, chosen)
        for headline_name in HEADLINES[name]:
            assert values[(headline_name,)] == pytest.approx(alone.get(headline_name).value, abs=1e-12)
    entries = [[(e.name, tuple(e.slice.items())) for e in benchmark.tallies(r, o)[0].entries]
               for r, o in ((ours, options), (theirs, plain))]  # fmt: skip
    assert entries[0] == entries[1]
    sections = {section.title: section for section in benchmark.report(free, benchmark.score(free, options))}
    table = sections["Free words"].blocks[0]
    assert table.columns == ("phrase", "noun and sense", "counts as the label", "rule", "images")
    by_sense = [(parse_class_name(row[1]).synset, row[2]) for row in table.rows if row[2] and row[2] != row[1]]
    assert by_sense and all(BY_NAME[label].synset == synset for synset, label in by_sense)
    assert "Free words" not in {
        section.title for section in benchmark.report(labelled, benchmark.score(labelled, plain))
    }


@pytest.mark.parametrize("name", MODELS)
def test_models_with_labels_may_be_read_as_free_words(name):
    with_labels, free = score(name, MODELS[name][0], FAULTS), score(name, MODELS[name][0], FAULTS, **FREE)
    assert headline(name, free) == pytest.approx(headline(name, with_labels))


@pytest.mark.parametrize("name", ["closed-miou", *MODELS])
def test_a_model_with_free_words_needs_the_option(name):
    benchmark = find_benchmark(name)
    model = build(MODELS.get(name, MODELS["open-miou"])[1], role=benchmark.card.role)
    outcome = evaluate_batch(benchmark, benchmark.list_units(benchmark.options(scenes=2)), model)
    assert "words of its own choosing" in outcome.failures[0].error
    assert "--pred-words free" in outcome.failures[0].error


@pytest.mark.parametrize("name", ["closed-miou", *MODELS])
def test_a_run_without_the_option_is_refused_before_its_first_unit(name, tmp_path):
    labelled, phrased = MODELS.get(name, MODELS["open-miou"])
    given = {"scenes": 2, "resamples": 0}
    with pytest.raises(OptionError, match="words of its own choosing") as caught:
        launch(name, model=phrased, given=given, out=tmp_path / "run")
    assert "--pred-words free" in caught.value.remedy and not (tmp_path / "run").exists()
    with pytest.raises(OptionError, match="words of its own choosing"):
        hl.run(name, model=phrased, unit="scene-0000")
    launch(name, model=labelled, given=given, out=tmp_path / "run")


def test_phrases_of_a_model_that_does_not_announce_them_are_named():
    model = build(MODELS["open-miou"][1], role="semantic-segmenter")
    silent = SimpleNamespace(segment=model.segment, labels=("sky",))
    benchmark = find_benchmark("open-miou")
    outcome = evaluate_batch(benchmark, benchmark.list_units(benchmark.options(scenes=1)), silent)
    assert "free_words = True" in outcome.failures[0].error and "--pred-words free" in outcome.failures[0].error


def test_free_words_and_a_list_exclude_each_other(tmp_path):
    with pytest.raises(OptionError, match="exclude each other"):
        launch("open-miou", out=tmp_path, given={"scenes": 2, "pred_words": "free", "pred_labels": "coco80"})


def test_engines_and_batches_give_the_same_records_and_scores(tmp_path, forked_workers):
    name = "open-miou"
    runs = {"inline": ("inline", 1), "processes": ("processes", 3)}
    for run, (engine, batch) in runs.items():
        launch(
            name,
            out=tmp_path / run,
            model=MODELS[name][1],
            model_args={"hypernym": 0.5},
            given={"scenes": 8, "resamples": 20, "compare": (), **FREE},
            batch_size=batch,
            settings=RunSettings(engine=EngineOptions(engine)),
        )
    one, two = (all_records(tmp_path / run) for run in runs)
    assert one.drop("answers", "seconds", strict=False).equals(two.drop("answers", "seconds", strict=False))
    scores = [json.loads(scores_text(tmp_path / run))["scores"] for run in runs]
    assert scores[0] == scores[1]


def test_a_run_is_killed_and_resumed(tmp_path):
    words = [
        "open-pq",
        "--model",
        MODELS["open-pq"][1],
        "--model-arg",
        "hypernym=.5",
        "--pred-words",
        "free",
        "--scenes",
        "8",
    ]
    records = check_killed_and_resumed([*words, "--resamples", "20", "--batch-size", "1"], tmp_path, units=8)
    assert all(records["phrases"])


def test_very_many_words_are_scored_without_a_matrix(monkeypatch):
    records, options = make_records("open-miou", MODELS["open-miou"][1], {"hypernym": 0.5, "misspelled": 0.1}, **FREE)
    benchmark = find_benchmark("open-miou")
    expected = benchmark.score(records, options)
    for module in (miou_evaluation, miou_scores, label_similarity):
        monkeypatch.setattr(module, "MAX_MATRIX_LABELS", 10)
    found = benchmark.score(records, options)
    for one in HEADLINES["open-miou"]:
        assert found.get(one).value == pytest.approx(expected.get(one).value, abs=1e-12)


class Speaker:
    """A segmenter that says the same phrases for every image, left and right half."""

    free_words, labels = True, ()

    def __init__(self, *phrases):
        self.phrases = phrases

    def segment(self, images):
        maps = []
        for image in images:
            found = np.full(image.shape[:2], -1, np.int32)
            found[:, : image.shape[1] // 2] = 0
            found[:, image.shape[1] // 2 :] = min(1, len(self.phrases) - 1)
            maps.append(PhrasedAnswer(found, self.phrases))
        return maps


def test_phrases_that_are_not_drawn_neither_count_nor_give_context():
    records, _ = make_records("open-miou", Speaker("crane", "sky", "heron"), **FREE)
    assert set(records["phrases"]) == {"crane\tcrane (crane.n.04)\tusual\nsky\tsky\tlabel"}
    records, _ = make_records("open-miou", Speaker("crane", "heron"), **FREE)
    assert "crane (crane.n.05)" in records["names"][0]
    records, _ = make_records("open-miou", Speaker("crane", "heron"), pred_senses="first", **FREE)
    assert "crane (crane.n.04)" in records["names"][0]


def test_a_model_that_says_nothing():
    class Silent(Speaker):
        def segment(self, images):
            return [PhrasedAnswer(np.full(image.shape[:2], -1, np.int32), ()) for image in images]

    found = score("open-miou", Silent(), **FREE)
    assert headline("open-miou", found) == [0, 0]


def test_words_of_any_script_and_length_are_recorded():
    records, options = make_records("open-miou", Speaker("\tein\n Hund\0", "犬 " * 400), **FREE)
    assert records["phrases"][0].count("\n") == 1
    found = find_benchmark("open-miou").score(records, options)
    assert found.get("open-miou").value == 0
    section = build_words_section(records, found)
    assert {row[3] for row in section.blocks[0].rows} == {"unknown", "long"}


def test_the_same_phrase_may_mean_two_things_in_two_images():
    one, two = (
        name_phrases(("sky",), phrases, [0, 1], "context") for phrases in (["crane", "heron"], ["crane", "tram"])
    )
    assert one.names[1] == "crane (crane.n.05)" and two.names[1] == "crane (crane.n.04)"


def test_a_noun_said_as_thing_and_as_stuff_is_two_classes():
    words = name_phrases(("sky",), ["a rock", "rocks", "the sky"], [0, 1, 2], "context", [False, True, False])
    assert words.names == ("sky", "rock (rock.n.01)", "rock (rock.n.01, stuff)")
    assert words.table.tolist() == [1, 2, 0]


def test_labels_that_read_like_classes_are_refused():
    with pytest.raises(DataError, match=r"the label 'crane \(crane.n.05\)'"):
        check_truth_names(["sky", "crane (crane.n.05)"])
    check_truth_names(["crane (bird)"])


def test_labels_count_by_sense():
    names = ["car", "dog", "auto (car.n.01)", "glorp (no sense)", "puppy (puppy.n.01)", "hound (hound.n.01, stuff)"]
    assert merge_label_senses(names, SimilarityOptions()).tolist() == [0, 1, 0, 3, 4, 5]
    assert count_truth(names) == 2


def test_words_with_a_sense_of_a_label_are_merged_by_the_function_of_the_records():
    names = ["car", "dog", "auto (car.n.01)", "puppy (puppy.n.01)"]
    records = pl.DataFrame({"unit": ["one"], "names": ["\n".join(names)]})
    calls = []

    def merge_classes(given, table, *, keep):
        calls.append((table.tolist(), keep))
        return given.with_columns(pl.lit("merged").alias("unit"))

    found, merged = merge_words(records, SimilarityOptions(), merge_classes, keep=False)
    assert merged == {"auto (car.n.01)": "car"} and found["unit"].to_list() == ["merged"]
    assert merge_named_words(records, {"puppy (puppy.n.01)": "dog"}, merge_classes)["unit"].to_list() == ["merged"]
    assert calls == [([0, 1, 0, 3], False), ([0, 1, 2, 1], True)]
    labels = pl.DataFrame({"unit": ["one"], "names": ["car\ndog"]})
    assert merge_words(labels, SimilarityOptions(), merge_classes, keep=True) == (labels, {}) and len(calls) == 2


def test_similarity_of_free_words():
    names = ["car", "dog", "glorp (no sense)", "puppy (puppy.n.01)"]
    found = compute_label_similarity(names, SimilarityOptions())
    assert found.matrix[2].tolist() == [0, 0, 1, 0] and found.matrix[:, 2].tolist() == [0, 0, 1, 0]
    assert found.matrix[1, 3] == 0.5
    pairs = compute_label_pairs(names, SimilarityOptions()).pairs
    rows, columns = np.indices((4, 4)).reshape(2, -1)
    assert np.array_equal(pairs(rows, columns).reshape(4, 4), found.matrix)


def test_embeddings_compare_the_nouns(tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("car 1 0 0\ndog 0 1 0\npuppy 0 .8 .6\nglorp 0 1 0\n")
    options = SimilarityOptions(measure="glove", source=vectors)
    names = ["car", "dog", "puppy (puppy.n.01)", "glorp (no sense)", "hound (hound.n.01)"]
    matrix = compute_label_similarity(names, options).matrix
    assert matrix[1, 2] == pytest.approx(0.8) and matrix[3].tolist() == [0, 0, 0, 1, 0]
    assert matrix[1, 4] == pytest.approx(1)  # by the nearest hypernym that has a vector, as for labels


@given(st.lists(st.lists(st.sampled_from(["b (no sense)", "a (no sense)", "c (no sense)"]), unique=True), min_size=1))
@settings(max_examples=50, deadline=None)
def test_one_vocabulary_is_the_truth_and_then_all_classes_by_name(said):
    lists = [["cat", "sky", *sorted(words)] for words in said]
    joined = join_image_names(pl.DataFrame({"names": ["\n".join(names) for names in lists]}))
    if joined is None:
        assert len({tuple(names) for names in lists}) == 1
        return
    names, tables = joined
    assert names == ("cat", "sky", *sorted({word for words in said for word in words}))
    assert [[names[place] for place in table] for table in tables] == lists
    flat, start = flatten_tables(tables, np.array([len(table) for table in tables]))
    assert len(flat) == len(start) == sum(map(len, lists))


def test_python_and_the_command_line_say_it_in_the_same_words(tmp_path, hardlook):
    given = {"model": "planted-phrase-segmenter", "scenes": 4, "pred_words": "free", "resamples": 0}
    run = hl.run("open-miou", **given, out=tmp_path / "python")
    typed = [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    answer = hardlook("run", "open-miou", *typed, "--out", tmp_path / "typed")
    assert answer.code == 0, answer.err
    one, two = (json.loads(scores_text(tmp_path / run)) for run in ("python", "typed"))
    assert one["scores"] == two["scores"] and run.scores is not None
    assert "different phrases in free words" in {note["what"] for note in one["noted"]}
    manifest = json.loads((tmp_path / "typed" / "run.json").read_text())
    assert manifest["options"]["pred_words"] == "free"
    page = (tmp_path / "typed" / "report.html").read_text()
    assert "What each phrase was taken for" in page and "a domestic dog" in page


def test_other_values_are_refused(tmp_path):
    with pytest.raises(HardlookError):
        launch("open-miou", out=tmp_path, given={"scenes": 2, "pred_words": "loose"})
