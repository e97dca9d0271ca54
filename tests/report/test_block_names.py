from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.sections import Gallery, Section, Table
from hardlook.report.block_names import FIXED, make_name, name_blocks


@given(st.lists(st.text(max_size=100), max_size=8))
def test_names_are_plain_words_and_differ(titles):
    sections = [Section("s", "", [Table(title, "", ("a",), ()) for title in titles])]
    named = name_blocks(sections)
    assert [block.title for block in named.values()] == titles
    for name in named:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and name not in FIXED and len(name) <= 65


def test_a_title_gives_its_words():
    assert make_name("IoU of each class") == "iou-of-each-class"
    assert make_name("  `dhh`: 50 % (a/b) ") == "dhh-50-a-b"
    assert make_name("猫") == "figure"


def test_galleries_have_no_name():
    assert name_blocks([Section("s", "", [Gallery("g", "", ())])]) == {}
