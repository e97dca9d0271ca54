from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.markup import element, escape, render_inline, render_paragraphs


@given(st.text())
def test_any_text_survives_as_content_and_attribute(text):
    parsed = ElementTree.fromstring(element("p", escape(text), title=text))
    assert parsed.tag == "p" and not list(parsed)


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=("Cs",)), max_size=40))
def test_printable_text_is_read_back_as_it_was(text):
    if "\ufffe" in text or "\uffff" in text:
        return
    assert (ElementTree.fromstring(element("p", escape(text))).text or "") == text


def test_back_ticks_make_code_and_nothing_else_makes_markup():
    assert render_inline("`a<b` **c**") == "<code>a&lt;b</code> **c**"
    assert render_paragraphs("one\n\n two ") == "<p>one</p><p>two</p>"
    assert render_paragraphs("") == ""


def test_attributes_keep_two_decimals_and_may_be_left_out():
    assert (
        element("g", x=1.23456, y=2.0, z=-0.0001, hidden=True, class_=None) == '<g x="1.23" y="2" z="0" hidden=""></g>'
    )
    with pytest.raises(ValueError, match="finite"):
        element("g", x=float("nan"))
