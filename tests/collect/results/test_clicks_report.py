from dataclasses import replace

import polars as pl
import pytest

from hardlook.collect.results.clicks import collect_clicks
from hardlook.collect.results.clicks_report import ClickGalleries, build_sections


@pytest.mark.parametrize("devices", [("pc",), ("pc", "mobile")])
def test_images_with_the_fewest_valid_clicks_come_first(gathered, devices):
    settings = gathered.study.settings.model_copy(update={"devices": devices})
    collected = collect_clicks(replace(gathered.study, settings=settings), gathered.store)
    pc, mobile = [5, 4, 3, 2, 1, 0, 7, 6], [9, 9, 0, 9, 9, 9, 9, 9]
    if devices == ("pc",):
        mobile = [0] * 8
    # In place of the computed frame, whose counts depend on chance.
    vars(collected)["images"] = collected.images.with_columns(
        pl.Series("valid_pc", pc), pl.Series("valid_mobile", mobile)
    )
    sections = build_sections(collected, ClickGalleries(collected))
    [images] = [section for section in sections if section.title == "Images"]
    counts = [row[4] for row in images.blocks[-1].rows]
    assert counts == ([0, 1, 2, 3, 4, 5, 6, 7] if devices == ("pc",) else [3, 0, 1, 2, 4, 5, 6, 7])
