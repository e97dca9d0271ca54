"""Runs of more units than are kept in memory: every number is that of the same run as one table."""

import io
import json
from dataclasses import replace

import polars as pl
import pytest

from hardlook.errors import HardlookError, RunError
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, LazyUnits, Quality, ScoreMeaning
from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.records import Column, RecordSchema
from hardlook.harness.runs import ordered_records, scoring
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.record_store import list_parts, write_part
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import Section, Table
from hardlook.harness.tally import Entry, SumTally, score_tally
from hardlook.report import notable_units
from hardlook.report.compare.comparison import compare_runs, read_runs
from hardlook.report.compare.document import write_comparison
from hardlook.report.compare.units import compute_unit_qualities, list_largest_gains
from hardlook.report.export.document import write_export
from hardlook.report.notable_units import collect_candidates, compute_expected_qualities
from hardlook.report.run_report import build_report_sections, write_report

UNITS, FEW = 60_000, 300  # Above and below the number from which clusters are left out and drawn in groups.
GROUPS = ("hill", "sea", "town")


class Options(BenchmarkOptions):
    items: int = option(UNITS, "How many units.", changes="units")
    skill: float = option(0.7, "Share of right answers.", changes="answers")
    first: int = option(0, "The number of the first unit.", changes="units")
    resamples: int = option(40, "Resamples.", changes="scores")
    level: float = option(0.95, "Level.", changes="scores")


def evaluate(units, model):
    rows = []
    for unit in units:
        number, skill = unit.payload
        share = number * 2654435761 % 4294967296 / 4294967296
        right = share < skill
        rows.append({"unit": unit.id, "group": GROUPS[number % 3], "hit": int(right), "value": share * (0.5 + right)})
    return rows


def tally(records, options):
    parts = [({}, records), *(({"group": name}, records.filter(pl.col("group") == name)) for name in GROUPS)]
    return [
        SumTally(
            (Entry("rate", len(rows), where), Entry("mean", len(rows), where)),
            rows.select("hit", "value", pl.lit(1.0)).to_numpy(),
            lambda totals: totals[..., :2] / totals[..., 2:],
            ("counted", *where.values()),
            "image",
        )
        for where, rows in parts
    ]


def score(records, options):
    scores = [one for part in tally(records, options) for one in score_tally(part, options)]
    return Scorecard("counted", "1", "", tuple(scores))


COUNTED = Benchmark(
    card=BenchmarkCard(
        "counted", "1", "Counted", "Units that cost nothing.", "saliency",
        scores=(ScoreMeaning("rate", "rate", "share of hits", headline=True), ScoreMeaning("mean", "mean", "mean")),
        default_model="planted-saliency", batch_size=500, qualities=(Quality("value", "value"),),
    ),
    options=Options,
    schema=RecordSchema(
        (
            Column("group", "text", "where", "slice"),
            Column("hit", "int", "1 for a right answer"),
            Column("value", "float", "a number"),
        )
    ),
    list_units=lambda options: LazyUnits(
        options.items,
        lambda n: f"unit-{n + options.first:08d}",
        lambda n: (n + options.first, options.skill),
    ),
    evaluate=evaluate,
    score=score,
    report=lambda records, card: [Section("Rows", "", (Table("Rows", "", ("rows",), ((len(records),),)),))],
    tallies=tally,
    qualities=lambda records, options: records.select("unit", "value"),
    additive=True,
)  # fmt: skip


