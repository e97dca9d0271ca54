"""Single images are scored as runs of one image."""

import io
import json
from collections import Counter
from contextlib import redirect_stdout

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from two_vocabularies import spoken_records

from hardlook.errors import DataError
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.launch import launch
from hardlook.open_vocabulary.label_similarity import compute_label_similarity
from hardlook.open_vocabulary.miou import scores
from hardlook.report.terminal import print_scorecard
from hardlook.similarity.matrix_files import write_matrix
from hardlook.similarity.wordnet.nouns import load_nouns

BENCHMARKS = {name: find_benchmark(name) for name in ("open-miou", "closed-miou")}
BENCHMARK = BENCHMARKS["open-miou"]

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-miou", 6)


@pytest.fixture(scope="module")
def judged(records):
    return BENCHMARK.qualities(records, OPTIONS)


def test_an_image_is_judged_by_its_own_score(records, judged):
    options = OPTIONS.model_copy(update={"reading": {"mean-over": "gt-only"}})
    assert judged.columns == ["unit", *(quality.name for quality in BENCHMARK.card.qualities)]
    for row in judged.iter_rows(named=True):
        card = BENCHMARK.score(records.filter(pl.col("unit") == row["unit"]), options)
        assert row["image-open-miou"] == pytest.approx(card.get("open-miou").value)
        assert row["image-miou"] == pytest.approx(card.get("miou").value)
        assert row["image-gain"] == pytest.approx(card.get("open-gain").value)


def test_no_image_depends_on_the_others_or_on_the_size_of_parts(records, judged, monkeypatch):
    monkeypatch.setattr(scores, "MAX_COUNTS", 50)
    assert BENCHMARK.qualities(records, OPTIONS).equals(judged)
    assert BENCHMARK.qualities(records[2:4], OPTIONS).equals(judged[2:4])


def test_an_image_without_a_labelled_pixel_is_not_judged(records):
    empty = records.with_columns(cells=pl.lit([], pl.List(pl.Int64)), pixels=pl.lit([], pl.List(pl.Int64)))
    assert np.isnan(BENCHMARK.qualities(empty, OPTIONS)["image-open-miou"].to_numpy()).all()
    assert BENCHMARK.caption(empty.row(0, named=True)) == "No pixel is labelled."


@pytest.mark.parametrize("count", [1, 2, 3])
def test_two_class_sets_have_a_harmonic_mean_and_other_numbers_of_sets_have_none(records, tmp_path, count):
    sets = {"animals": ["cat", "dog"], "vehicles": ["car", "bus"], "ground": ["sky", "grass"]}
    (tmp_path / "sets.json").write_text(json.dumps(dict(list(sets.items())[:count])))
    card = BENCHMARK.score(records, OPTIONS.model_copy(update={"class_sets": tmp_path / "sets.json"}))
    for name in ("miou", "open-miou"):
        found = {one.slice["classes"]: one.value for one in card.scores if one.name == name and "classes" in one.slice}
        assert list(found) == [*list(sets)[:count], *(["harmonic mean"] if count == 2 else [])]
        if count == 2:
            expected = 2 / (1 / found["animals"] + 1 / found["vehicles"])
            assert found["harmonic mean"] == pytest.approx(expected)


def test_only_confusions_are_better_when_low_and_no_model_is_ranked_by_what_is_given_back():
    meanings = BENCHMARK.card.scores
    assert {one.name for one in meanings if not one.higher_is_better} == {"confused-pixels", "unforgiven-pixels"}
    assert [one.name for one in meanings if not one.ranked] == ["open-gain", "said-in"]
    assert [one.name for one in meanings if one.headline] == ["open-miou", "miou", "open-gain"]


def test_a_context_is_scored_as_a_run_of_its_images_alone(records):
    named = records.with_columns(context=pl.Series(["beach", "fog", "beach", "", "fog", "fog"]))
    card = BENCHMARK.score(named, OPTIONS)
    for context, images in (("beach", 2), ("fog", 3)):
        alone = BENCHMARK.score(named.filter(pl.col("context") == context), OPTIONS)
        for name in ("miou", "open-miou", "open-gain", "pixel-accuracy"):
            ours, theirs = card.get(name, context=context), alone.get(name)
            assert (ours.value, ours.n, ours.rests_on) == (pytest.approx(theirs.value), images, theirs.rests_on)
    assert {one.slice["context"] for one in card.scores if "context" in one.slice} == {"beach", "fog"}


