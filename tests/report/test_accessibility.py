"""axe-core on every kind of page: no serious and no critical finding, at both widths, light and dark."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import report_samples
from browsers import NEEDS_SELENIUM
from report_browser import LOOKS, show

from hardlook.harness.sections import Section
from hardlook.report.charts import draw_svg
from hardlook.report.index import IndexEntry, render_index
from hardlook.report.page import render_page, render_study

AXE = importlib.util.find_spec("axe_playwright_python")

pytestmark = [*NEEDS_SELENIUM, pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed")]

RUN = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations))"


def findings(driver) -> list[str]:
    """What axe-core calls serious or critical, with the first place of each."""
    script = Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    driver.execute_script(script)
    grave = [found for found in driver.execute_async_script(RUN) if found["impact"] in ("serious", "critical")]
    return [f"{found['id']}: {found['help']}: {found['nodes'][0]['html'][:200]}" for found in grave]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    parts = [*report_samples.sections(), report_samples.three_galleries()]
    few = [report_samples.slopes(), report_samples.heat(), *report_samples.three_galleries().blocks]
    entry = IndexEntry(
        "Open mIoU", "Near.", "run.html", report_samples.scorecard().headline, draw_svg(report_samples.dial())
    )
    texts = {
        "run": render_page(report_samples.scorecard(), parts, **report_samples.page_arguments()),
        "study": render_study(
            [Section("Charts", "", few)], title="Study", summary="Words.", pictures=report_samples.pictures()
        ),
        "index": render_index([entry], title="Demo", text="One report."),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


# The run's page is the longest, and every look of it is some seconds: two of the four cover both widths and schemes.
LOOKED_AT = [("run", 1280, "dark"), ("run", 390, "light")]

LOOKED_AT += [(name, *look) for name in ("study", "index") for look in LOOKS]


@pytest.mark.parametrize(("name", "width", "scheme"), LOOKED_AT)
def test_no_serious_finding(driver, pages, name, width, scheme):
    show(driver, pages[name], width, scheme)
    driver.execute_script("document.querySelectorAll('details').forEach(box => { box.open = true })")
    assert findings(driver) == []


def test_the_checker_finds_what_is_wrong(driver, tmp_path):
    file = tmp_path / "bad.html"
    file.write_text("<!doctype html><html><body><img src='data:,'><p style='color:#ccc;background:#fff'>pale</p>")
    show(driver, file, 1280, "light")
    assert {"image-alt", "color-contrast", "html-has-lang"} <= {found.split(":")[0] for found in findings(driver)}
