from __future__ import annotations

from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.click_file import check_clicks
from hardlook.data.click_table import ClickTable
from hardlook.errors import OptionError

CLICKS = st.lists(
    st.tuples(
        st.sampled_from(["b", "a", "10", "9"]),
        st.sampled_from(["", "1"]),
        st.sampled_from(["first", "fn", "fp"]),
        st.sampled_from(["pc", "mobile"]),
        st.integers(0, 19),
        st.floats(0, 9),
    ),
    max_size=30,
)


def _table(rows: list[tuple], dataset: str = "COCO_MVal") -> ClickTable:
    columns: dict[str, list] = defaultdict(list)
    for image, number, click_type, device, x, y in rows:
        stem = (f"{image}_______{number}" if number else image) + (
            "" if click_type == "first" else f"_mivos_{click_type}"
        )
        values = (
            dataset,
            image,
            number,
            "" if click_type == "first" else "mivos",
            click_type,
            stem,
            device,
            x,
            y,
            20,
            10,
        )
        names = ("dataset image_stem object_stem model_type click_type full_stem device x y w h").split()
        for name, value in zip(names, values, strict=True):
            columns[name].append(value)
    return check_clicks(pl.DataFrame(columns))


@given(CLICKS.filter(len))
def test_by_full_stem_against_a_loop(rows: list[tuple]) -> None:
    expected: dict[str, list] = defaultdict(list)
    for image, number, click_type, device, x, y in rows:
        stem = (f"{image}_______{number}" if number else image) + (
            "" if click_type == "first" else f"_mivos_{click_type}"
        )
        expected[stem].append((x, y, device, image, number, click_type))
    found = _table(rows).by_full_stem()
    assert list(found) == sorted(expected)
    for stem, clicks in found.items():
        told = zip(clicks.points.tolist(), clicks.devices.tolist(), strict=True)
        about = (clicks.image_stem, clicks.object_stem, clicks.click_type)
        assert [(x, y, device, *about) for (x, y), device in told] == expected[stem]
        assert (clicks.full_stem, clicks.size, clicks.dataset) == (stem, (20, 10), "COCO_MVal")


@given(CLICKS.filter(len))
def test_choosing_rows_adds_up(rows: list[tuple]) -> None:
    table = _table(rows)
    assert len(table.first()) + len(table.of_type("fn", "fp")) == len(table)
    assert len(table.on_device("pc")) + len(table.on_device("mobile")) == len(table)
    types = [row[2] for row in rows]
    assert table.counts() == {"COCO_MVal": {name: types.count(name) for name in sorted(set(types))}}


def test_datasets_are_known_by_any_spelling_and_share_stems() -> None:
    row = [("21077", "", "first", "pc", 1, 1)]
    both = check_clicks(pl.concat([_table(row, "GrabCut").frame, _table(row * 2, "Berkeley").frame]))
    assert both.datasets() == ("Berkeley", "GrabCut")
    with pytest.raises(OptionError, match="clicks of 2 datasets"):
        both.by_full_stem()
    assert len(both.for_dataset("grabcut").by_full_stem()["21077"].points) == 1
    assert len(both.for_dataset("BERKELEY")) == 2
    assert len(both.for_dataset("davis")) == 0
    assert len(_table(row, "COCO").for_dataset("coco-mval")) == 1
    assert len(_table(row, "Shifted CutOut").for_dataset("shifted_cutout")) == 1


@pytest.mark.parametrize(("one", "other"), [("GrabCut", "grabcut"), ("COCO", "COCO_MVal")])
def test_two_spellings_of_one_dataset_are_one(one: str, other: str) -> None:
    rows = [("a", "", "first", "pc", 1, 1), ("b", "", "first", "pc", 4, 4)]
    again = [("a", "", "first", "mobile", 2, 3)]
    both = check_clicks(pl.concat([_table(rows, one).frame, _table(again, other).frame]))
    assert both.datasets() == tuple(sorted((one, other)))
    found = both.by_full_stem()
    assert list(found) == ["a", "b"]
    assert found["a"].points.tolist() == [[1, 1], [2, 3]] and found["a"].devices.tolist() == ["pc", "mobile"]
    assert found["a"].dataset == one
