import math
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from click_crowd import Person, open_store, take_part, world_study

from hardlook.collect.results import clicks_report
from hardlook.collect.results.clicks import collect_clicks
from hardlook.collect.results.clicks_report import (
    PAIR_METRICS,
    ClickGalleries,
    build_document,
    build_sections,
    describe_results,
)
from hardlook.collect.results.exclusion_rules import ExclusionRules
from hardlook.collect.study.validity import ClickValidator
from hardlook.errors import DataError
from hardlook.harness.verdicts import MIN_CLUSTERS
from hardlook.metrics.regions import crop_around
from hardlook.rclicks.user_clicks.comparison import ClickSetComparison, PairScores


@pytest.fixture(scope="module")
def collected(gathered):
    return collect_clicks(gathered.study, gathered.store)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A study in one display mode with two participants, the second of them late, and its store."""
    study = world_study(tmp_path_factory.mktemp("small"), scenes=2)
    with open_store(study) as store:
        rng = np.random.default_rng(0)
        ids = [take_part(study, store, Person(late=late), rng, now=1000 + late) for late in (4.0, 90.0)]
        yield SimpleNamespace(study=study, store=store, ids=ids)


def blocks_of(collected):
    """The blocks of all sections by their title."""
    sections = build_sections(collected, ClickGalleries(collected))
    return {block.title: block for section in sections for block in section.blocks}


@pytest.mark.parametrize("devices", [("pc",), ("pc", "mobile")])
def test_images_with_the_fewest_valid_clicks_come_first(gathered, devices):
    settings = gathered.study.settings.model_copy(update={"devices": devices})
    collected = collect_clicks(replace(gathered.study, settings=settings), gathered.store)
    pc, mobile = [5, 4, 3, 2, 1, 0, 7, 6], [9, 9, 0, 9, 9, 9, 9, 9]
    if devices == ("pc",):
        mobile = [0] * 8
    # In place of the computed frame, whose counts depend on chance.
    vars(collected)["images"] = collected.images.with_columns(
        pl.Series("valid_pc", pc), pl.Series("valid_mobile", mobile)
    )
    sections = build_sections(collected, ClickGalleries(collected))
    [images] = [section for section in sections if section.title == "Images"]
    counts = [row[4] for row in images.blocks[-1].rows]
    assert counts == ([0, 1, 2, 3, 4, 5, 6, 7] if devices == ("pc",) else [3, 0, 1, 2, 4, 5, 6, 7])


def test_display_modes_are_compared_only_if_there_are_two(collected, small):
    titles = ["What was collected", "Participants", "Images", "PC against mobile"]
    found = [section.title for section in build_sections(collected, ClickGalleries(collected))]
    assert found == [*titles, "Display modes against text"]
    single = collect_clicks(small.study, small.store)
    assert [section.title for section in build_sections(single, ClickGalleries(single))] == titles
    # Every click lies inside, so there is no gallery of those that missed.
    assert ClickGalleries(single).build_missed_gallery() == [] and "Where people missed" not in blocks_of(single)


def test_images_that_people_missed_most_are_shown_first(collected, recounted):
    inside = defaultdict(list)
    for row in recounted:
        inside[row["task"].full_stem, row["mode"]].append(row["inside"])
    shares = sorted((sum(hits) / len(hits), *name, len(hits)) for name, hits in inside.items())
    assert len([share for share, *_ in shares if share < 1]) > 4
    [gallery] = ClickGalleries(collected).build_missed_gallery()
    assert [(example.unit, example.caption) for example in gallery.examples] == [
        (f"grabcut/{stem} ({mode}, what was left out)", f"{100 * share:.0f} % of {count} clicks lie inside.")
        for share, stem, mode, count in shares[:4]
    ]
    assert blocks_of(collected)["Where people missed"] == gallery


@pytest.mark.parametrize(("click_type", "positive"), [("first", True), ("fn", True), ("fp", False)])
def test_only_clicks_on_false_positives_are_drawn_as_negative(collected, recounted, click_type, positive):
    tasks = tuple(replace(task, click_type=click_type) for task in collected.study.tasks)
    galleries = ClickGalleries(replace(collected, study=replace(collected.study, tasks=tasks)))
    [gallery] = galleries.build_missed_gallery()
    for example in gallery.examples:
        pictures = galleries.pictures[example.unit]
        shown = [
            row for row in recounted if example.unit.startswith(f"grabcut/{row['task'].full_stem} ({row['mode']}, ")
        ]
        dots = [point for picture in pictures for point in picture.points]
        assert len(dots) == len(shown) and {sign for *_, sign in dots} == {positive}
        for picture in pictures:
            name, count = picture.label.split(": ")
            assert count == ("1 click" if len(picture.points) == 1 else f"{len(picture.points)} clicks")
            assert name in ("valid", "outside", "batch invalid", "batch not complete")


def test_rules_of_exclusion_are_listed_with_the_people_they_leave_out(small):
    def listed(**rules):
        blocks = blocks_of(collect_clicks(small.study, small.store, ExclusionRules(**rules)))
        return [
            list(blocks[title].rows) for title in ("Rules of exclusion", "Participants left out") if title in blocks
        ]

    late = "median lateness in ms 90, above 50"
    assert listed(most_late_ms=50.0) == [[("most_late_ms", "50")], [(2, late)]]
    assert listed(most_late_ms=50.0, participants=("1", small.ids[1])) == [
        [("most_late_ms", "50"), ("participants named", 2)],
        [(1, "named"), (2, f"named; {late}")],
    ]
    assert listed(most_late_ms=500.0) == [[("most_late_ms", "500")]]
    assert listed() == []


@pytest.mark.parametrize("noted", [(), ("left_out",), ("counted",), ("left_out", "counted")])
def test_notes_of_the_making_are_shown_where_there_are_any(collected, noted):
    notes = {
        "left_out": [{"what": "objects", "count": 3, "why": "too small"}],
        "counted": [{"what": "images", "count": 2, "why": "cropped"}, {"what": "masks", "why": "empty"}],
    }
    made = {"left_out": [], "counted": [], **{name: notes[name] for name in noted}}
    sections = build_sections(replace(collected, study=replace(collected.study, made=made)), ClickGalleries(collected))
    expected = {
        "left_out": ("Left out when the study was made", [("objects", 3, "too small")]),
        "counted": ("Noted when the study was made", [("images", 2, "cropped"), ("masks", None, "empty")]),
    }
    found = [section for section in sections if section.title == "How the study was made"]
    assert [[(table.title, list(table.rows)) for table in section.blocks] for section in found] == (
        [[expected[name] for name in noted]] if noted else []
    )


def test_a_comparison_shows_means_with_their_intervals_to_three_places(collected):
    estimates = {
        name: {"value": 0.12345 + place, "low": 0.1, "high": 0.98765 + place} for place, name in enumerate(PAIR_METRICS)
    }
    row = {"stems": 7, "too_few": 2, "ks_undefined": 1, **estimates}
    single = {**row, PAIR_METRICS[0]: {"value": 0.5, "low": None, "high": None}}
    nothing = {**row, "stems": 0, **dict.fromkeys(PAIR_METRICS)}
    changed = replace(collected)
    vars(changed)["mode_summary"] = {"cut-out": row, "shifted": single, "mask": nothing}
    table = blocks_of(changed)["Display modes against text"]
    assert list(table.columns[:3]) == ["display mode", "images", "left out"] and table.columns[-1] == "without a test"
    first, second, last = (dict(zip(table.columns, cells, strict=True)) for cells in table.rows)
    assert [first[name] for name in ("display mode", "images", "left out", "without a test")] == ["cut-out", 7, 2, 1]
    for place, name in enumerate(PAIR_METRICS):
        assert first[name.upper()] == f"{place}.123 (0.100 to {place}.988)"
    # Without an interval the value alone, and nothing without a value.
    assert second[PAIR_METRICS[0].upper()] == "0.500" and last[PAIR_METRICS[0].upper()] is None


def with_pairs(collected, name, p_values):
    """What was collected, with one comparison of each p on the first image; None is no test."""
    task = collected.study.tasks[0]
    rows = tuple(
        PairScores(task.full_stem, task.dataset, "first", "", "pc", "mobile", 10 + place, 20 + place,
                   p is not None and p > 0.05, math.nan if p is None else p, 0.25, 0.125, "" if p else "too few")
        for place, p in enumerate(p_values)
    )  # fmt: skip
    changed = replace(collected)
    vars(changed)[name] = {"cut-out": ClickSetComparison(rows, 0)}
    return changed


P_VALUES = (0.01, 0.9, None, 0.2, 0.03, 0.5, 0.07, 0.3, 0.8, 0.001)


def test_the_gallery_of_devices_has_the_most_and_the_least_alike_images(collected):
    [gallery] = ClickGalleries(with_pairs(collected, "devices", P_VALUES)).build_device_gallery()
    captions = [example.caption for example in gallery.examples]
    # Alike from the largest p on, then different ones, those without a test last.
    tests = [
        *(f"alike (p 0.{p}0)" for p in (9, 8, 5, 3)),
        *(f"different (p 0.0{p})" for p in (3, 1, 0)),
        "no test (too few)",
    ]
    assert [caption.split(": ")[1].split(";")[0] for caption in captions] == tests
    assert captions[0] == ("11 clicks on a PC and 21 on a mobile device: alike (p 0.90); PL1 0.25, WD 0.125.")


@pytest.mark.parametrize("count", [1, 4, 8])
def test_no_image_is_in_a_gallery_twice(collected, count):
    [gallery] = ClickGalleries(with_pairs(collected, "devices", P_VALUES[:count])).build_device_gallery()
    assert len(gallery.examples) == len({example.caption for example in gallery.examples}) == count


def test_without_a_test_the_gallery_of_devices_has_the_images_with_most_clicks(small, tmp_path):
    collected = collect_clicks(small.study, small.store)
    [gallery] = ClickGalleries(collected).build_device_gallery()
    counts = collected.valid.group_by("task").len().sort("len", "task", descending=[True, False]).rows()
    assert [example.caption for example in gallery.examples] == [
        f"{count} valid click{'s' if count > 1 else ''}; no test was run." for _, count in counts
    ]
    assert "Clicks by device" in blocks_of(collected)
    study = world_study(tmp_path)
    with open_store(study) as store:
        nothing = collect_clicks(study, store)
        assert ClickGalleries(nothing).build_device_gallery() == ClickGalleries(nothing).build_mode_gallery() == []


def test_the_gallery_of_modes_has_an_image_once(collected):
    galleries = ClickGalleries(with_pairs(collected, "modes", (0.5, 0.01)))
    [gallery] = galleries.build_mode_gallery()
    # Both comparisons are of one image, and the last one describes it.
    assert [example.caption for example in gallery.examples] == [
        "cut-out against text: different (p 0.01); PL1 0.25, WD 0.125."
    ]
    task = collected.study.tasks[0]
    valid = collected.valid.filter(pl.col("task") == task.id)
    labels = [picture.label for picture in galleries.pictures[gallery.examples[0].unit]]
    expected = {mode: len(valid.filter(pl.col("mode") == mode)) for mode in ("text", "cut-out")}
    assert sorted(labels) == sorted(f"{mode}: {n} click{'s' if n > 1 else ''}" for mode, n in expected.items() if n)


def test_the_document_counts_clicks_of_previews_where_there_are_several_modes(collected, small):
    written = build_document(collected, ("clicks.csv",))["written"]
    assert written["previews"] == len(collected.previews.table) > 0
    assert (written["clicks"], written["previews_left_out"]) == (len(collected.table), collected.previews.left_out)
    single = build_document(collect_clicks(small.study, small.store), ())["written"]
    assert single["previews"] is None and single["previews_left_out"] is None


@pytest.mark.parametrize(
    ("answers", "batches", "words"),
    [
        (0, 0, ""),
        (2, 0, "2 answers and 0 batches are judged differently"),
        (0, 1, "0 answers and 1 batch are judged differently"),
    ],
)
def test_answers_that_are_judged_otherwise_are_told(gathered, answers, batches, words):
    fresh = collect_clicks(gathered.study, gathered.store)
    vars(fresh)["validated"] = replace(fresh.validated, changed_answers=answers, changed_batches=batches)
    said = " ".join(describe_results(fresh))
    assert (words in said) if words else ("judged differently" not in said)
    assert build_document(fresh, ())["judged_otherwise"] == {"answers": answers, "batches": batches}


@pytest.mark.parametrize(
    ("rows", "more"), [(500, ""), (501, " The table holds 500 of 501 rows; all are in `images.csv`.")]
)
def test_a_table_of_many_rows_says_where_the_others_are(rows, more):
    assert clicks_report._note_truncation("Clicks.", rows, "images.csv") == f"Clicks.{more}"


@pytest.mark.parametrize(
    ("stems", "words"),
    [
        ((), ""),
        (("a",), "1 full stem of several datasets is left out of previews.csv, with 3 clicks: "),
        (("a", "b"), "2 full stems of several datasets are left out of previews.csv, with 3 clicks: "),
    ],
)
def test_stems_of_several_datasets_are_told(gathered, stems, words):
    fresh = collect_clicks(gathered.study, gathered.store)
    vars(fresh)["previews"] = replace(fresh.previews, ambiguous_stems=stems, left_out=3)
    said = " ".join(describe_results(fresh))
    assert (words in said) if words else ("several datasets" not in said)


def test_the_mode_is_named_where_a_study_has_several_and_the_picture_is_of_one(collected, small):
    several = ClickGalleries(collected)
    task = collected.study.tasks[0]
    name = (task.dataset, task.full_stem)
    assert several._add_example(name, "by device", "both").unit == f"{'/'.join(name)} (by device)"
    assert several._add_example(name, "by device", "one", "text").unit == f"{'/'.join(name)} (text, by device)"
    single = collect_clicks(small.study, small.store)
    task = single.study.tasks[0]
    name = (task.dataset, task.full_stem)
    assert ClickGalleries(single)._add_example(name, "by device", "", "text").unit == f"{'/'.join(name)} (by device)"


def test_an_image_that_cannot_be_read_leaves_its_error_in_the_gallery(collected, monkeypatch):
    def refuse(path):
        raise DataError("this is no image", file="a.png")

    galleries, task = ClickGalleries(collected), collected.study.tasks[0]
    monkeypatch.setattr(clicks_report, "read_image", refuse)
    example = galleries._add_example((task.dataset, task.full_stem), "by device", "caption")
    assert "this is no image" in galleries.pictures[example.unit] and example.caption == "caption"


@pytest.mark.parametrize(("late", "shown"), [(0.4, False), (1.0, True)])
def test_lateness_has_a_chart_from_a_millisecond_on(small, late, shown):
    fresh = collect_clicks(small.study, small.store)
    vars(fresh)["quality"] = fresh.quality.with_columns(pl.lit(late).alias("late_ms"))
    assert ("Lateness by participant" in blocks_of(fresh)) == shown


@pytest.mark.parametrize("idle", [0, 1, 2])
def test_participants_without_an_answer_are_counted(small, idle):
    fresh = collect_clicks(small.study, small.store)
    nobody = fresh.quality.head(1).with_columns(pl.lit(0, fresh.quality.schema["answers"]).alias("answers"))
    vars(fresh)["quality"] = pl.concat([fresh.quality, *[nobody] * idle])
    [section] = [one for one in build_sections(fresh, ClickGalleries(fresh)) if one.title == "Participants"]
    words = {
        0: "",
        1: "1 participant joined without an answer and is",
        2: "2 participants joined without an answer and are",
    }
    assert section.text.endswith(f" {words[idle]} not listed." if idle else "returned before its end.")
    vars(fresh)["quality"] = pl.concat([nobody] * (idle + 1))
    [section] = [one for one in build_sections(fresh, ClickGalleries(fresh)) if one.title == "Participants"]
    assert section.text == f"{idle + 1} participant{'s' if idle else ''} joined; none has answered yet."


def test_what_was_collected_in_sentences(gathered, collected):
    def told(given, **changes):
        return describe_results(replace(given, **changes))

    counts = collected.answer_classes
    left = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "valid" and count)
    total = collected.validated.answers.height
    active = collected.quality.filter(pl.col("answers") > 0).height
    first, modes, *rest = told(collected)
    assert first == f"{total} answers of {active} participants: {counts['valid']} valid; left out: {left}."
    assert modes == "clicks.csv holds the clicks of all display modes together; `--mode NAME` selects one mode."
    assert [one.split(":")[0] for one in rest] == [
        "PC against mobile (text)",
        "PC against mobile (cut-out)",
        "cut-out against text",
    ]
    every = told(collected, all_clicks=True)[1]
    assert every == f"clicks.csv holds {total} clicks, invalid ones too."
    assert not [one for one in told(collected, mode="text") if "all display modes" in one]
    ruled = told(collected, rules=ExclusionRules(participants=("1", "998", "999")), rules_from="a file")
    assert "Rules of exclusion from a file leave out 1 participant." in ruled
    assert "The rules name 2 participants that are not in the study." in ruled


def test_no_answers_have_one_sentence(tmp_path):
    study = world_study(tmp_path, scenes=1)
    with open_store(study) as store:
        assert describe_results(collect_clicks(study, store)) == [
            "There are no answers yet. The files have their columns and no rows."
        ]


@pytest.mark.parametrize(("stems", "verdict"), [(MIN_CLUSTERS - 1, True), (MIN_CLUSTERS, False)])
def test_a_comparison_in_words(stems, verdict):
    value = {"ks": {"value": 0.756, "low": 0.5, "high": 0.904}, "pl1": {"value": 0.1234}, "wd": {"value": 0.5}}
    said = clicks_report._describe_summary({"stems": stems, **value})
    assert said.startswith(f"alike on 76 % (50 to 90) of {stems} images by KS, PL1 0.123, WD 0.500.")
    assert said.endswith(f"more: a verdict needs {MIN_CLUSTERS} images.") == verdict
    bare = clicks_report._describe_summary({"stems": 20, **value, "ks": {"value": 1.0, "low": None, "high": None}})
    assert bare.startswith("alike on 100 % of 20 images by KS, ")
    assert clicks_report._describe_summary({"stems": 0}) == "no image has 10 clicks of both."


def test_clicks_beside_the_picture_are_drawn_on_its_edge(gathered):
    fresh = collect_clicks(gathered.study, gathered.store)
    task = fresh.study.tasks[0]
    own = fresh.classified.filter(pl.col("task") == task.id).head(3)
    places = [(-7.5, -0.5), (task.width + 9.0, task.height + 9.0), (1.75, 2.25)]
    vars(fresh)["classified"] = own.with_columns(
        pl.Series("x", [x for x, _ in places]), pl.Series("y", [y for _, y in places]), pl.lit("valid").alias("class")
    )
    pictures = ClickGalleries(fresh)._draw_pictures(task, "what was left out", None)
    mask = ClickValidator(fresh.study).mask(task.id)
    drawn = [(0, 0), (task.width - 1, task.height - 1), (1, 2)]
    crop = crop_around(mask, points=[(0, 0), (task.width - 1, task.height - 1), (1.75, 2.25)])
    assert [point[:2] for picture in pictures for point in picture.points] == [tuple(one) for one in crop.moved(drawn)]
    assert [picture.label for picture in pictures] == ["valid: 3 clicks"]
