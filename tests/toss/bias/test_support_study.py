"""Support ablations: what is shown in each, what planted models find, and the scores against plain loops."""

import numpy as np
import one_shot_oracle as oracle
import pytest
from one_shot_folders import FIXED, one_shot_run, write_one_shot_folder
from PIL import Image

from hardlook.errors import DataError
from hardlook.harness.options import parse_options
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.toss.bias.support_study import BIAS_SUPPORT

CONDITIONS = ("correct", "other-class", "no-mask", "no-image", "other-class-no-mask")

SPURIOUS = CONDITIONS[1:]

SALIENCY = {"bias-saliency": {"saliency": "planted-saliency"}}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("bias-support", {"scenes": 24, "resamples": 0, "pairs_a_class": 10})


@pytest.fixture(scope="module")
def shown(rehearsal):
    """{pair: {condition: read pair}}."""
    found = {}
    for batch in rehearsal.prepared:
        for unit in batch.units:
            condition = unit.payload.slices["condition"]
            found.setdefault(unit.id.removesuffix(f"-{condition}"), {})[condition] = unit.payload
    return found


def test_every_pair_has_the_five_conditions(shown):
    assert len(shown) > 30
    assert all(tuple(sorted(pairs)) == tuple(sorted(CONDITIONS)) for pairs in shown.values())
    for pairs in shown.values():
        assert len({pair.query for pair in pairs.values()}) == 1


def test_supports_of_another_class_are_of_another_class(shown):
    for pairs in shown.values():
        source = pairs["correct"].settings.source
        own = source.class_of(pairs["correct"].query)
        for condition in ("correct", "no-mask", "no-image"):
            assert pairs[condition].supports == pairs["correct"].supports
            assert source.class_of(pairs[condition].supports[0]) == own
        [other] = pairs["other-class"].supports
        assert source.class_of(other) != own
        assert pairs["other-class-no-mask"].supports == (other,)


def test_masks_and_images_are_emptied_where_they_are_to_be(shown):
    for pairs in shown.values():
        whole = {name: pairs[name].support[0] for name in CONDITIONS}
        assert whole["correct"].mask.any()
        assert (whole["no-mask"].image == whole["correct"].image).all()
        assert not whole["no-mask"].mask.any()
        assert not whole["no-image"].image.any()
        assert (whole["no-image"].mask == whole["correct"].mask).all()
        assert whole["other-class"].mask.any()
        assert not whole["other-class-no-mask"].mask.any()
        assert (whole["other-class-no-mask"].image == whole["other-class"].image).all()


def test_a_model_that_looks_finds_nothing_under_spurious_supports(rehearsal):
    card = rehearsal.score("planted-one-shot", {"support_blind": 0.0})
    assert card.get("correct").value == 1
    for condition in SPURIOUS:
        assert card.get(condition).value == 0
        assert card.get("drop", support=condition).value == 1
        assert card.get("left", support=condition).value == 0


def test_a_blind_model_finds_something(rehearsal):
    card = rehearsal.score("planted-one-shot", {"support_blind": 1.0})
    assert card.get("correct").value == 1
    for condition in SPURIOUS:
        assert card.get(condition).value > 0.2
        assert card.get("left", support=condition).value > 0.2


def test_a_model_that_never_looks_loses_nothing(rehearsal):
    card = rehearsal.score("whole-image")
    for condition in SPURIOUS:
        assert card.get("drop", support=condition).value == 0
        assert card.get("left", support=condition).value == 1


@pytest.mark.parametrize("void", ["ignored", "background"])
def test_scores_are_those_of_plain_loops(rehearsal, void):
    records = rehearsal.records("planted-one-shot", {"saliency": 0.5, "support_blind": 0.5, "ragged": 1.0})
    rows = records.to_dicts()
    options = rehearsal.options.model_copy(update={"reading": {"void": void}})
    found = {
        (score.name, tuple(sorted(score.slice.items()))): score.value
        for score in BIAS_SUPPORT.score(records, options).scores
    }
    expected = {}
    mious = {name: oracle.miou(oracle.of(rows, condition=name), void) for name in CONDITIONS}
    for name in CONDITIONS:
        own, at = oracle.of(rows, condition=name), ("support", name)
        expected[name, ()] = mious[name]
        expected["pair-iou", (at,)] = oracle.pair_iou(own, void)
        for fold in oracle.values_of(own, "fold"):
            expected["miou", (("fold", str(fold)), at)] = oracle.miou(oracle.of(own, fold=fold), void)
        for label in oracle.values_of(own, "class"):
            expected["iou", (("class", label), at)] = oracle.iou(oracle.of(own, **{"class": label}), void)
    for name in SPURIOUS:
        expected["drop", (("support", name),)] = mious["correct"] - mious[name]
        expected["left", (("support", name),)] = mious[name] / mious["correct"]
    assert found == pytest.approx(expected)


def test_without_the_right_support_there_is_no_drop(rehearsal):
    records = rehearsal.records("planted-one-shot", {"support_blind": 1.0})
    card = BIAS_SUPPORT.score(records.filter(records["condition"] != "correct"), rehearsal.options)
    assert card.get("no-mask").value > 0
    assert not [score for score in card.scores if score.name in ("drop", "left", "correct")]


