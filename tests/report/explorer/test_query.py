import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.explorer.query import UNIT, Field, Query, describe_filters, parse_query
from hardlook.report.explorer.urls import PageError

FIELDS = {
    field.key: field
    for field in (
        UNIT,
        Field("iou", "IoU", "overlap", "quality", "float"),
        Field("context", "context", "where", "slice", "text"),
        Field("fold", "fold", "which", "slice", "int"),
        Field("mixed", "mixed", "a slip", "slice", "bool"),
        Field("pixels", "pixels", "how many", "measurement", "int"),
        Field("note", "note", "words", "measurement", "text"),
    )
}

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)

NUMBER = st.floats(allow_nan=False, allow_infinity=False)

QUERIES = st.builds(
    Query,
    text=TEXT.map(str.strip),
    values=st.sets(TEXT, max_size=3).map(lambda texts: (("context", tuple(sorted(texts))),) if texts else ()),
    ranges=st.tuples(NUMBER, st.none() | NUMBER).map(lambda ends: (("iou", *ends),)) | st.just(()),
    sort=st.sampled_from(sorted(FIELDS)),
    descending=st.booleans(),
    page=st.integers(1, 1000),
    size=st.integers(1, 200),
)


@given(QUERIES)
def test_an_address_says_what_was_asked(query):
    assert parse_query(query.parameters(), FIELDS) == query


def test_a_form_sends_empty_fields_and_they_mean_nothing():
    pairs = [("q", ""), ("is.context", ""), ("min.iou", ""), ("max.iou", "")]
    assert parse_query(pairs, FIELDS) == Query()


def test_the_empty_value_can_be_asked_for():
    assert parse_query([("is.context", "=")], FIELDS).values == (("context", ("",)),)
    assert parse_query([("is.context", "==")], FIELDS).values == (("context", ("=",)),)


def test_a_value_may_stand_without_the_sign():
    assert parse_query([("is.context", "beach")], FIELDS) == parse_query([("is.context", "=beach")], FIELDS)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("page", "0")], "page is a whole number from 1"),
        ([("page", "-3")], "page is a whole number from 1"),
        ([("page", "9" * 400)], "page is a whole number from 1"),
        ([("page", "1e3")], "page is a whole number from 1"),
        ([("page", "\N{ARABIC-INDIC DIGIT TWO}")], "page is a whole number from 1"),
        ([("size", "201")], "size is a whole number from 1 to 200"),
        ([("size", "0")], "size is a whole number"),
        ([("min.iou", "nan")], "takes a finite number, not nan"),
        ([("max.iou", "inf")], "takes a finite number"),
        ([("min.iou", "-Infinity")], "takes a finite number"),
        ([("min.iou", "a lot")], "takes a finite number"),
        ([("min.pixels", "1e999")], "takes a finite number"),
        ([("min.nosuch", "1")], "There is no column nosuch. There are: unit, iou"),
        ([("is.../../etc/passwd", "1")], "There is no column ../../etc/passwd"),
        ([("min.note", "1")], "has no numbers"),
        ([("is.iou", "1")], "is not a slice"),
        ([("is.fold", "two")], "takes a finite number"),
        ([("is.fold", "1.5")], "holds whole numbers"),
        ([("is.fold", "1e30")], "holds whole numbers"),
        ([("is.mixed", "perhaps")], "is true or false"),
        ([("sort", "nosuch")], "no column nosuch to sort by"),
        ([("order", "sideways")], "up or down"),
        ([("evil", "1")], "There is no parameter evil"),
        ([("q", "a"), ("q", "b")], "given twice"),
        ([("q", "x" * 301)], "301 characters; 300 are allowed"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(pairs, said):
    with pytest.raises(PageError) as refused:
        parse_query(pairs, FIELDS)
    assert refused.value.status == 400
    assert said in refused.value.message
    assert len(refused.value.message) < 300


def test_filters_in_words():
    query = parse_query([("q", "cat"), ("is.context", "="), ("is.context", "sea"), ("min.iou", ".25")], FIELDS)
    assert describe_filters(query, FIELDS)[1:] == ["context is (empty) or sea", "IoU from 0.25"]
