"""The pages in a real browser: they fit, are quiet, run no name as script, work by keys and without script; axe."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from browsers import NEEDS_SELENIUM
from hostile_runs import STEMS

AXE = importlib.util.find_spec("axe_playwright_python")

pytestmark = NEEDS_SELENIUM

LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]

CHECK = "const done = arguments[0]; axe.run(document).then(r => done([r.violations, r.passes.length]))"


@pytest.fixture(scope="module")
def pages(keys):
    strange, ragged = keys["strange"], keys["ragged"]
    return {
        "index": "/",
        "run": f"/run/{strange}",
        "unit": f"/run/{strange}/unit?id=scene-0004&with={ragged}",
        "compare": f"/compare?first={strange}&second={ragged}",
        "refused": "/nowhere",
    }


def show(driver, url, width=1280, scheme="light"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(url)


def complaints(driver):
    """What the console says, but for the status of a page that is refused on purpose."""
    return [entry["message"] for entry in driver.get_log("browser") if "status of 4" not in entry["message"]]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", ["index", "run", "unit", "compare", "refused"])
def test_pages_fit_and_the_console_is_quiet(driver, address, pages, name, width, scheme):
    show(driver, address + pages[name], width, scheme)
    assert complaints(driver) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith((address, "data:")) for url in sent)


@pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
@pytest.mark.parametrize("name", ["index", "run", "unit", "compare", "refused"])
def test_axe_finds_nothing_serious(driver, address, pages, name, width, scheme):
    show(driver, address + pages[name], width, scheme)
    driver.execute_script("document.querySelectorAll('details').forEach(box => { box.open = true })")
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    driver.execute_script(Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    found, passed = driver.execute_async_script(CHECK)
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
    assert passed > 5
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in grave] == []


def test_no_name_runs_as_script(driver, address, keys):
    run = f"/run/{keys['hostile']}"
    units = [f"{run}/unit?id={quote(stem)}" for stem in STEMS]
    compared = f"/compare?first={keys['hostile']}&second={keys['strange']}"
    for page in ("/", run, *units, compared, "/" + quote(STEMS[0]), f"{run}?q={quote(STEMS[0])}"):
        show(driver, address + page)
        assert driver.execute_script("return window.hacked") is None, page
        assert driver.execute_script("return document.scripts.length") == 1, page
        assert complaints(driver) == [], page


def test_pictures_load_at_full_size(driver, address, pages):
    show(driver, address + pages["unit"])
    sizes = driver.execute_script(
        "return Array.from(document.images).map(i => [i.complete, i.naturalWidth, i.naturalHeight, i.alt.length > 5])"
    )
    assert sizes == [[True, 160, 120, True]] * 6


def test_keys_move_through_rows_and_units(driver, address, pages):
    from selenium.webdriver.common.keys import Keys

    show(driver, address + pages["run"])
    body = driver.find_element("tag name", "body")
    body.send_keys("j")
    body.send_keys("j")
    here = driver.find_elements("css selector", "tr.here")
    assert len(here) == 1
    unit = here[0].find_element("tag name", "a").text
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert driver.find_element("tag name", "h1").text == unit
    driver.find_element("tag name", "body").send_keys("o")
    assert "overlay=off" in driver.current_url
    driver.find_element("tag name", "body").send_keys("k")
    assert driver.find_element("tag name", "h1").text != unit


def test_letters_in_a_field_are_text(driver, address, pages):
    show(driver, address + pages["run"])
    field = driver.find_element("css selector", "input[name=q]")
    field.send_keys("jko")
    assert field.get_attribute("value") == "jko"
    assert not driver.find_elements("css selector", "tr.here")


def test_the_command_can_be_copied(driver, address, pages):
    show(driver, address + pages["unit"])
    permissions = {"origin": address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", permissions)
    button = driver.find_element("css selector", "button[data-copies]")
    button.click()
    said = driver.find_element("css selector", "[data-copied]")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 10).until(lambda driver: said.text)
    assert said.text in ("Copied.", "Selected: copy it with the keyboard.")


def follow(driver, by, what):
    """Click on what leads to another page, and wait until the page before is gone: a busy machine may still show it."""
    from selenium.webdriver.support.expected_conditions import staleness_of
    from selenium.webdriver.support.ui import WebDriverWait

    leading = driver.find_element(by, what)
    leading.click()
    WebDriverWait(driver, 30).until(staleness_of(leading))


def test_forms_and_links_work_without_script(driver, address, pages):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, address + pages["run"])
        driver.find_element("css selector", "input[name=q]").send_keys("scene-000")
        follow(driver, "css selector", ".filters button")
        assert "10 records" in driver.find_element("css selector", ".found").text
        follow(driver, "link text", "unit")
        units = [cell.text for cell in driver.find_elements("css selector", ".unit-cell")]
        assert units == sorted(units)
        assert not driver.find_element("css selector", ".filters").find_elements("css selector", "[onsubmit]")
        follow(driver, "link text", units[0])
        assert not driver.find_element("css selector", "button[data-copies]").is_displayed()
        follow(driver, "link text", "Next")
        assert driver.find_element("tag name", "h1").text == units[1]
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
