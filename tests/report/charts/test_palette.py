from __future__ import annotations

import re

import pytest

from hardlook.report.charts import palette

LIGHT, DARK = palette.list_colours(), palette.list_colours(dark=True)


@pytest.mark.parametrize(
    ("page", "categories"), [(LIGHT, palette.CATEGORIES_LIGHT), (DARK, palette.CATEGORIES_DARK)], ids=["light", "dark"]
)
def test_text_and_categories_read_on_their_page(page, categories):
    for name in ("ink", "muted", "accent"):
        assert palette.contrast(page[name], page["page"]) >= 4.5
        assert palette.contrast(page[name], page["panel"]) >= 4.5
    for colour in categories:
        assert palette.contrast(colour, page["page"]) >= 4.5


def test_text_reads_on_every_step_of_every_ramp():
    for colours in (LIGHT, DARK):
        for letter in ("s", "d"):
            for step in range(palette.STEPS + 1):
                assert palette.contrast(colours[f"{letter}{step}"], colours[f"{letter}t{step}"]) >= 4.5


def test_every_variable_that_charts_use_is_defined_for_light_and_dark():
    light, dark = palette.stylesheet().split("@media")
    named = {f"--c{i}" for i in range(6)} | {
        f"--{r}{s}" for r in ("s", "st", "d", "dt") for s in range(palette.STEPS + 1)
    }
    for part in (light, dark):
        assert named <= set(re.findall(r"(--[a-z0-9]+):", part))