def test_the_reading_of_means_over_classes_is_that_of_means_alone(records):
    card = BENCHMARK.score(records, OPTIONS.model_copy(update={"reading": {"mean-over": "gt-only"}}))
    readings = {one.name: one.reading for one in card.scores if not one.slice}
    assert {name for name, reading in readings.items() if reading} == {"miou", "open-miou", "open-gain"}
    assert {reading for reading in readings.values() if reading} == {"mean-over=gt-only"}


def test_images_without_a_labelled_pixel_are_counted_where_there_are_any(records):
    def notes(some):
        return [(one.count, one.examples) for one in BENCHMARK.score(some, OPTIONS).left_out if "pixel" in one.what]

    assert notes(records) == []
    units, empty = records["unit"].to_list(), pl.int_range(pl.len()) < 2
    columns = [
        pl.when(empty).then(pl.lit([], records.schema[name])).otherwise(name).alias(name)
        for name in ("cells", "pixels")
    ]
    assert notes(records.with_columns(columns)) == [(2, tuple(units[:2]))]


def test_similarity_forgives_a_part_of_each_confusion(records):
    card = BENCHMARK.score(records, OPTIONS)
    confused, unforgiven = (
        {(one.slice["true"], one.slice["called"]): one.value for one in card.scores if one.name == name}
        for name in ("confused-pixels", "unforgiven-pixels")
    )
    assert confused and confused.keys() == unforgiven.keys()
    for (true, called), count in confused.items():
        alike = compute_label_similarity((true, called), OPTIONS).matrix[0, 1]
        assert true != called and count == int(count) >= 1
        assert unforgiven[true, called] == pytest.approx(count * (1 - alike))
    assert list(unforgiven.values()) == sorted(unforgiven.values(), reverse=True)
    wrong = (1 - card.get("pixel-accuracy").value) * records["pixels"].list.sum().sum()
    assert len(confused) == scores.MAX_CONFUSIONS or sum(confused.values()) == pytest.approx(wrong)
    assert sum(confused.values()) <= wrong * (1 + 1e-9)


LABELS = 30


def write_maps(folder, *, added, labels=LABELS, images=4, wrong=0.2):
    """True maps with the numbers 0 to `labels` - 1; predictions, four fifths right, with `added` to every number."""
    rng = np.random.default_rng(3)
    for name in ("gt", "pred"):
        (folder / name).mkdir()
    for image in range(images):
        truth = np.repeat(rng.integers(0, labels, (16, 8)), 4, axis=1)
        predicted = np.where(rng.random(truth.shape) < wrong, rng.integers(0, labels, truth.shape), truth)
        np.save(folder / "gt" / f"{image}.npy", truth)
        np.save(folder / "pred" / f"{image}.npy", predicted + added)
    (folder / "labels.csv").write_text("id,name\n" + "".join(f"{k},label {k}\n" for k in range(labels)))
    return {"gt": folder / "gt", "pred": folder / "pred", "labels": str(folder / "labels.csv"), "resamples": 0}


