"""Stems of files of clicks that are used, and those that are left out."""

import csv

from hardlook.rclicks.user_clicks.loading import load_clicked_data


def test_two_clicks_are_compared_and_one_is_not(clicked, tmp_path):
    with clicked.clicks.open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["click_type"] == "first"]
    few = [[row for row in rows if row["full_stem"] == stem][:count] for stem, count in (("000001", 2), ("000002", 1))]
    with (tmp_path / "few.csv").open("w") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(row for part in few for row in part)
    found = load_clicked_data(tmp_path / "few.csv", {"grabcut": clicked.folder}, None, None, scenes=2, seed=0)
    assert [source.key for source in found.sources] == ["grabcut/000001"]
    [note] = found.left_out
    assert (note.what, note.examples) == ("stems with fewer than 2 clicks", ("grabcut/000002",))
