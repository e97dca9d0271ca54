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
        "table": f"/run/{strange}?view=table",
        "compared": f"/compare?first={strange}&second={ragged}&view=table",
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
@pytest.mark.parametrize("name", ["index", "run", "table", "unit", "compare", "compared", "refused"])
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
@pytest.mark.parametrize("name", ["index", "run", "table", "unit", "compare", "compared", "refused"])
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


@pytest.mark.parametrize("view", ["grid", "table"])
def test_keys_move_through_units_of_a_list_and_from_unit_to_unit(driver, address, keys, view):
    from selenium.webdriver.common.keys import Keys

    show(driver, f"{address}/run/{keys['strange']}?view={view}")
    body = driver.find_element("tag name", "body")
    body.send_keys("j")
    body.send_keys("j")
    here = driver.find_elements("css selector", "[data-row].here")
    assert len(here) == 1
    unit = here[0].find_element("css selector", ".name, .unit-cell").text
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for(driver, lambda: driver.find_element("tag name", "h1").text == unit)
    driver.find_element("tag name", "body").send_keys("o")
    wait_for(driver, lambda: "overlay=off" in driver.current_url)
    driver.find_element("tag name", "body").send_keys("k")
    wait_for(driver, lambda: driver.find_element("tag name", "h1").text != unit)
    driver.find_element("tag name", "body").send_keys("b")
    wait_for(driver, lambda: driver.find_elements("css selector", ".browse"))
    assert ("view=table" in driver.current_url, "overlay=off" in driver.current_url) == (view == "table", True)


