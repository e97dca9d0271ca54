"""Units worth looking at, against a slow literal search."""

import math
from statistics import mean, median

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.benchmark import Quality
from hardlook.report.notable_units import compute_expected_qualities, select_notable_units

KINDS = ("best", "worst", "typical", "surprising")

VALUES = st.one_of(st.integers(0, 4).map(lambda n: n / 4), st.just(math.nan))

ROWS = st.lists(st.tuples(VALUES, st.sampled_from("xy"), st.sampled_from("pqr")), max_size=14)


def select(qualities, slices, quality, most):
    return select_notable_units(compute_expected_qualities(qualities, slices, quality), quality, most)


def frames(rows):
    units = [f"u{(index * 7) % 101:03}" for index in range(len(rows))]
    qualities = {"unit": units, "iou": [float(row[0]) for row in rows]}
    slices = {"unit": units, "a": [row[1] for row in rows], "b": [row[2] for row in rows]}
    return (
        pl.DataFrame(qualities, schema={"unit": pl.String, "iou": pl.Float64}),
        pl.DataFrame(slices, schema=dict.fromkeys(("unit", "a", "b"), pl.String)),
    )


def literally(rows, higher, most):
    """The same by loops over Python rows."""
    units = [f"u{(index * 7) % 101:03}" for index in range(len(rows))]
    known = [(unit, *row) for unit, row in zip(units, rows, strict=True) if not math.isnan(row[0])]
    if not known:
        return {kind: [] for kind in KINDS}
    sign = 1 if higher else -1
    half = (len(known) + 1) // 2
    middle = median(row[1] for row in known)
    surprise = []
    for row in known:
        guesses = []
        for column in (2, 3):
            others = [other[1] for other in known if other[column] == row[column] and other is not row]
            if others and len({other[column] for other in known}) > 1:
                guesses.append(mean(others))
        if guesses and abs(row[1] - mean(guesses)) > 1e-9:
            surprise.append((-round(abs(row[1] - mean(guesses)), 9), row[0]))
    ordered = sorted(known, key=lambda row: (-sign * row[1], row[0]))
    return {
        "best": [row[0] for row in ordered[:half]][:most],
        "worst": [
            row[0] for row in sorted(ordered[half:], key=lambda row: (sign * row[1], row[0])) if row[1] != ordered[0][1]
        ][:most],
        "typical": [row[0] for row in sorted(known, key=lambda row: (abs(row[1] - middle), row[0]))][:most],
        "surprising": surprise,
    }


@given(ROWS, st.booleans(), st.integers(0, 6))
def test_it_finds_what_a_literal_search_finds(rows, higher, most):
    found = select(*frames(rows), Quality("iou", "IoU", higher), most)
    expected = literally(rows, higher, most)
    assert tuple(found) == KINDS
    for kind in ("best", "worst", "typical"):
        assert found[kind] == expected[kind]
    # Distances that are equal on paper may differ in their last bit, so the distances are compared.
    distance = {unit: far for far, unit in expected["surprising"]}
    assert [distance[unit] for unit in found["surprising"]] == sorted(distance.values())[:most]


@given(ROWS, st.integers(0, 6), st.randoms())
def test_the_order_of_rows_changes_nothing(rows, most, random):
    qualities, slices = frames(rows)
    quality = Quality("iou", "IoU")
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = select(qualities[order], slices[order[::-1]], quality, most)
    plain = select(qualities, slices, quality, most)
    assert {kind: shuffled[kind] for kind in KINDS[:3]} == {kind: plain[kind] for kind in KINDS[:3]}
    assert len(shuffled["surprising"]) == len(plain["surprising"])


@given(ROWS)
def test_best_and_worst_share_no_unit(rows):
    up = select(*frames(rows), Quality("iou", "IoU"), 50)
    down = select(*frames(rows), Quality("iou", "IoU", higher_is_better=False), 50)
    assert not set(up["best"]) & set(up["worst"])
    assert not set(down["best"]) & set(down["worst"])
    values = dict(zip(frames(rows)[0]["unit"], frames(rows)[0]["iou"], strict=True))
    assert all(values[one] >= values[other] for one in up["best"] for other in up["worst"])


def test_a_failure_among_easy_units_surprises_more_than_one_among_hard_units():
    units = [f"u{index}" for index in range(8)]
    qualities = pl.DataFrame({"unit": units, "iou": [0.9, 0.95, 0.9, 0.15, 0.1, 0.12, 0.1, 0.85]})
    slices = pl.DataFrame({"unit": units, "context": ["easy"] * 4 + ["hard"] * 4, "only": ["one"] * 8})
    assert select(qualities, slices, Quality("iou", "IoU"), 2)["surprising"] == ["u3", "u7"]


def test_slices_may_have_any_name():
    units = [f"u{number}" for number in range(8)]
    qualities = pl.DataFrame({"unit": units, "iou": [0.9, 0.9, 0.9, 0.1, 0.2, 0.2, 0.2, 0.8]})
    slices = pl.DataFrame({"unit": units, "value": ["easy"] * 4 + ["hard"] * 4, "expected": ["one"] * 8})
    assert select(qualities, slices, Quality("iou", "IoU"), 2)["surprising"] == ["u3", "u7"]


def test_without_slices_nothing_surprises():
    qualities = pl.DataFrame({"unit": ["a", "b", "c"], "iou": [0.1, 0.5, 0.9]})
    found = select(qualities, qualities.select("unit"), Quality("iou", "IoU"), 3)
    assert found["surprising"] == [] and found["best"] == ["c", "b"]


def test_where_all_units_got_the_same_none_is_the_worst_and_nothing_surprises():
    qualities = pl.DataFrame({"unit": list("abcd"), "iou": [0.1 + 0.2] * 4})
    slices = pl.DataFrame({"unit": list("abcd"), "context": ["sea", "sea", "sky", "sky"]})
    found = select(qualities, slices, Quality("iou", "IoU"), most=2)
    assert found["worst"] == found["surprising"] == []
    assert len(found["best"]) == len(found["typical"]) == 2
