from __future__ import annotations

import pytest
import report_samples
from drawn_charts import Outline, svgs

from hardlook.errors import OptionError
from hardlook.harness.sections import Dot, DotChart, Section
from hardlook.report.charts import draw_svg
from hardlook.report.index import IndexEntry, draw_preview, render_index


def test_entries_link_their_reports_with_scores_and_a_drawing():
    entries = [
        IndexEntry(
            "Open mIoU",
            "Near misses count.",
            "open/report.html",
            report_samples.scorecard().headline,
            draw_svg(report_samples.dial()),
        ),
        IndexEntry("Clicks", "How many.", "clicks/report.html"),
    ]
    page = render_index(entries, title="Demo", text="Two reports.")
    outline = Outline(page)
    assert [link["href"] for link in outline.all("a")] == ["open/report.html", "clicks/report.html"]
    assert len(svgs(page)) == 1
    assert {"0.538", "0.518 to 0.558, n = 40", "Demo"} <= set(outline.texts)
    assert page == render_index(entries, title="Demo", text="Two reports.")


def test_hostile_entries_stay_text_and_scripts_are_no_links():
    text = report_samples.HOSTILE
    outline = Outline(
        render_index([IndexEntry(text, text, "a.html?<&\"'", (report_samples.score(text, 0.1),))], title=text)
    )
    assert len(outline.all("script")) == 0
    with pytest.raises(OptionError, match="link"):
        render_index([IndexEntry("t", "s", " JavaScript:alert(1)")])


def test_no_entry_is_said():
    assert "There is no report yet." in render_index([])


def test_a_glance_is_the_first_dot_chart_with_few_rows():
    blocks = [report_samples.curves(), report_samples.dots(40), report_samples.dots(5), report_samples.dots(7)]
    drawn, caption = draw_preview([Section("s", "", blocks)], key="k")
    (svg,) = svgs(drawn)
    assert len(list(svg.iter("circle"))) == 5
    assert caption == blocks[2].caption != ""
    assert draw_preview([Section("s", "", blocks[:2])], key="k") == ("", "")


def test_names_of_rows_are_written_in_full():
    chart = DotChart("accuracy", "", (Dot("swapped: another class's context", 0.2), Dot("iid", 0.9)))
    drawn, _ = draw_preview([Section("s", "", [chart])], key="k")
    assert "swapped: another class's context" in [text.text for text in svgs(drawn)[0].iter("text")]


def test_the_caption_of_a_drawing_stands_below_it_as_text():
    drawn = draw_svg(report_samples.dots(5))
    page = render_index([IndexEntry("t", "s", "a.html", (), drawn, f"Why `all` is above. {report_samples.HOSTILE}")])
    outline = Outline(page)
    assert page.index("<svg") < page.index("<figcaption>Why <code>all</code> is above.")
    assert len(outline.all("script")) == 0
    assert "<figcaption" not in render_index([IndexEntry("t", "s", "a.html", (), drawn)])
