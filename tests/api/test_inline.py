import math

import pytest

from hardlook.api.inline import Figure, Page, draw_inline_table, make_frame
from hardlook.errors import DataError
from hardlook.harness.sections import Dot, DotChart, Table


def test_a_table_escapes_texts_and_marks_what_is_missing():
    shown = draw_inline_table(("a<b", "value"), [("<i>x</i>", 0.12345), ("y", math.nan), ("", None)], "T & U")
    assert "a&lt;b" in shown and "&lt;i&gt;x" in shown and "T &amp; U" in shown and "<i>" not in shown
    assert shown.count(">0.123<") == 1 and shown.count("nan") == 0
    assert shown.count("text-align:right") == 4  # the column of numbers with its heading


def test_a_frame_of_a_table_has_one_name_per_column():
    frame = make_frame(Table("t", "", ("low", "low", "n"), ((0.1, 0.2, 3), (None, "x"))))
    assert frame.columns == ["low", "low (2)", "n"] and frame.shape == (2, 3)
    assert frame["n"].to_list() == [3, None]


def test_a_figure_without_values_says_so(tmp_path):
    empty = Figure("empty", DotChart("Nothing & more", "", ()))
    assert "there is no value to draw" in empty._repr_html_() and "&amp;" in empty._repr_html_()
    with pytest.raises(DataError, match="no value to draw"):
        empty.save(tmp_path / "a.svg")
    drawn = Figure("one", DotChart("IoU", "", (Dot("cat", 0.5),)))
    assert drawn._repr_html_().strip().startswith("<svg") and "<?xml" not in drawn._repr_html_()


def test_a_page_is_framed(tmp_path):
    page = Page(tmp_path / "p.html", '<p title="a">b & c</p>')
    assert 'srcdoc="&lt;p title=&quot;a&quot;&gt;b &amp; c&lt;/p&gt;"' in page._repr_html_()
    assert "b & c" not in repr(page)
