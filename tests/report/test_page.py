from __future__ import annotations

import base64
import hashlib
import math
import re
from email.message import Message
from pathlib import Path

import pytest
import report_samples
from drawn_charts import Outline, svgs

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Reading, Score, Scorecard
from hardlook.harness.sections import Example, Gallery, Section
from hardlook.harness.stats.intervals import Interval
from hardlook.report.page import GUIDE, explain_interval, find_guide_address, render_page, render_study
from hardlook.report.scorecard_tables import build_all_scores_table, build_scores_table

DOCS = Path(__file__).parents[2] / "docs"


def test_one_line_below_the_cards_explains_the_intervals_in_the_words_of_the_run():
    said = explain_interval(report_samples.scorecard().headline)
    assert said.startswith("95% interval: how far a score would move if other images had been drawn.")
    score = Score("miou", 0.5, 4000, Interval(0.4, 0.6, 0.9, "percentile", 120, "query image"))
    assert explain_interval([Score("gap", 0.1, 4000), score]).startswith("90% interval: ")
    assert "other query images" in explain_interval([score])
    assert "No score of this run has an interval" in explain_interval([Score("miou", 0.5, 1)])


def test_how_to_read_this_is_one_link_and_it_leads_somewhere(page):
    outline = Outline(page)
    assert page.count(">How to read this</a>") == 1 and page.index(">How to read this</a>") < page.index('id="s1"')
    (link,) = re.findall(r'<a href="([^"]*)">How to read this</a>', page)
    assert link[1:] in {attributes.get("id") for _, attributes in outline.elements}
    # Where the package names its documentation, the link leads there; nothing else of the page does.
    assert "https://" not in page.replace("https://example.org/x", "")


def test_the_link_leads_to_the_guide_of_the_documentation_where_its_address_is_known(monkeypatch):
    named = Message()
    named["Project-URL"] = "Source, https://example.org/source"
    named["Project-URL"] = "Documentation, https://example.org/docs/"
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: named)
    address = find_guide_address()
    assert address == "https://example.org/docs/report/#how-to-read-a-report"
    assert f'<a href="{address}">How to read this</a>' in render_page(report_samples.scorecard(), [])
    named.replace_header("Project-URL", "Documentation, javascript:alert(1)")
    assert find_guide_address() == address
    del named["Project-URL"]
    assert find_guide_address() == ""


def test_the_documentation_has_the_guide_and_explains_every_term():
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    _, heading, guide = text.partition("\n## How to read a report\n")
    assert heading and GUIDE == "report/#" + "how-to-read-a-report"
    guide = guide.partition("\n## ")[0]
    for term in ("Interval", "n", "Comparable", "Readings", "Slices", "Left out", "Figures and tables"):
        assert f"**{term}**" in guide
    assert "95 in 100" in guide and "units that belong together are drawn together" in guide.lower()


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(report_samples.scorecard(), report_samples.sections(), **report_samples.page_arguments())


def test_the_page_is_well_formed_and_its_ids_differ(page):
    outline = Outline(page)
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    linked = [link["href"] for link in outline.all("a")]
    assert {href[1:] for href in linked} <= set(ids)
    referred = {name for _, a in outline.elements for name in (a.get("aria-labelledby") or "").split()}
    assert referred <= set(ids)
    assert svgs(page)


def test_nothing_is_loaded_from_anywhere(page):
    outline = Outline(page)
    loading = [
        (tag, a.get(key)) for tag, a in outline.elements for key in ("src", "href", "srcset", "data") if key in a
    ]
    for tag, address in loading:
        assert address.startswith("data:") or (tag == "a" and address.startswith("#"))
    assert "@import" not in page and "url(" not in page
    assert "https://" not in page.replace("https://example.org/x", "") and "http://" not in page