@pytest.mark.parametrize("name", ["open-miou", "closed-miou"])
@pytest.mark.parametrize(
    ("added", "numbering", "hint"),
    [(0, None, ""), (1, None, "lower"), (-1, None, "higher"), (1, "one-based", ""), (2, "one-based", "lower")],
)
def test_predictions_numbered_off_by_one_are_warned_of(tmp_path, name, added, numbering, hint):
    given = write_maps(tmp_path, added=added)
    given |= {"unknown": "zero"} if name == "open-miou" else {}
    done = launch(name, out=tmp_path / "run", given={**given, "pred_numbering": numbering})
    card = done.scored.scorecard
    assert card.units.failed == 0
    warnings = [note for note in card.noted if note.warning]
    with redirect_stdout(io.StringIO()) as output:
        print_scorecard(card, Console(width=300, file=output))
    printed = output.getvalue()
    page = " ".join(section.text for section in BENCHMARKS[name].report(done.scored.records, card))
    if not hint:
        assert card.get("miou").value > 0.6
        assert not warnings
        assert "off by one" not in printed + page
        return
    assert card.get("miou").value < 0.05
    (warning,) = warnings
    assert f"with every predicted label one {hint}: check --numbering and --pred-numbering" in warning.why
    assert float(warning.why.split("and 0")[1].split()[0]) > 0.6
    assert "Warning: predicted numbers look off by one: the mIoU is 0.0" in printed
    assert "--numbering and --pred-numbering" in printed
    assert page.startswith("Predicted numbers look off by one: the mIoU is 0.0")
    # The numbers of the last label, or of none, are no label.
    unknown = [note for note in card.noted if note.what.startswith("pixels predicted as a number that is")]
    wrong = [(np.load(tmp_path / "pred" / f"{i}.npy") == LABELS + (numbering is not None)).sum() for i in range(4)]
    if added > 0:
        assert [note.count for note in unknown] == [sum(wrong)]
        assert unknown[0].examples == (str(LABELS + (numbering is not None)),)
        assert "--pred-numbering" in unknown[0].why
        assert f"pixels predicted as a number that is no label ({unknown[0].examples[0]})" in printed
    else:
        assert not unknown  # -1 says no label


def test_a_shift_must_double_the_score_and_raise_it_by_a_tenth(tmp_path):
    card = launch("closed-miou", out=tmp_path / "run", given=write_maps(tmp_path, added=1, wrong=0.93)).scored.scorecard
    assert card.get("miou").value < 0.05
    assert not [note for note in card.noted if note.warning]


def test_records_without_the_columns_of_unknown_numbers_are_read(tmp_path):
    done = launch("closed-miou", out=tmp_path / "run", given=write_maps(tmp_path, added=0))
    assert done.scored.records["unknown_pixels"].to_list() == [[]] * 4
    rows = [{k: v for k, v in row.items() if "unknown" not in k} for row in done.scored.records.to_dicts()]
    earlier = BENCHMARKS["closed-miou"].schema.frame({**row, "prediction": b""} for row in rows)
    assert BENCHMARKS["closed-miou"].score(earlier, done.scored.options).noted == ()


def allow_matrices_of(labels, patch):
    for module in ("label_similarity", "miou.evaluation", "miou.scores"):
        patch.setattr(f"hardlook.open_vocabulary.{module}.MAX_MATRIX_LABELS", labels)


def test_very_many_labels_are_scored_by_those_that_occur(tmp_path, monkeypatch):
    given = write_maps(tmp_path, added=0, labels=60) | {"unknown": "zero", "ignore": 65535}
    few = launch("open-miou", out=tmp_path / "few", given=given).scored
    allow_matrices_of(50, monkeypatch)
    (tmp_path / "labels.csv").write_text("id,name\n" + "".join(f"{k},label {k}\n" for k in range(3000)))
    many = launch("open-miou", out=tmp_path / "many", given=given).scored
    assert many.records["labels"][0] == 3000
    for name in ("miou", "open-miou", "pixel-accuracy", "open-fw-iou"):
        one, other = few.scorecard.get(name), many.scorecard.get(name)
        assert other.value == pytest.approx(one.value, abs=1e-12)
    one, other = (run.scorecard.get("iou", **{"class": "label 7"}) for run in (few, many))
    assert one.value == other.value
    qualities = [BENCHMARK.qualities(run.records, run.options)["image-open-miou"].to_numpy() for run in (few, many)]
    assert qualities[1] == pytest.approx(qualities[0], abs=1e-12)
    joint = BENCHMARK.merge_vocabularies([many.records, many.records])
    assert joint[0]["labels"][0] < 100


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("limit", [50, 8])
def test_a_matrix_of_very_many_labels_scores_those_that_occur(tmp_path, monkeypatch, named, limit):
    """Of 60 labels twelve occur: more or fewer than are scored by a matrix."""
    given = write_maps(tmp_path, added=0, labels=12) | {"ignore": 65535, "similarity": tmp_path / "S.npy"}
    (tmp_path / "labels.csv").write_text("id,name\n" + "".join(f"{k},label {k}\n" for k in range(60)))
    rng = np.random.default_rng(4)
    halves = rng.random((60, 60)) / 2
    matrix = np.where(np.eye(60, dtype=bool), 1, halves + halves.T)
    order = rng.permutation(60) if named else np.arange(60)
    np.save(tmp_path / "S.npy", matrix[np.ix_(order, order)])
    if named:
        (tmp_path / "S.txt").write_text("".join(f"label {k}\n" for k in order))
    few = launch("open-miou", out=tmp_path / "few", given=given).scored
    expected = BENCHMARK.qualities(few.records, few.options)["image-open-miou"].to_list()
    allow_matrices_of(limit, monkeypatch)
    many = launch("open-miou", out=tmp_path / "many", given=given).scored
    assert many.scorecard.get("open-miou").value == pytest.approx(few.scorecard.get("open-miou").value, abs=1e-12)
    found = BENCHMARK.qualities(many.records, many.options)["image-open-miou"].to_list()
    assert found == pytest.approx(expected, abs=1e-12)
    joint, _ = BENCHMARK.merge_vocabularies([many.records, many.records])
    if named:
        (tally, *_) = BENCHMARK.tallies(joint, many.options)
        assert tally.entries
    else:
        with pytest.raises(DataError, match=r"rows, one per label, got 60") as caught:
            BENCHMARK.tallies(joint, many.options)
        assert "S.txt" in caught.value.remedy


