"""Whole runs on the planted world: one opening an image, the same clicks in any order and any company."""

import json

import numpy as np
import polars as pl
import pytest

import hardlook as hl
from hardlook.data.rle import decode
from hardlook.errors import ModelError, OptionError
from hardlook.harness.benchmark import Unit
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.metrics.boundaries import BoundaryTruth
from hardlook.models.interactive.grabcut import GrabCut
from hardlook.models.planted.disc import Disc
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.units import list_units, prepare_unit

SMALL = {"scenes": 4, "rounds": 6, "resamples": 0}

FRAGILE = {"fragility": 0.8, "blunt": 0.5}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("rclicks", SMALL)


@pytest.fixture(scope="module")
def records(rehearsal):
    return rehearsal.records("disc", FRAGILE)


class Counting:
    """The planted model, and how often it was asked to open a picture and to answer how many prompts."""

    def __init__(self):
        self.opened, self.batches = 0, []

    def open(self, image):
        self.opened += 1
        inner = Disc(**FRAGILE).open(image)

        class Session:
            def predict(session, prompts):
                self.batches.append(len(prompts))
                return inner.predict(prompts)

        return Session()


def units_of(**given):
    return [prepare_unit(unit) for unit in list_units(RClicksOptions(**{**SMALL, **given}))]


def as_frame(rows):
    return RCLICKS.schema.frame(rows).sort("unit")


def test_each_image_is_opened_once_and_courses_go_together():
    units = units_of()
    model = Counting()
    rows = as_frame(RCLICKS.evaluate(units, model))
    assert model.opened == len(units)
    assert rows["opened"].to_list() == [1] * len(units)
    assert max(model.batches) == 24  # the first clicks of 24 people are one batch
    assert 11 in model.batches


def test_instances_of_one_image_share_its_session():
    """The same scene as two instances of one group: one opening, and each clicked on as if it were alone."""
    first, *_ = units_of()
    twin = Unit("planted/twin", first.payload, group=first.group)
    model = Counting()
    rows = as_frame(RCLICKS.evaluate([first, twin], model))
    assert model.opened == 1
    assert sorted(rows["opened"].to_list()) == [0, 1]
    one, other = rows.drop("unit", "opened").to_dicts()
    assert one == other


def test_order_company_and_batches_change_nothing(records):
    for given, order in (({"prompts_a_call": 1}, 1), ({"prompts_a_call": 4}, -1), ({"prompts_a_call": 11}, 1)):
        units = units_of(**given)[::order]
        alone = [row for unit in units for row in RCLICKS.evaluate([unit], Disc(**FRAGILE))]
        assert as_frame(alone).select(records.columns).equals(records)


def test_the_first_of_several_draws_is_the_draw_of_a_run_without_the_option(records):
    model = Counting()
    drawn = as_frame(RCLICKS.evaluate(units_of(draws=3, halves=True), model)).to_dicts()
    groups = [f"G{number}" for number in range(1, 11)]
    names = [*groups, "lower", "upper"]
    assert drawn[0]["courses"].split(",") == ["base", *names, *(f"{name}#{draw}" for draw in (2, 3) for name in names)]
    for several, alone in zip(drawn, records.to_dicts(), strict=True):
        for name in ("x", "y", "positive", "intersection", "union"):
            values = np.reshape(several[name], (37, -1))
            assert values[:11].ravel().tolist() == alone[name]
        x, y = (np.reshape(several[name], (37, -1)) for name in ("x", "y"))
        pairs = [(x[course], y[course]) for course in range(37)]
        # Each group's first clicks of three draws: by chance one pixel twice, not all over the groups.
        assert any(pairs[course][0][0] != pairs[course + 12][0][0] for course in range(1, 11))
        assert any(pairs[course + 12][0][0] != pairs[course + 24][0][0] for course in range(1, 11))
        for name in ("people", "user_intersection", "opened", "pixels"):
            assert several[name] == alone[name]
    # No forward pass holds prompts of two draws, whose number could change the last bits of a network's masks.
    assert max(size for size in model.batches if size != 24) == 13