def test_only_pairs_that_have_both_supports_are_compared(rehearsal):
    """A fold of one class has no other class, and units fail: a model that never looks has lost nothing by that."""
    records = rehearsal.records("whole-image")
    first = records["class"].sort()[0]
    failed = [f"{unit}-no-image" for unit in records.filter(records["condition"] == "correct")["unit"][::3]]
    failed = [unit.replace("-correct", "") for unit in failed]
    lost = records["condition"].str.starts_with("other-class") & (records["class"] == first)
    records = records.filter(~lost & ~records["unit"].is_in(failed))
    card = BIAS_SUPPORT.score(records, rehearsal.options)
    count = dict(records["condition"].value_counts().iter_rows())
    assert card.get("other-class").value != card.get("correct").value != card.get("no-image").value
    for condition in SPURIOUS:
        assert card.get("drop", support=condition).value == 0
        assert card.get("left", support=condition).value == 1
        assert card.get("drop", support=condition).n == card.get("left", support=condition).n == count[condition]
    assert card.get("correct").n == count["correct"] > count["other-class"]


def test_fixed_lists_give_a_seeded_share_of_their_pairs(tmp_path):
    folder = write_one_shot_folder(tmp_path)
    given = {"data": folder.data, "resamples": 0, "pairs_a_class": 3}
    ids = [
        {unit.id for batch in InMemoryRun("bias-support", {**given, "seed": seed}).prepared for unit in batch.units}
        for seed in (0, 0, 1)
    ]
    assert ids[0] == ids[1] != ids[2]
    lines = {fold: folder.listed(FIXED / f"split{fold}_test.txt") for fold in (0, 1)}
    wanted = sum(
        min(3, [query.partition("_")[0] for query, _ in rows].count(number))
        for rows in lines.values()
        for number in {query.partition("_")[0] for query, _ in rows}
    )
    assert len(ids[0]) == 5 * wanted


def test_images_without_lists_are_paired_at_random(tmp_path):
    folder = write_one_shot_folder(tmp_path)
    done = one_shot_run(
        tmp_path / "run", {"voc": folder.voc}, benchmark="bias-support", pairs_a_class=4, args={"support_blind": 1.0}
    )
    card = done.scored.scorecard
    assert card.get("correct").value == 1
    assert card.get("no-mask").value > 0.2
    assert set(done.scored.records["listing"]) == {"drawn from the images given"}
    per_class = done.scored.records.filter(done.scored.records["condition"] == "correct")["class"].value_counts()
    assert per_class["count"].max() == 4


def test_images_that_cannot_be_read_are_counted_and_the_rest_is_paired(tmp_path):
    folder = write_one_shot_folder(tmp_path)
    folder.mask(folder.some_query).write_bytes(b"no picture")
    units = BIAS_SUPPORT.list_units(BIAS_SUPPORT.options(data={"voc": folder.voc}, pairs_a_class=4))
    [note] = units.left_out
    assert (note.what, note.count) == ("images", 1)
    assert note.examples[0].startswith(f"{folder.some_query}: ")
    assert units and not any(folder.some_query in unit.payload.query for unit in units)


def test_a_drop_counts_each_pair_once(rehearsal, shown):
    card = rehearsal.score("planted-one-shot", {"support_blind": 0.5})
    for name in ("drop", "left"):
        assert {card.get(name, support=condition).n for condition in SPURIOUS} == {len(shown)}


def test_folds_are_chosen_from_lists_drawn_pairs_and_the_planted_world(tmp_path):
    folder = write_one_shot_folder(tmp_path)
    drawn = {"voc": folder.voc}
    for data in (folder.data, drawn, {}):
        given = {"data": data, "scenes": 24, "pairs_a_class": 2}
        units = {
            folds: {unit.id: unit.payload.query for unit in BIAS_SUPPORT.list_units(options(**given, folds=folds))}
            for folds in (None, "1")
        }
        assert units["1"] == {name: query for name, query in units[None].items() if name.startswith("fold1-")}
        assert len(units["1"]) < len(units[None])
        assert BIAS_SUPPORT.list_folds(options(**given, folds="1")) == [1]
        assert BIAS_SUPPORT.list_folds(options(**given))[:2] == [0, 1]
    some = BIAS_SUPPORT.list_units(options(data=drawn, folds="0,7"))
    assert (some.left_out[0].examples, some.left_out[0].why) == (
        ("fold 7",),
        "the classes of these images make folds 0 to 3",
    )
    with pytest.raises(DataError, match="there is no fold 7"):
        BIAS_SUPPORT.list_units(options(data=drawn, folds="7"))


def options(**given):
    return parse_options(BIAS_SUPPORT.options, given)


def test_supports_with_an_empty_mask_are_counted_and_named(tmp_path):
    folder = write_one_shot_folder(tmp_path, folds=(0,))
    support = folder.listed(FIXED / "split0_test.txt")[0][1]
    path = folder.mask(support.partition("_")[2])
    labels = np.asarray(Image.open(path)).copy()
    labels[labels == int(support.partition("_")[0])] = 0
    Image.fromarray(labels).save(path)
    pairs = [row for row in folder.listed(FIXED / "split0_test.txt") if row[1] == support]
    for benchmark in ("toss", "bias-saliency"):  # the latter has two units of each pair
        given = {"fixed": True} if benchmark == "toss" else {}
        run = InMemoryRun(benchmark, {"data": folder.data, "resamples": 0, **given, **SALIENCY.get(benchmark, {})})
        [note] = [note for note in run.score("whole-image").noted if note.what == "pairs with an empty support"]
        assert note.count == len(pairs) and note.kept
    run = InMemoryRun("bias-support", {"data": folder.data, "resamples": 0})
    noted = {note.what: note for note in run.score("whole-image").noted}["pairs with an empty support"]
    # Supports whose mask is taken away on purpose are not among them.
    assert all(name.endswith(("-correct", "-other-class")) for name in noted.examples)
    assert noted.count >= len(pairs)
