from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hardlook.contract.sections import Gallery, Section, Table
from hardlook.report.names import FIXED, name_of, named_blocks


@given(st.lists(st.text(max_size=100), max_size=8))
def test_names_are_plain_words_and_differ(titles):
    sections = [Section("s", "", [Table(title, "", ("a",), ()) for title in titles])]
    named = named_blocks(sections)
    assert [block.title for block in named.values()] == titles
    for name in named:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and name not in FIXED and len(name) <= 65


def test_a_title_gives_its_words():
    assert name_of("IoU of each class") == "iou-of-each-class"
    assert name_of("  `dhh`: 50 % (a/b) ") == "dhh-50-a-b"
    assert name_of("猫") == "figure"


def test_galleries_have_no_name():
    assert named_blocks([Section("s", "", [Gallery("g", "", ())])]) == {}