def test_every_click_lies_on_what_is_wrong(rehearsal):
    """First clicks are on the object and positive; later ones never twice on a pixel."""
    instances = {unit.id: unit.payload.instance for batch in rehearsal.prepared for unit in batch.units}
    for row in rehearsal.records("disc", FRAGILE).to_dicts():
        shape = (11, row["rounds"])
        x, y, positive = (np.reshape(row[name], shape) for name in ("x", "y", "positive"))
        assert instances[row["unit"]].target[y[:, 0], x[:, 0]].all()
        assert positive[:, 0].all()
        for course in range(11):
            clicked = [(a, b) for a, b in zip(x[course], y[course], strict=True) if a >= 0]
            assert len(set(clicked)) == len(clicked)


def test_a_perfect_mask_ends_the_clicking_or_not():
    ours = InMemoryRun("rclicks", SMALL).records("disc")
    released = InMemoryRun("rclicks", {**SMALL, "perfect": "released"}).records("disc")
    base = slice(0, SMALL["rounds"])
    for row in ours.to_dicts():
        assert row["x"][base][1:] == [-1] * 5
        assert row["intersection"][base] == row["union"][base]
    for row in released.to_dicts():
        assert row["x"][base][1:] == row["y"][base][1:] == [0] * 5
        assert row["positive"][base] == [1, 0, 0, 0, 0, 0]
    # It changes no NoC.
    cards = [RCLICKS.score(rows, RClicksOptions(resamples=0)) for rows in (ours, released)]
    assert cards[0].get("noc90").value == cards[1].get("noc90").value


def test_fragility_shows_in_the_groups_and_not_in_the_centre_rule(rehearsal):
    cards = [rehearsal.score("disc", {"fragility": dial}) for dial in (0.0, 0.5, 1.0)]
    for name in ("dgr", "nsr", "dsb", "nsr1"):
        values = [card.get(name).value for card in cards]
        assert values == sorted(values)
        assert values[0] < values[2]
    assert {card.get("noc90-base").value for card in cards} == {1.0}


def test_halves_click_in_their_half_and_give_the_papers_reading():
    given = {**SMALL, "halves": True, "reading": {"dhh": "paper"}}
    card = InMemoryRun("rclicks", given).score("disc", {"fragility": 1.0})
    assert card.get("dhh").reading == "dhh=paper"
    assert card.get("dhh").value > 0


@pytest.mark.parametrize("clicks", ["uniform", "distance", "center", "planted-clicks", "planted-users"])
def test_every_click_model_without_weights_serves(clicks):
    card = InMemoryRun("rclicks", {**SMALL, "scenes": 2, "clicks": clicks}).score("disc", {"fragility": 0.5})
    assert card.get("noc90").value >= 1


def test_the_click_model_is_part_of_what_answers_depend_on():
    kinds = [RClicksOptions(clicks=name) for name in ("distance", "uniform")]
    kinds += [RClicksOptions(clicks="planted-clicks", clicks_args=f"edge={dial}") for dial in (0, 1)]
    assert len({RCLICKS.sources(options)["click model"] for options in kinds}) == 4


def test_wrong_options_and_models_say_so():
    with pytest.raises(ModelError, match="no model 'distanze'"):
        RCLICKS.sources(RClicksOptions(clicks="distanze"))
    with pytest.raises(ModelError, match="does not have the role click-model"):
        RCLICKS.sources(RClicksOptions(clicks="disc"))
    with pytest.raises(ModelError, match="answers clicks"):
        RCLICKS.evaluate(units_of()[:1], None)
    with pytest.raises(OptionError, match="no such reading"):
        RCLICKS.readings(RClicksOptions(reading={"nof": "mine"}))


def test_records_are_whole_numbers_that_give_the_scores_again(rehearsal, records):
    card = RCLICKS.score(records, rehearsal.options)
    row = records.filter(pl.col("unit") == "planted/000001").to_dicts()[0]
    ious = np.reshape(row["intersection"], (11, 6)) / np.reshape(row["union"], (11, 6))
    first = [int(np.argmax(course >= 0.9)) + 1 if (course >= 0.9).any() else 6 for course in ious]
    single = RCLICKS.score(records.filter(pl.col("unit") == row["unit"]), rehearsal.options)
    assert single.get("noc90-base").value == first[0]
    assert single.get("noc90").value == pytest.approx(np.mean(first[1:]))
    assert card.get("noc90").n == 4