def test_the_policy_allows_the_inline_script_by_its_hash_only(page):
    outline = Outline(page)
    (policy,) = [meta["content"] for meta in outline.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';") and f"script-src 'sha256-{digest}'" in policy
    assert len(outline.all("script")) == 1


def test_the_header_cards_and_fine_print_are_all_there(page):
    texts = " ".join(" ".join(Outline(page).texts).split())
    for said in (
        "Open mIoU of a planted model",
        "open-miou 1",
        "2024-05-03",
        "Mean IoU over classes.",
        "0.538 higher is better",
        "miou is 0.54 (0.52 to 0.56) on 40 images",
        "6.400 lower is better",
        "95% interval 0.518 to 0.558 (percentile, 40 images);",
        "yes, with Table 2",
        "undefined",
        "43 units planned, 40 scored, 3 failed.",
        "images without a label",
        "their IoU is undefined",
        "Not run: paper. This is the default.",
        "class: class 7",
        "mask is empty",
        '"seed": 0',
    ):
        assert said in texts, said


def test_every_score_is_a_row_of_the_table(page):
    table = page[page.index('id="all-scores-table"') :]
    assert table[: table.index("</table>")].count("<tr>") == 1 + len(report_samples.scorecard().scores)


def test_the_same_input_gives_the_same_bytes(page):
    assert render_page(report_samples.scorecard(), report_samples.sections(), **report_samples.page_arguments()) == page


def test_a_typical_report_is_small(page):
    assert len(page.encode()) < 1_000_000


def test_hostile_texts_stay_text_everywhere():
    text = report_samples.HOSTILE
    card = Scorecard(
        text, text, text,
        (Score(text, 0.5, 1, None, {text: text}, text, text), Score(text, 0.5, 1, None, {}, text, text)),
        (Reading(text, text, text, (text, "b"), text),), (LeftOut(text, 1, text, (text,)),),
    )  # fmt: skip
    page = render_page(
        card, [Section(text, text)], title=text, summary=text, provenance={text: text}, pictures={text: text},
        meanings=[ScoreMeaning(text, text, text)], failures=[{text: text}],
    )  # fmt: skip
    outline = Outline(page)
    assert len(outline.all("script")) == 1
    assert not any(name.startswith("on") for _, attributes in outline.elements for name in attributes)


def test_an_empty_scorecard_makes_a_page_that_says_so():
    texts = " ".join(Outline(render_page(Scorecard("b", "1", "m"), [])).texts)
    for said in ("No score over all units", "Nothing was left out", "one reading only", "No unit failed."):
        assert said in texts


def find_cards(page):
    return re.findall(r'<li class="card">\s*<h3>(.*?)(?: <code>.*?)?</h3>', page)


def read_table(page, key):
    """The rows of a table of the page, as texts."""
    table = page[page.index(f'id="{key}-table"') :]
    rows = table[: table.index("</table>")].split("<tr>")[1:]
    return [[re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def test_at_most_four_scores_get_cards_and_all_others_are_in_a_folded_table():
    card = Scorecard("b", "1", "m", tuple(Score(f"score {i}", 0.5, 3) for i in range(20)))
    page = render_page(card, [])
    assert find_cards(page) == [f"score {i}" for i in range(4)] and "16 other scores over all units" in page
    assert [row[0] for row in read_table(page, "other-scores")[1:]] == [f"score {i}" for i in range(4, 20)]
    one = render_page(card, [], meanings=[ScoreMeaning("score 3", "", "")])
    assert find_cards(one) == ["score 3"] and "19 other scores over all units" in one
    few = render_page(Scorecard("b", "1", "m", card.scores[:4]), [])
    assert len(find_cards(few)) == 4 and "other-scores" not in few


def test_headline_scores_get_cards_in_the_order_of_the_benchmark_and_the_others_keep_what_a_card_says():
    names = ("auc", "gap", "iid", "ood", "blind", "shared")
    scores = [report_samples.score(name, 0.5, comparable="no" if name == "auc" else "yes") for name in names]
    scores[0] = Score("auc", math.nan, 0, reason="no course reaches 90 %", comparable="no")
    meanings = [
        ScoreMeaning(name, name.upper(), "", headline=True) for name in ("gap", "ood", "iid", "blind", "shared")
    ]
    meanings.append(ScoreMeaning("auc", "AuC", "area under the curve", higher_is_better=False))
    page = render_page(Scorecard("b", "1", "m", tuple(scores)), [], meanings=meanings)
    assert find_cards(page) == ["GAP", "OOD", "IID", "BLIND"]
    head, auc, shared = read_table(page, "other-scores")
    said = dict(zip(head, auc, strict=True))
    assert (said["score"], said["meaning"], said["direction"]) == ("AuC", "area under the curve", "lower is better")
    assert (said["why undefined"], said["comparable"]) == ("no course reaches 90 %", "no")
    assert dict(zip(head, shared, strict=True))["low"] == "0.480"


def test_the_page_opens_with_its_sentences_and_sections_after_the_first_are_folded(page):
    outline = Outline(page)
    lead = page.index('<p class="lead">')
    assert page.index("<h1>") < lead < page.index('class="facts"') < page.index('class="cards"')
    assert page[lead:].startswith(
        '<p class="lead">The miou is 0.54 (0.52 to 0.56) on 40 images: Mean IoU over classes. The '
    )
    parts = [a.get("id") for tag, a in outline.elements if tag == "section" and a.get("class") == "folded"]
    assert parts == ["slices", "s2", "left-out", "all-scores", "failures", "about"]
    assert [a.get("id") for tag, a in outline.elements if tag == "section" and "class" not in a] == ["scores", "s1"]
    assert not [a for a in outline.all("details") if a.get("class", "").startswith("part") and "open" in a]
    assert 'Pictures</h2> <span class="count">3 units</span>' in page


def test_readings_and_what_was_left_out_are_seen_without_opening_anything(page):
    seen = re.sub(r"<details.*?</details>", "", page[: page.index('id="s1"')], flags=re.DOTALL)
    seen = " ".join(re.sub("<[^>]+>", "", seen).split())
    assert "Readings that ran: similarity released (what they mean)." in seen
    assert "43 units planned, 40 scored, 3 failed. Left out: 3 images without a label (why). Which failed." in seen
    assert "What the average hides." not in seen  # the benchmark's summary is in "About this run"
    about = page[page.index('id="about"') :]
    assert "What the average hides." in about and 'id="readings"' in about and 'id="provenance"' in about


def test_a_warning_is_seen_without_opening_anything():
    note = LeftOut("labels of another set", 4, "are `--labels` right?", kept=True, warning=True)
    page = render_page(Scorecard("b", "1", "m", (Score("iou", 0.5, 9),), left_out=(note,)), [])
    seen = page[: page.index("<details")]
    assert "<strong>Warning:</strong> labels of another set: are <code>--labels</code> right?" in seen


def test_a_study_is_folded_only_where_that_is_wanted():
    sections = [Section("One", "First. More."), Section("Two", "Second. More.")]
    plain = render_study(sections, title="t", summary="Words.")
    assert '<details class="part">' not in plain and 'class="lead"' not in plain
    folded = render_study(sections, title="t", lead=["Ant is better."], about="What it measures.", folded=True)
    assert folded.count('<details class="part">') == 2
    assert folded.index("Ant is better.") < folded.index('<h2 id="s1-heading">One</h2>')
    assert folded.index("Second. More.") < folded.index("What it measures.") < folded.index("Everything needed to run")
    assert '<span class="teaser">Second.</span>' in folded


def test_a_study_shows_the_pictures_of_its_galleries():
    gallery = Gallery("Kept", "", (Example("img-1", "clear"), Example("img-2", "gone")))
    sections = [Section("Examples", "", (gallery,))]
    page = render_study(
        sections, title="Study", pictures={"img-1": [report_samples.picture()], "img-2": "the file is gone"}
    )
    outline = Outline(page)
    (image,) = outline.all("img")
    assert image["src"].startswith("data:image/jpeg;base64,") and "img-1" in image["alt"]
    assert "No picture: the file is gone" in " ".join(outline.texts)
    assert "no picture was given for this unit" in render_study(sections, title="Study")


def test_more_than_two_galleries_become_boxes_the_first_of_each_section_open():
    three = report_samples.three_galleries()
    page = render_page(
        report_samples.scorecard(), [three, *report_samples.sections()], pictures=report_samples.pictures()
    )
    boxes = [box for box in Outline(page).all("details") if box.get("class") == "box"]
    assert ["open" in box for box in boxes] == [True, False, False, True]
    plain = render_page(report_samples.scorecard(), report_samples.sections(), pictures=report_samples.pictures())
    assert not [box for box in Outline(plain).all("details") if box.get("class") == "box"]


def test_charts_and_tables_of_a_run_show_their_names_and_those_of_a_study_do_not(page):
    texts = Outline(page).texts
    for name in ("iou-by-class", "models", "two-models", "closed-against-open-2", "scores", "all-scores", "left-out"):
        assert name in texts
    assert 'class="export"' not in render_study(
        report_samples.sections(), title="t", pictures=report_samples.pictures()
    )


def test_the_page_says_how_to_read_it_and_how_to_run_it_again(page):
    texts = " ".join(" ".join(Outline(page).texts).split())
    assert "How to read this" in texts and "how far a score would move if other images had been drawn" in texts
    assert "hardlook run open-miou --out again" in texts


def test_a_long_run_without_galleries_stays_under_three_megabytes():
    slices = [
        report_samples.score("iou", i / 4000, slice={"class": f"class {i}", "context": "beach"}) for i in range(4000)
    ]
    card = Scorecard("b", "1", "m", tuple(slices))
    large = [
        report_samples.dots(200),
        report_samples.heat(60),
        report_samples.scatter(3000),
        report_samples.curves(),
        report_samples.table(300),
    ]
    page = render_page(card, [Section("Large", "", large)])
    assert len(page.encode()) < 3_000_000


SCS = Score("scs", 0.664, 57, undefined=0.7, rests_on={"query image": 57, "class": 1})
RARE = Score(
    "iou",
    0.5,
    40,
    Interval(0.4, 0.6, 0.95, "percentile", 40, "image"),
    undefined=0.004,
    rests_on={"image": 40, "class": 2},
)
COST = Score("dsb", float("nan"), 0, reason="no course reaches 90 % IoU")


def test_what_a_score_rests_on_and_its_undefined_resamples_stand_beside_the_interval():
    page = render_page(Scorecard("toss", "1", "m", (SCS, RARE, COST)), [])
    said = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "no interval, since 70 % of the resamples are undefined (57 query images, 1 class); n = 57" in said
    assert "(percentile, 40 images, 2 classes); n = 40; less than 1 % of the resamples are undefined" in said
    assert "no course reaches 90 % IoU" in said
    table = build_scores_table(Scorecard("toss", "1", "m", (SCS, RARE)))
    assert table.columns == ["score", "value", "low", "high", "n", "rests on", "undefined resamples"]
    assert table.rows[0][-2:] == ("57 query images, 1 class", 0.7)
    every = build_all_scores_table(Scorecard("toss", "1", "m", (SCS, RARE, COST)))
    assert "why undefined" in every.columns and "no course reaches 90 % IoU" in every.rows[2]
    # A scorecard that does not say it has the table of 0.1.0.
    assert build_scores_table(Scorecard("toss", "1", "m", (Score("iou", 0.5, 9),))).columns[-1] == "n"


def test_what_is_kept_is_not_under_what_was_left_out():
    kept = LeftOut("clicks outside of their image", 2, "moved to its edge", kept=True)
    page = render_page(Scorecard("rclicks", "1", "m", (Score("noc90", 5.0, 9),), left_out=(kept,)), [])
    assert 0 < page.index("Nothing was left out of the scores.") < page.index("These are in the scores.")
    assert page.index("These are in the scores.") < page.index("clicks outside of their image")