NOUNS = 420


@pytest.fixture(scope="module")
def run_of_nouns(tmp_path_factory):
    """A run of nouns, all of them used."""
    folder, rng, nouns = tmp_path_factory.mktemp("nouns"), np.random.default_rng(1), load_nouns()
    nodes = rng.choice(len(nouns.graph), NOUNS, replace=False).tolist()
    rows = "".join(f"{row},noun {row},{nouns.name(node)}\n" for row, node in enumerate(nodes))
    (folder / "labels.csv").write_text("id,name,synset\n" + rows)
    for name in ("gt", "pred"):
        (folder / name).mkdir()
    for image in range(4):
        truth = rng.permutation(np.repeat(np.arange(NOUNS), 5)).reshape(60, 35)
        np.save(folder / "gt" / f"{image}.npy", truth)
        np.save(folder / "pred" / f"{image}.npy", np.where(rng.random(truth.shape) < 0.5, truth, truth[::-1]))
    given = {"gt": folder / "gt", "pred": folder / "pred", "labels": str(folder / "labels.csv"), "ignore": 65535}
    return launch("open-miou", out=folder / "run", given={**given, "resamples": 30}).scored


def test_very_many_labels_that_all_occur_are_scored_without_a_matrix(run_of_nouns, monkeypatch):
    """`benchmarks/open_miou_many_labels.py` measures the memory of 22,000 labels."""
    records, options, expected = run_of_nouns.records, run_of_nouns.options, run_of_nouns.scorecard
    qualities, tallies = BENCHMARK.qualities(records, options), BENCHMARK.tallies(records, options)
    allow_matrices_of(100, monkeypatch)
    monkeypatch.setattr("hardlook.harness.tally.MAX_TOTALS", 6 * NOUNS * 7)
    for name in ("label_similarity.compute_similarity", "miou.scores.count_pixels"):
        monkeypatch.setattr(f"hardlook.open_vocabulary.{name}", None)
    card = BENCHMARK.score(records, options)
    assert [(one.name, one.slice, one.n, one.rests_on) for one in card.scores] == [
        (one.name, one.slice, one.n, one.rests_on) for one in expected.scores
    ]
    assert [one.value for one in card.scores] == pytest.approx([one.value for one in expected.scores], abs=1e-12)
    bounds = [
        [value for one in some.scores if one.interval for value in (one.interval.low, one.interval.high)]
        for some in (card, expected)
    ]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-9, nan_ok=True)
    monkeypatch.undo()
    with pytest.MonkeyPatch.context() as patch:
        allow_matrices_of(100, patch)
        ours = BENCHMARK.qualities(records, options)["image-open-miou"].to_numpy()
        parts = BENCHMARK.tallies(records, options)
    assert ours == pytest.approx(qualities["image-open-miou"].to_numpy(), abs=1e-12)
    # Clusters of another run are taken in as they are into one tally.
    swaps = np.array([[0.0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    mixed = np.concatenate([part.mixed(part, swaps) for part in parts], axis=1)
    assert mixed == pytest.approx(tallies[0].mixed(tallies[0], swaps), abs=1e-12)


def test_a_matrix_of_thousands_of_labels_is_read_where_labels_meet(tmp_path, monkeypatch):
    allow_matrices_of(50, monkeypatch)
    names = [f"label {k}" for k in range(60)]
    rng = np.random.default_rng(0)
    matrix = rng.random((61, 61))
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T + np.eye(61)
    given = write_maps(tmp_path, added=0, labels=60) | {"similarity": tmp_path / "S.npy", "compare": ()}
    write_matrix(tmp_path / "S.npy", matrix[:60, :60], names)
    value = launch("open-miou", out=tmp_path / "many", given=given).scored.scorecard.get("open-miou").value
    allow_matrices_of(60, monkeypatch)
    few = launch("open-miou", out=tmp_path / "few", given=given).scored.scorecard.get("open-miou").value
    assert value == pytest.approx(few, abs=1e-12)


def test_the_25_most_costly_confusions_are_listed(tmp_path):
    done = launch("open-miou", out=tmp_path / "run", given={**write_maps(tmp_path, added=0), "unknown": "zero"})
    counts = Counter()
    for path in (tmp_path / "gt").iterdir():
        truth, predicted = np.load(path), np.load(tmp_path / "pred" / path.name)
        counts.update(zip(truth[truth != predicted].tolist(), predicted[truth != predicted].tolist(), strict=True))
    assert len(counts) > 100
    card = done.scored.scorecard
    # Labels that WordNet does not know have nothing in common, so that cost and count are the same.
    for name in ("confused-pixels", "unforgiven-pixels"):
        assert [one.value for one in card.scores if one.name == name] == sorted(counts.values(), reverse=True)[:25]


@pytest.mark.parametrize(("numbers", "named"), [(5, "40, 41, 42, 43, 44"), (7, "40, 41, 42, 43, 44 and 2 more")])
def test_of_many_numbers_that_are_no_label_five_are_named(records, numbers, named):
    first = pl.int_range(pl.len()) == 0
    ints = records.schema["unknown_numbers"]
    listed = pl.lit([39 + number for number in range(numbers, 0, -1)], ints)
    some = records.with_columns(
        unknown_numbers=pl.when(first).then(listed).otherwise(pl.lit([41], ints)),
        unknown_pixels=pl.when(first).then(pl.lit([2] * numbers, ints)).otherwise(pl.lit([3], ints)),
    )
    [note] = scores.note_numbering(some, OPTIONS)
    assert note.what == f"pixels predicted as a number that is no label ({named})"
    assert (note.count, note.examples, note.kept) == (2 * numbers + 3 * 5, ("40", "41", "42", "43", "44"), True)
    assert note.why.startswith(f"{numbers} numbers in 6 of 6 images are no label, and so wrong")
    assert scores.note_numbering(records, OPTIONS) == ()


def test_of_many_images_without_a_labelled_pixel_five_are_named(records):
    empty = records.with_columns(cells=pl.lit([], records.schema["cells"]))
    [note] = scores.note_empty_images(empty)
    assert (note.count, note.examples) == (6, tuple(records["unit"].to_list()[:5]))
    assert scores.note_empty_images(records) == ()


def test_words_that_no_pixel_has_need_no_sense(records):
    names = records["names"][0].split("\n")
    width, usual = len(names), scores._compute_run_similarity(records, OPTIONS)
    # Only some labels are used where one image is scored: another one is then a word of another model.
    one = records.head(1)
    seen = scores.read_cells(one)
    own = sorted({*seen.true.tolist(), *seen.predicted.tolist()} - {width})
    free = next(place for place in range(width) if place not in own)
    odd = one.with_columns(names=pl.lit("\n".join("glorp" if k == free else name for k, name in enumerate(names))))
    found = scores._compute_run_similarity(odd, OPTIONS)
    assert len(own) > 1 and found[np.ix_(own, own)] == pytest.approx(usual[np.ix_(own, own)])
    assert found[free].tolist() == np.eye(width)[free].tolist()
    taken = one.with_columns(names=pl.lit("\n".join("glorp" if k == own[0] else name for k, name in enumerate(names))))
    with pytest.raises(DataError, match="glorp"):
        scores._compute_run_similarity(taken, OPTIONS)
