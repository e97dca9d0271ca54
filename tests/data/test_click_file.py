from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.click_file import ClickTable, check_clicks, read_clicks, write_clicks
from hardlook.errors import DataError, OptionError

HEADER = "dataset,image_stem,object_stem,model_type,click_type,full_stem,device,x,y,w,h"

ROWS = (
    "DAVIS,095,,,first,095,pc,3,4,20,10",
    "DAVIS,133,,sam,fn,133_sam_fn_pc_7,mobile,1.5,0,20,10",
    "TETRIS,eu.a-1,1,,first,eu.a-1_______1,mobile,19,9,20,10",
    "TETRIS,eu.a-1,1,mivos,fp,eu.a-1_______1_mivos_fp,pc,0,0,20,10",
)


def _file(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "clicks.csv"
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return path


def test_text_stays_text_and_empty_stays_empty(tmp_path: Path) -> None:
    frame = read_clicks(_file(tmp_path, *ROWS)).frame
    assert frame["image_stem"].to_list() == ["095", "133", "eu.a-1", "eu.a-1"]
    assert frame["object_stem"].to_list() == ["", "", "1", "1"]
    assert frame["model_type"].to_list() == ["", "sam", "", "mivos"]
    assert frame["x"].to_list() == [3.0, 1.5, 19.0, 0.0]
    assert frame["w"].to_list() == [20] * 4
    assert frame["w"].dtype == pl.Int64


def test_the_same_from_other_line_ends_a_byte_order_mark_and_another_order(tmp_path: Path) -> None:
    expected = read_clicks(_file(tmp_path, *ROWS)).frame
    turned = ["\t".join(reversed(line.split(","))).replace("\t", ",") for line in (HEADER, *ROWS)]
    (tmp_path / "other.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join((*turned, "")).encode())
    assert read_clicks(tmp_path / "other.csv").frame.equals(expected)


def test_reading_what_was_written(tmp_path: Path) -> None:
    table = read_clicks(_file(tmp_path, *ROWS, *ROWS[:1]))
    write_clicks(tmp_path / "again.csv", table)
    again = read_clicks(tmp_path / "again.csv")
    assert again.frame.equals(table.frame)
    assert (again.clipped, again.repeated) == (0, 1)
    assert check_clicks(table.frame).frame.equals(table.frame)


def test_clicks_outside_go_to_the_edge_and_are_counted(tmp_path: Path) -> None:
    rows = [f"d,a,,,first,a,pc,{x},{y},20,10" for x, y in ((-1, 5), (20, 5), (19, 9), (0, 0), (7, 99.5))]
    table = read_clicks(_file(tmp_path, *rows))
    assert table.frame.select("x", "y").rows() == [(0, 5), (19, 5), (19, 9), (0, 0), (7, 9)]
    assert table.clipped == 3


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("d,a,,,second,a,pc,1,1,20,10", "row 5: expected click_type to be first or fn or fp, got 'second'"),
        ("d,a,,,first,a,tablet,1,1,20,10", "row 5: expected device to be pc or mobile, got 'tablet'"),
        ("d,a,,,first,a,pc,left,1,20,10", "row 5: expected x to be a finite number, got 'left'"),
        ("d,a,,,first,a,pc,1,nan,20,10", "expected y to be a finite number"),
        ("d,a,,,first,a,pc,inf,1,20,10", "expected x to be a finite number"),
        ("d,a,,,first,a,pc,,1,20,10", "expected x to be a finite number"),
        ("d,a,,,first,a,pc,1,1,20", "expected h to be a whole number above 0"),
        ("d,a,,,first,a,pc,1,1,0,10", "expected w to be a whole number above 0"),
        ("d,a,,,first,a,pc,1,1,20.5,10", "expected w to be a whole number above 0"),
        ("d,a,1.0,,first,a_______1.0,pc,1,1,20,10", "expected object_stem to be digits or nothing"),
        (",a,,,first,a,pc,1,1,20,10", "expected dataset to be a name"),
        ("d,,,,first,,pc,1,1,20,10", "expected image_stem to be a name"),
        ("d,a,,,first,b,pc,1,1,20,10", "row 5: the full stem does not belong to the image 'a'"),
        ("d,a,2,,first,a,pc,1,1,20,10", "row 5: the full stem does not belong to the image 'a' and the object '2'"),
        ("d,a,,sam,fn,b_mivos_fn,pc,1,1,20,10", "row 5: the full stem does not belong to the image 'a'"),
        ("d,a,,sam,fn,a_mivos_fp,pc,1,1,20,10", "row 5: expected click type fn, got a full stem of type fp"),
        ("d,a,,sam,fn,a,pc,1,1,20,10", "row 5: not a full stem of click type fn"),
        ("DAVIS,095,,,first,095,pc,1,1,20,11", r"several sizes: 20x10 \(row 1\), 20x11 \(row 5\)"),
        ("d,a,,,first,a,pc,1,1,20,10,more", "not a readable csv"),
    ],
)
def test_rows_that_cannot_be_are_named(tmp_path: Path, row: str, told: str) -> None:
    path = _file(tmp_path, *ROWS, row)
    with pytest.raises(DataError, match=told) as caught:
        read_clicks(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy


def test_several_rows_with_one_fault_are_counted(tmp_path: Path) -> None:
    rows = [f"d,a,,,first,a,{device},1,1,20,10" for device in ("pc", "tablet", "phone")]
    with pytest.raises(DataError, match="2 rows: expected device to be pc or mobile, got 'tablet' in row 2"):
        read_clicks(_file(tmp_path, *rows))


def test_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing columns: 'h' and unexpected columns: 'height'") as caught:
        read_clicks(_file(tmp_path, *ROWS, header=HEADER.removesuffix("h") + "height"))
    assert "full_stem" in str(caught.value.remedy)
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(DataError, match="empty"):
        read_clicks(tmp_path / "empty.csv")
    with pytest.raises(DataError, match="does not exist"):
        read_clicks(tmp_path / "none.csv")


def test_one_stem_may_have_another_size_in_another_dataset(tmp_path: Path) -> None:
    rows = ("GrabCut,21077,,,first,21077,pc,1,1,20,10", "Berkeley,21077,,,first,21077,pc,1,1,30,10")
    assert len(read_clicks(_file(tmp_path, *rows))) == 2


def test_a_file_with_a_header_alone_has_no_clicks(tmp_path: Path) -> None:
    table = read_clicks(_file(tmp_path))
    assert (len(table), table.clipped, table.repeated, table.by_full_stem()) == (0, 0, 0, {})


def test_one_stem_has_one_size_however_its_dataset_is_spelt(tmp_path: Path) -> None:
    rows = ("GrabCut,21077,,,first,21077,pc,1,1,20,10", "grabcut,21077,,,first,21077,pc,1,1,30,10")
    with pytest.raises(DataError, match=r"several sizes: 20x10 \(row 1\), 30x10 \(row 2\)"):
        read_clicks(_file(tmp_path, *rows))


def test_a_method_may_have_underscores_where_the_row_names_its_image(tmp_path: Path) -> None:
    rows = (
        "d,a_b,,cfr_icl,fn,a_b_cfr_icl_fn_pc_7,pc,1,1,20,10",
        "d,a_b,3,cfr_icl,fp,a_b_______3_cfr_icl_fp_mobile_1,pc,1,1,20,10",
        "d,a,,CFR-ICL,fn,a_cfr_icl_fn_pc_7,mobile,1,1,20,10",
    )
    assert list(read_clicks(_file(tmp_path, *rows)).by_full_stem()) == sorted(row.split(",")[5] for row in rows)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        # The method of the row says that these names go on with the image's.
        ("d,a,,ritm,fn,a_b_ritm_fn_pc_7,pc,1,1,20,10", "not belong to the image 'a'"),
        ("d,a,,ritm,fn,a_______3_ritm_fn_pc_7,pc,1,1,20,10", "not belong to the image 'a' and the object ''"),
        ("d,a,,cfr_icl,fn,a_______3_cfr_icl_fn_pc_7,pc,1,1,20,10", "not belong to the image 'a' and the object ''"),
        ("d,a,,cfr_icl,fn,ab_cfr_icl_fn_pc_7,pc,1,1,20,10", "not belong to the image 'a'"),
        ("d,a,,cfr_icl,fp,a_cfr_icl_fn_pc_7,pc,1,1,20,10", "expected click type fp, got a full stem of type fn"),
    ],
)
def test_names_that_another_image_explains_are_refused(tmp_path: Path, row: str, told: str) -> None:
    with pytest.raises(DataError, match=f"row 1: .*{told}"):
        read_clicks(_file(tmp_path, row))


def test_one_name_of_two_things_is_refused(tmp_path: Path) -> None:
    rows = ("d,a_b,,ritm,fn,a_b_ritm_fn_pc_7,pc,1,1,20,10", "d,a,,b_ritm,fn,a_b_ritm_fn_pc_7,pc,1,1,20,10")
    with pytest.raises(DataError, match=r"several images, objects or click types \(rows 1, 2\)"):
        read_clicks(_file(tmp_path, *rows))


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
def test_the_first_round_is_the_rows_of_its_type(rows: list[tuple]) -> None:
    table = _table(rows)
    assert table.first().frame.equals(table.frame.filter(pl.Series([row[2] == "first" for row in rows])))
    assert len(table) == len(rows)


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