def run_into(folder, **given):
    return launch(COUNTED, out=folder, given=given).scored


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of many units, a third that has some of them and some others, and two of few."""
    root = tmp_path_factory.mktemp("counted")
    run_into(root / "ant", skill=0.7)
    run_into(root / "bee", skill=0.71)
    run_into(root / "cat", skill=0.72, first=2_000, items=UNITS)
    run_into(root / "dog", skill=0.6, items=FEW)
    run_into(root / "eel", skill=0.7, items=FEW)
    return root


@pytest.fixture
def chunked(monkeypatch):
    monkeypatch.setattr(scoring, "MOST_IN_MEMORY", 100)
    monkeypatch.setattr(scoring, "SAMPLED", 1_000)
    monkeypatch.setattr(ordered_records, "ROWS", 7_000)


def export(scored):
    stream = io.StringIO()
    write_export(scored, stream)
    return json.loads(stream.getvalue())


@pytest.mark.parametrize("name", ["ant", "dog"])
def test_scores_are_those_of_one_table(runs, name, request):
    whole = score_run(RunFolder(runs / name))
    expected = export(whole)
    request.getfixturevalue("chunked")
    found = score_run(RunFolder(runs / name))
    assert found.is_chunked and not whole.is_chunked
    assert found.scorecard == whole.scorecard
    assert found.records.equals(whole.records)
    document = export(found)
    # Charts may show some of the units, and say so; scores and records are all.
    (section,), (whole_section,) = document.pop("sections"), expected.pop("sections")
    assert (section == whole_section) == ("one unit in 60" not in section["text"]) == (name == "dog")
    assert document == expected


@pytest.mark.parametrize("names", [("ant", "bee"), ("ant", "cat"), ("dog", "eel"), ("ant", "bee", "cat")])
def test_comparisons_are_those_of_one_table(runs, names, tmp_path, request):
    def compare(page):
        read = read_runs([runs / name for name in names])
        found = compare_runs(read, swaps=49, resamples=30)
        return write_comparison(found, read, tmp_path / page, examples=4), (tmp_path / page).read_text()

    expected, page = compare("whole.html")
    request.getfixturevalue("chunked")
    document, other = compare("chunked.html")
    assert document == expected
    # The same units in the galleries, with the same sentences.
    captions = [line.strip() for line in page.splitlines() if "hit" in line or "ahead of" in line]
    assert captions == [line.strip() for line in other.splitlines() if "hit" in line or "ahead of" in line]
    # A chart of some of the units says so.
    has_chart_of_some = names[0] == "ant" and len(names) == 2
    assert ("units, evenly spaced" in other) == ("units, drawn at random" in page) == has_chart_of_some


def test_comparisons_over_seeds_are_those_of_one_table(runs, tmp_path, request):
    def compare(page):
        # The third run lacks units that the others have.
        read = [read_runs([runs / "ant", runs / "cat"]), read_runs([runs / "bee"])]
        found = compare_runs(read, swaps=49, resamples=30)
        return write_comparison(found, read, tmp_path / page, examples=4)

    expected = compare("whole.html")
    request.getfixturevalue("chunked")
    assert compare("chunked.html") == expected


def test_runs_without_a_unit_in_common_are_named(runs, tmp_path, chunked):
    run_into(tmp_path / "far", first=10 * UNITS, items=FEW)
    with pytest.raises(RunError, match=r"no unit in common: .*'unit-00000000'.*'unit-00600000'"):
        compare_runs(read_runs([runs / "ant", tmp_path / "far"]))


def test_the_report_shows_a_sample_and_says_so(runs, tmp_path, request):
    whole = build_report_sections(score_run(RunFolder(runs / "ant")), 4)
    request.getfixturevalue("chunked")
    scored = score_run(RunFolder(runs / "ant"))
    assert scored.sampling_step == 60 and len(scored.shown_records) == 1_000
    assert scored.shown_records["unit"].to_list() == [f"unit-{n:08d}" for n in range(0, UNITS, 60)]
    sections = build_report_sections(scored, 4)
    assert sections[0].blocks[0].rows == ((1_000,),)
    galleries, expected = (
        {gallery.title: [(one.unit, one.caption) for one in gallery.examples] for gallery in built[1].blocks}
        for built in (sections, whole)
    )
    assert galleries.pop("The most typical units") != expected.pop("The most typical units")
    assert galleries == expected and len(galleries) == 3
    page = write_report(scored, out=tmp_path / "report.html").read_text()
    assert "one unit in 60" in page


def test_what_is_expected_of_a_unit_is_the_mean_of_the_others(runs, chunked):
    scored, quality = score_run(RunFolder(runs / "dog")), COUNTED.card.qualities[0]
    expected = compute_expected_qualities(
        scored.records.select("unit", "value"), scored.records.select("unit", "group"), quality
    )
    found = collect_candidates(scored, quality, 3)
    assert found.select("unit", "value").equals(expected.select("unit", "value")) and len(found) == FEW
    assert found["expected"].to_list() == pytest.approx(expected["expected"].to_list(), rel=1e-12)


def test_slices_may_have_any_name_and_as_many_values_as_units(tmp_path, monkeypatch, request):
    def evaluate_named(units, model):
        rows = zip(evaluate(units, model), units, strict=True)
        return [{**row, "count": GROUPS[unit.payload[0] % 2], "total": unit.id} for row, unit in rows]

    more = (Column("count", "text", "how many", "slice"), Column("total", "text", "an id", "slice"))
    schema = RecordSchema((*COUNTED.schema.columns, *more))
    named = replace(COUNTED, schema=schema, evaluate=evaluate_named, card=replace(COUNTED.card, name="named"))
    launch(named, out=tmp_path / "run", given={"items": FEW})
    expected = build_report_sections(score_run(RunFolder(tmp_path / "run")), 4)[1].blocks
    request.getfixturevalue("chunked")
    monkeypatch.setattr(ordered_records, "ROWS", 70)
    scored = score_run(RunFolder(tmp_path / "run"))
    assert scored.is_chunked and build_report_sections(scored, 4)[1].blocks == expected
    # Neither candidates nor sums are kept by the values of an id.
    monkeypatch.setattr(notable_units, "MOST_CANDIDATES", 55)
    counted, add_totals = [], notable_units._add_totals

    def note(name, one, other):
        counted.append((name, len(other) if one is None else len(one)))
        return add_totals(name, one, other)

    monkeypatch.setattr(notable_units, "_add_totals", note)
    assert build_report_sections(scored, 4)[1].blocks == expected
    assert max(count for _, count in counted[3:]) < 10


def test_a_second_answer_does_not_count_and_is_named(tmp_path, chunked):
    launch(COUNTED, out=tmp_path / "run", given={"items": FEW})
    folder = RunFolder(tmp_path / "run")
    before = score_run(folder).scorecard
    (part,) = list_parts(folder.records_path)
    again = pl.read_parquet(part)[10:13].with_columns(hit=1 - pl.col("hit"))
    write_part(again, folder.records_path)
    after = score_run(folder).scorecard
    assert [note.what for note in after.left_out] == ["second answers"] and after.left_out[0].count == 3
    first = list_parts(folder.records_path)[0] == part
    assert (after.scores == before.scores) == first and after.units == before.units


def test_incomplete_runs_say_what_is_missing(tmp_path, chunked):
    launch(COUNTED, out=tmp_path / "run", given={"items": FEW})
    folder = RunFolder(tmp_path / "run")
    (part,) = list_parts(folder.records_path)
    rows = pl.read_parquet(part)
    part.unlink()
    with pytest.raises(RunError, match="no records yet"):
        score_run(folder)
    write_part(rows[:200], folder.records_path)
    card = score_run(folder).scorecard
    assert card.units.scored == 200 and [(note.what, note.count) for note in card.left_out] == [
        ("units not answered yet", 100)
    ]


def test_records_of_another_model_are_refused(tmp_path, chunked):
    launch(COUNTED, out=tmp_path / "run", given={"items": FEW})
    folder = RunFolder(tmp_path / "run")
    (part,) = list_parts(folder.records_path)
    write_part(pl.read_parquet(part)[:5].with_columns(answers=pl.lit("others")), folder.records_path)
    with pytest.raises(RunError, match="5 records here were made with another version"):
        score_run(folder)


def test_a_benchmark_that_does_not_add_up_is_named(tmp_path, chunked):
    def label(records, options):
        return [replace(one, labels=list(range(len(one.sums)))) for one in tally(records, options)]

    clustered = replace(COUNTED, card=replace(COUNTED.card, name="clustered"), tallies=label)
    with pytest.raises(HardlookError, match="said to be additive"):
        launch(clustered, out=tmp_path / "run", given={"items": FEW})


@pytest.mark.parametrize("lie", ["another score", "a score of its own", "a larger value"])
def test_a_small_run_shows_that_a_benchmark_does_not_add_up(tmp_path, lie):
    def false_score(records, options):
        card = score(records, options)
        if lie == "another score":
            return replace(card, scores=card.scores[:-1])
        if lie == "a score of its own":
            return replace(card, scores=(*card.scores, replace(card.scores[0], name="own")))
        return replace(card, scores=(replace(card.scores[0], value=card.scores[0].value + 1e-9), *card.scores[1:]))

    false = replace(COUNTED, card=replace(COUNTED.card, name=f"false {lie}"), score=false_score)
    with pytest.raises(HardlookError, match="not that of the tallies of two halves"):
        launch(false, out=tmp_path / "run", given={"items": FEW})


def test_an_additive_benchmark_needs_tallies():
    with pytest.raises(TypeError, match="'counted' is said to be additive, which needs tallies"):
        replace(COUNTED, tallies=None)
    with pytest.raises(TypeError, match="additive, but vocabularies are merged over all records"):
        replace(COUNTED, merge_vocabularies=lambda runs: runs)


def test_the_largest_gains_of_all_units_are_found(runs, chunked):
    read = read_runs([runs / "ant", runs / "bee"])
    found = compute_unit_qualities(read, ["ant", "bee"], None, 5)
    every = [dict(zip(run.records["unit"], run.records["value"], strict=True)) for run in read]
    gains = {unit: every[1][unit] - value for unit, value in every[0].items()}
    expected = sorted((unit for unit in gains if gains[unit] > 1e-12), key=lambda unit: (-gains[unit], unit))[:5]
    assert list_largest_gains(found, "bee", "ant", 5) == expected
    assert found.counts["ant", "bee"].second_better == sum(gain > 1e-12 for gain in gains.values())
    assert found.counts["ant", "bee"].defined == UNITS