def wait_for(driver, holds):
    """Until a condition holds; a page that is being replaced may lose its elements meanwhile."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 30, ignored_exceptions=[StaleElementReferenceException]).until(lambda driver: holds())


LOADED = (
    "return Array.from(document.querySelectorAll('.grid img')).slice(0, 4).every(i => i.complete && i.naturalWidth)"
)
PIXEL = """
const image = document.querySelector(".grid img"), canvas = document.createElement("canvas");
[canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
const pen = canvas.getContext("2d");
pen.drawImage(image, 0, 0);
return Array.from(pen.getImageData(0, 0, canvas.width, canvas.height).data).reduce((sum, one) => sum + one, 0);
"""


def test_a_key_hides_and_shows_what_is_laid_over_all_pictures(driver, address, keys):
    show(driver, f"{address}/run/{keys['strange']}?q=scene&sort=unit")
    wait_for(driver, lambda: driver.execute_script(LOADED))
    laid = driver.execute_script(PIXEL)
    driver.execute_script("window.same = true")
    body = driver.find_element("tag name", "body")
    body.send_keys("o")
    wait_for(driver, lambda: driver.execute_script(LOADED) and driver.execute_script(PIXEL) != laid)
    bare = driver.execute_script(PIXEL)
    sources = driver.execute_script("return Array.from(document.querySelectorAll('.grid img')).map(i => i.src)")
    assert sources
    assert all("overlay=off" in source for source in sources)
    # The page was not loaded again, and its address and its links keep the choice.
    assert driver.execute_script("return window.same")
    assert "overlay=off" in driver.current_url
    assert "q=scene" in driver.current_url
    links = "return Array.from(document.querySelectorAll('.grid a, .pager a, .groups a')).map(a => a.href)"
    assert all("overlay=off" in link for link in driver.execute_script(links))
    assert driver.find_element("css selector", "a[data-overlay][aria-current]").text == "nothing"
    body.send_keys("t")
    wait_for(driver, lambda: driver.execute_script(LOADED) and driver.execute_script(PIXEL) not in (bare, laid))
    assert driver.find_element("css selector", "a[data-overlay][aria-current]").text == "truth"
    body.send_keys("o")
    body.send_keys("o")
    assert "overlay=truth" in driver.current_url
    driver.find_element("css selector", "a[data-overlay=on]").click()
    wait_for(driver, lambda: driver.execute_script(LOADED) and driver.execute_script(PIXEL) == laid)
    assert "overlay" not in driver.current_url
    assert driver.execute_script("return window.same")
    assert complaints(driver) == []


def test_arrows_move_within_the_grid(driver, address, keys):
    from selenium.webdriver.common.keys import Keys

    show(driver, f"{address}/run/{keys['strange']}")
    driver.find_element("tag name", "body").send_keys("j")
    place = "return Array.from(document.querySelectorAll('.grid li')).findIndex(tile => tile.matches('.here'))"
    tops = "return new Set(Array.from(document.querySelectorAll('.grid li')).map(tile => tile.offsetTop)).size"
    assert driver.execute_script(tops) > 1
    seen = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_UP):
        driver.switch_to.active_element.send_keys(key)
        seen.append(driver.execute_script(place))
    assert seen[0] == 1
    assert seen[1] - 1 > 1
    assert seen[2:] == [seen[1] - 1, 0, 0]


def test_the_filter_is_in_the_address_and_stays_there(driver, address, keys):
    show(driver, f"{address}/run/{keys['strange']}?view=table&overlay=truth")
    driver.find_element("css selector", "input[name=q]").send_keys("scene-000")
    follow(driver, "css selector", ".filters button")
    assert {"q=scene-000", "view=table", "overlay=truth"} <= set(driver.current_url.partition("?")[2].split("&"))
    driver.find_element("tag name", "body").send_keys("v")
    wait_for(driver, lambda: driver.find_elements("css selector", ".grid"))
    assert len(driver.find_elements("css selector", ".grid li")) == 10
    follow(driver, "css selector", ".grid a")
    assert "of 10 in the list" in driver.find_element("css selector", ".pager").text
    follow(driver, "css selector", ".trail a:last-child")
    assert len(driver.find_elements("css selector", ".grid li")) == 10


def test_filters_are_beside_the_grid_or_above_it(driver, address, pages):
    places = "return ['.filters', '.content'].map(n => document.querySelector(n).getBoundingClientRect().toJSON())"
    show(driver, address + pages["run"], 1280)
    form, grid = driver.execute_script(places)
    assert form["right"] <= grid["left"]
    assert form["width"] < grid["width"] / 2
    assert abs(form["top"] - grid["top"]) < 2
    show(driver, address + pages["run"], 390)
    form, grid = driver.execute_script(places)
    assert form["bottom"] <= grid["top"]


def test_two_models_are_side_by_side_and_keys_follow_the_comparison(driver, address, keys):
    show(driver, f"{address}/compare?first={keys['strange']}&second={keys['ragged']}&is.better=%3Dfirst")
    wait_for(driver, lambda: driver.execute_script(LOADED))
    tiles = driver.find_elements("css selector", ".grid li")
    units = [tile.find_element("css selector", ".name").text for tile in tiles]
    one, other = (image.rect for image in tiles[0].find_elements("tag name", "img"))
    assert one["y"] == other["y"]
    assert one["x"] + one["width"] <= other["x"]
    follow(driver, "css selector", ".grid a")
    one, other = (part.rect for part in driver.find_elements("css selector", ".answers section"))
    assert one["x"] + one["width"] <= other["x"]
    for unit in units[1:3]:
        driver.find_element("tag name", "body").send_keys("j")
        wait_for(driver, lambda unit=unit: driver.find_element("tag name", "h1").text == unit)
    driver.find_element("tag name", "body").send_keys("b")
    wait_for(driver, lambda: driver.find_elements("css selector", ".grid li"))
    shown = [tile.text for tile in driver.find_elements("css selector", ".grid li .name")]
    assert shown == units


def test_letters_in_a_field_are_text(driver, address, pages):
    show(driver, address + pages["run"])
    field = driver.find_element("css selector", "input[name=q]")
    field.send_keys("jko")
    assert field.get_attribute("value") == "jko"
    assert not driver.find_elements("css selector", ".here")


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
        show(driver, address + pages["table"])
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