@pytest.mark.parametrize("given", [{"at_most": 2}, {"min_area": 9}, {"split": "val"}, {"user_clicks": "clicks.csv"}])
def test_options_of_data_are_refused_without_data(given):
    with pytest.raises(OptionError, match="without data"):
        list_units(RClicksOptions(**given))


def test_the_report_names_the_click_model_and_what_it_says_of_itself():
    given = {**SMALL, "scenes": 2, "clicks": "saliency", "clicks_args": "model=planted-saliency"}
    rehearsal = InMemoryRun("rclicks", given)
    rows = rehearsal.records("disc")
    sections = RCLICKS.report(rows, RCLICKS.score(rows, rehearsal.options))
    (driven,) = [section.text for section in sections if section.title == "How it was driven"]
    assert "saliency (model=planted-saliency): SM: salience by planted-saliency" in driven
    assert "clicks by `saliency (model=planted-saliency)`" in sections[0].text


def test_boundaries_are_counted_where_the_option_says_so(records):
    given = {"boundary": True, "draws": 2}
    units = units_of(**given)
    counted = as_frame(RCLICKS.evaluate(units, Disc(**FRAGILE)))
    assert records["boundary"].to_list() == [[]] * 4
    instances = {unit.id: unit.payload.instance for unit in units}
    for row in counted.to_dicts():
        counts = np.reshape(row["boundary"], (21, 6, 6))
        instance = instances[row["unit"]]
        assert (counts[..., 0] <= counts[..., 1]).all()
        assert len(set(counts[..., 4].ravel().tolist())) == 1  # the object has one contour
        last = decode(json.loads(row["last_masks"])[0])
        truth = BoundaryTruth.of(instance.target, instance.ignore)
        assert counts[0, -1].tolist() == list(vars(truth.count(last)).values())
    card = RCLICKS.score(counted.select(RCLICKS.schema.light), RClicksOptions(resamples=0, **given))
    ious = np.stack([np.reshape(row["boundary"], (21, 6, 6)) for row in counted.to_dicts()])
    ious = ious[..., 0] / ious[..., 1]
    area = 100 * (ious[..., 0] / 2 + ious[..., 1:-1].sum(-1) + ious[..., -1] / 2) / 5
    assert card.get("boundary-auc").value == pytest.approx(area[:, 1:].mean())
    assert card.get("boundary-auc-base").value == pytest.approx(area[:, 0].mean())
    assert 0 < card.get("boundary-f").value < 100
    # A boundary is a stricter test than the whole object.
    assert card.get("boundary-auc").value < card.get("auc").value
    plain = RCLICKS.score(records, RClicksOptions(resamples=0))
    assert not [score for score in plain.scores if score.name.startswith("boundary")]
    without = records.drop("boundary")  # as in runs of earlier versions
    assert RCLICKS.score(without, RClicksOptions(resamples=0)).get("auc").value == plain.get("auc").value


def test_boxes_are_for_models_that_take_them(tmp_path):
    units = units_of(first_prompt="box", rounds=2, groups=2)[:1]
    with pytest.raises(ModelError, match="Disc does not take boxes") as caught:
        RCLICKS.evaluate(units, Disc())
    assert "--first-prompt click" in str(caught.value.remedy)
    out = tmp_path / "run"
    with pytest.raises(ModelError, match="Disc does not take boxes"):
        hl.run("rclicks", model=Disc(), scenes=2, first_prompt="box", out=out, progress=False)
    assert not [*out.glob("records/*"), *out.glob("failures/*")]  # refused before the first object, not once for each
    [row] = RCLICKS.evaluate(units, GrabCut())
    assert np.reshape(row["x"], (3, 2))[:, 0].tolist() == [-1] * 3
    card = RCLICKS.score(as_frame([row]).select(RCLICKS.schema.light), RClicksOptions(resamples=0, first_prompt="box"))
    assert card.get("base-iou1").value > 0
    assert RCLICKS.pictures(units[0], row)
