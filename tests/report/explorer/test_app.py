"""The pages through the application: what they say, where they lead, and what happens when files vanish.

What must not happen: strangers reading, paths reaching the file system, scripts in names running.
"""

import html
import json
import re
import shutil
from html.parser import HTMLParser
from urllib.parse import quote

import cv2
import numpy as np
import pytest
from explorer_requests import Asking
from hostile_runs import IMAGE, SCRIPT, STEMS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run
from hardlook.report.explorer.app import MAX_QUERY, make_app
from hardlook.serving import is_allowed_host

from .conftest import SCENES


@pytest.fixture(scope="module")
def qualities(made):
    """Unit to quality of each run, from the benchmark itself."""
    runs = {name: score_run(RunFolder(made / "seg" / name)) for name in ("strange", "ragged")}
    return {
        name: dict(run.benchmark.qualities(run.records, run.options).select("unit", "image-miou").iter_rows())
        for name, run in runs.items()
    }


def units_in(answer):
    """The units of a page in their order, in its grid or in its table."""
    return re.findall(r'(?:unit-cell[^>]*><a href="[^"]*"|<span class="name")>([^<]*)<', answer.text)


def test_the_index_lists_runs_by_benchmark_and_links_them(ask, keys):
    page = ask("/")
    assert page.status == 200
    assert "3 runs can be opened" in page.words
    assert {link.removeprefix("/run/") for link in page.links("/run/")} == set(keys.values())
    assert "stranger=0.4" in page.words


def test_a_run_shows_the_worst_units_first(ask, keys, qualities):
    page = ask(f"/run/{keys['strange']}")
    worst = sorted(qualities["strange"], key=lambda unit: (qualities["strange"][unit], unit))
    assert units_in(page) == worst
    assert f"{SCENES} records" in page.words
    mean = np.mean(list(qualities["strange"].values()))
    assert f"mIoU of the image {mean:.3f}" in page.words


def test_filters_keep_what_they_say(ask, keys, qualities):
    own = qualities["strange"]
    page = ask(f"/run/{keys['strange']}?min.image-miou=0.5&max.image-miou=0.9&sort=unit")
    kept = sorted(unit for unit, value in own.items() if 0.5 <= value <= 0.9)
    assert units_in(page) == kept
    assert 0 < len(kept) < SCENES
    assert f"{len(kept)} records of {SCENES}: mIoU of the image from 0.5 to 0.9." in page.words
    assert units_in(ask(f"/run/{keys['strange']}?q=SCENE-0003")) == ["scene-0003"]


def test_links_of_slices_filter_by_them(ask, keys):
    page = ask(f"/run/{keys['strange']}?view=table")
    (link, *_) = page.links("is.context")
    kept = ask(link)
    value = html.unescape(re.search(r"context is (\w+)", kept.words)[1])
    assert kept.status == 200
    assert set(re.findall(r'<td class="short">(\w+)</td>', kept.text)) & {value}


def test_pages_have_fifty_rows_or_as_many_as_asked(ask, keys):
    run = f"/run/{keys['strange']}?sort=unit&size=4"
    seen = []
    for number in range(1, 5):
        seen += units_in(ask(f"{run}&page={number}"))
    assert seen == [f"scene-{index:04d}" for index in range(SCENES)]
    past = ask(f"{run}&page=5")
    assert past.status == 404
    assert "There is no page 5: this list has 4 pages." in past.words
    first = ask(run)
    assert "Page 1 of 4" in first.words
    assert units_in(ask(first.links("page=2")[0])) == [f"scene-{index:04d}" for index in range(4, 8)]


@pytest.mark.parametrize("page", ["0", "-1", "99999999999999999999", "1.5", "NaN", "x"])
def test_pages_that_cannot_be_are_refused(ask, keys, page):
    answer = ask(f"/run/{keys['strange']}?page={page}")
    assert answer.status == 400
    assert "page is a whole number" in answer.words


def test_nothing_found_is_said(ask, keys):
    page = ask(f"/run/{keys['strange']}?q=nowhere")
    assert page.status == 200
    assert "0 records of 14" in page.words
    assert "No record matches." in page.words


def test_text_of_any_script_can_be_looked_for(ask, keys):
    page = ask(f"/run/{keys['hostile']}?q=%C3%BCn%C3%AFcode%20%E2%98%83")
    assert "1 record of 5" in page.words


def test_unknown_runs_units_and_pages_are_404(ask, keys):
    for address in ("/run/000000000000", f"/run/{keys['strange']}/unit?id=nowhere", "/nowhere", "/run/"):
        answer = ask(address)
        assert answer.status == 404
        assert "All runs" in answer.words


def test_a_unit_has_its_record_pictures_and_command(ask, keys, made):
    page = ask(f"/run/{keys['strange']}/unit?id=scene-0004")
    record = score_run(RunFolder(made / "seg" / "strange")).whole_records(["scene-0004"])["scene-0004"]
    assert ", ".join(map(str, record["cells"][:5])) in page.words
    assert record["context"] in page.words
    assert "labelled pixels are right" in page.words
    command = html.unescape(re.search('id="command">(.*?)</code>', page.text)[1])
    assert command.startswith("hardlook run closed-miou --model planted-segmenter --model-arg stranger=0.4 --scenes 14")
    assert command.endswith("--unit scene-0004 --show")
    assert page.text.count("<img ") == 3


def test_pictures_are_as_large_as_the_image_and_the_overlay_can_be_left_out(ask, keys):
    from hardlook.world.planted import PlantedWorld

    shown = PlantedWorld(seed=0, count=SCENES)[4].image
    address = f"/run/{keys['strange']}/picture?id=scene-0004"
    pictures = {}
    for number, overlay in ((0, "on"), (1, "on"), (1, "off")):
        answer = ask(f"{address}&number={number}&overlay={overlay}")
        assert answer.headers["content-type"] == "image/png"
        decoded = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
        pictures[number, overlay] = decoded
    assert np.array_equal(pictures[0, "on"], shown)
    assert np.array_equal(pictures[1, "off"], shown)
    assert not np.array_equal(pictures[1, "on"], shown)
    for number in ("3", "-1", "x", "99999999", ""):
        assert ask(f"{address}&number={number}").status == 404


def test_the_overlay_switch_leads_there_and_back(ask, keys):
    page = ask(f"/run/{keys['strange']}/unit?id=scene-0004")
    assert page.status == 200, page.words
    (off,) = page.links("&overlay=off")
    without = ask(off)
    assert "overlay=off" in re.search('<img src="([^"]*)"', without.text)[1]
    assert "Show masks" in without.words
    (shown,) = [link for link in without.links("/unit?id=scene-0004&sort=") if "with=" not in link]
    assert "overlay" not in shown
    assert "Hide masks" in ask(shown).words


def test_neighbours_are_those_of_the_list_it_was_opened_from(ask, keys, qualities):
    worst = sorted(qualities["strange"], key=lambda unit: (qualities["strange"][unit], unit))
    page = ask(ask(f"/run/{keys['strange']}?size=20").links("/unit?")[1])
    assert f"2 of {SCENES} in the list" in page.words
    following = ask(page.links(f"id={worst[2]}&")[0])
    assert f"3 of {SCENES} in the list" in following.words


def test_the_same_unit_in_other_runs(ask, keys, qualities):
    page = ask(f"/run/{keys['strange']}/unit?id=scene-0004")
    gap = qualities["strange"]["scene-0004"] - qualities["ragged"]["scene-0004"]
    shown = page.words.split("The same unit in other runs")[1]
    assert f"{qualities['ragged']['scene-0004']:.3f}" in shown
    assert f"{abs(gap):.3f}" in shown
    beside = ask(page.links("with=" + keys["ragged"])[0])
    assert beside.status == 200
    assert beside.text.count("<img ") == 6
    assert "shown above" in beside.words


def test_a_run_that_lacks_the_unit_says_so(ask, keys):
    page = ask(f"/run/{keys['strange']}/unit?id=scene-0004")
    hostile = page.words.split("The same unit in other runs")[1]
    assert "has no record of this unit" in hostile


def test_two_runs_unit_by_unit(ask, keys, qualities):
    page = ask(f"/compare?first={keys['strange']}&second={keys['ragged']}")
    one, two = qualities["strange"], qualities["ragged"]
    apart = sorted(one, key=lambda unit: (-abs(one[unit] - two[unit]), unit))
    assert units_in(page) == apart
    better = sum(one[unit] > two[unit] for unit in one)
    worse = sum(one[unit] < two[unit] for unit in one)
    assert f"better on {better} units" in page.words
    assert f"better on {worse} units" in page.words
    first = ask(f"/compare?first={keys['strange']}&second={keys['ragged']}&sort=difference&order=up")
    assert units_in(first) == sorted(one, key=lambda unit: (one[unit] - two[unit], unit))
    kept = ask(f"/compare?first={keys['strange']}&second={keys['ragged']}&is.better=first&sort=unit")
    assert units_in(kept) == sorted(unit for unit in one if one[unit] > two[unit])


def thumbnails_in(answer):
    return list(map(html.unescape, re.findall('<img src="(/run/[^"]*/thumbnail[^"]*)"', answer.text)))


def read_pixels(answer):
    return cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1].astype(int)


def test_a_run_opens_on_a_grid_of_pictures_with_the_table_as_second_view(ask, keys, qualities):
    page = ask(f"/run/{keys['strange']}?min.image-miou=.5&size=20")
    shown = [unit for unit, value in sorted(qualities["strange"].items(), key=lambda one: one[::-1]) if value >= 0.5]
    assert [re.search("id=([^&]*)", one)[1] for one in thumbnails_in(page)] == shown
    assert [ask(address).headers["content-type"] for address in thumbnails_in(page)[:3]] == ["image/jpeg"] * 3
    words = (
        f'alt="Image with truth and prediction of {shown[0]}, mIoU of the image {qualities["strange"][shown[0]]:.3f}"'
    )
    assert words in page.text
    (link,) = page.links("view=table")
    table = ask(link)
    assert "min.image-miou=0.5" in link
    assert (thumbnails_in(table), units_in(table)) == ([], shown)
    assert "view=table" in table.links("sort=unit")[0]
    assert '<input type="hidden" name="view" value="table"/>' in table.text
    (back,) = [
        link for link in table.links("/run/") if link.startswith(f"/run/{keys['strange']}?") and "view" not in link
    ]
    assert units_in(ask(back)) == shown


def test_thumbnails_lay_truth_and_prediction_over_the_image_or_leave_them_out(ask, keys):
    from hardlook.world.planted import PlantedWorld

    address = f"/run/{keys['strange']}/thumbnail?id=scene-0004"
    pixels = {name: read_pixels(ask(f"{address}&overlay={name}")) for name in ("on", "truth", "prediction", "off")}
    image = cv2.resize(PlantedWorld(seed=0, count=SCENES)[4].image, (320, 240), interpolation=cv2.INTER_LINEAR)
    assert np.abs(pixels["off"] - image).mean() < 3
    for one, other in (("on", "off"), ("on", "truth"), ("on", "prediction"), ("truth", "prediction")):
        assert np.abs(pixels[one] - pixels[other]).mean() > 0.5, (one, other)
    assert np.array_equal(read_pixels(ask(address)), pixels["on"])


def test_browsers_may_keep_thumbnails_and_nothing_else(ask, keys):
    address = thumbnails_in(ask(f"/run/{keys['strange']}"))[0]
    first = ask(address)
    assert first.headers["cache-control"] == "private, max-age=600"
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = ask(address, headers=[(b"host", b"localhost"), (b"if-none-match", known.encode())])
        assert (again.status, again.content) == (304, b"")
    other = ask(f"{address}&overlay=off".replace("overlay=on&", ""))
    assert other.headers["etag"] != tag
    assert ask(address, headers=[(b"host", b"localhost"), (b"if-none-match", b'"other"')]).status == 200
    for page in (
        "/",
        f"/run/{keys['strange']}",
        f"/run/{keys['strange']}/picture?id=scene-0004&number=0",
        "/style.css",
    ):
        assert ask(page).headers["cache-control"] == "no-store"
    assert "default-src 'none'" in first.headers["content-security-policy"]


def test_what_is_laid_over_the_grid_is_kept_by_every_link(ask, keys):
    page = ask(f"/run/{keys['strange']}?overlay=truth&q=scene&size=4")
    assert all("overlay=truth" in address for address in thumbnails_in(page))
    own = [link for link in page.links(f"/run/{keys['strange']}") if "q=scene" in link and "Over" not in link]
    others = [link for link in own if "overlay=truth" not in link]
    # The links that choose another overlay.
    assert sorted(re.findall("overlay=([a-z]*)", " ".join(others))) == ["off", "prediction"]
    assert len(others) == 3
    assert '<input type="hidden" name="overlay" value="truth"/>' in page.text
    unit = ask(page.links("/unit?")[0])
    assert "Hide masks" in unit.words
    (back,) = [link for link in unit.links(f"/run/{keys['strange']}?")]
    assert "overlay=truth" in back


def test_the_way_back_leads_to_the_page_that_the_unit_is_on(ask, keys):
    page = ask(f"/run/{keys['strange']}?q=scene&size=4&page=2&sort=unit&overlay=off&view=table")
    unit = ask(page.links("/unit?")[-1])
    assert "8 of 14 in the list" in unit.words
    (back,) = [link for link in unit.links(f"/run/{keys['strange']}?")][:1]
    assert units_in(ask(back)) == units_in(page)
    assert ("view=table" in back, "overlay=off" in back) == (True, True)
    following = ask(unit.links("id=scene-0008&")[0])
    (back,) = [link for link in following.links(f"/run/{keys['strange']}?")][:1]
    assert units_in(ask(back)) == [f"scene-{index:04d}" for index in range(8, 12)]


def test_a_comparison_shows_both_models_side_by_side(ask, keys, qualities):
    page = ask(f"/compare?first={keys['strange']}&second={keys['ragged']}&is.better=first")
    own = [(keys["strange"], keys["ragged"])[place % 2] for place in range(len(thumbnails_in(page)))]
    assert [address.split("/")[2] for address in thumbnails_in(page)] == own
    unit = units_in(page)[0]
    tile = page.text.split("<li data-row>")[1]
    assert f"{qualities['strange'][unit]:.3f}" in tile
    assert f"{qualities['ragged'][unit]:.3f}" in tile
    assert f"of {unit} by seg/ragged" in tile
    pictures = [ask(address).content for address in thumbnails_in(page)[:2]]
    assert pictures[0] != pictures[1]


def test_units_of_a_comparison_keep_its_filter_and_its_order(ask, keys):
    page = ask(f"/compare?first={keys['strange']}&second={keys['ragged']}&is.better=first&sort=difference&order=down")
    units = units_in(page)
    assert 2 < len(units) < SCENES
    unit = ask(page.links("/unit?")[1])
    assert unit.text.count("<img ") == 6
    assert f"2 of {len(units)} in the list" in unit.words
    (before,) = re.findall('<link rel="prev" href="([^"]*)"', unit.text)
    (after,) = re.findall('<link rel="next" href="([^"]*)"', unit.text)
    assert f"id={units[0]}&" in before
    assert f"id={units[2]}&" in after
    following = ask(html.unescape(after))
    assert f"3 of {len(units)} in the list" in following.words
    assert following.text.count("<img ") == 6
    back = following.links("/compare?")[0]
    assert units_in(ask(back)) == units
    hidden = ask(following.links("overlay=off")[0])
    assert f"3 of {len(units)} in the list" in hidden.words


def test_a_benchmark_without_pictures_has_its_table_and_the_reason(made, keys, monkeypatch):
    from dataclasses import replace

    from hardlook.harness.benchmark import draw_nothing
    from hardlook.report.explorer.run_data import RunData

    whole = RunData._find_benchmark
    monkeypatch.setattr(
        RunData, "_find_benchmark", lambda self, name: replace(whole(self, name), pictures=draw_nothing)
    )
    ask = Asking(make_app(made))
    for address in (f"/run/{keys['strange']}", f"/compare?first={keys['strange']}&second={keys['ragged']}"):
        page = ask(address)
        assert "No pictures: the benchmark closed-miou draws no pictures of its units. This is the table" in page.words
        assert (thumbnails_in(page), len(units_in(page))) == ([], SCENES)
        assert "No pictures" not in ask(f"{address}{'&' if '?' in address else '?'}view=table").words


def test_a_unit_that_cannot_be_drawn_says_why_in_its_tile(copied, tmp_path):
    (hostile,) = [path for path in copied.iterdir() if path.name != "seg"]
    text = (hostile / "run.json").read_text()
    old = re.search(r'"images": "([^"]*)images"', text)[1]
    data = tmp_path / "data"
    shutil.copytree(old, data)
    (hostile / "run.json").write_text(text.replace(old, f"{data}/"))
    ask = Asking(make_app(hostile))
    (run,) = ask("/").links("/run/")
    (data / "images" / f"{STEMS[0]}.png").write_bytes(b"damaged")
    page = ask(run)
    assert len(thumbnails_in(page)) == len(STEMS)
    (broken,) = [address for address in thumbnails_in(page) if ask(address).status != 200]
    answer = ask(broken)
    assert (answer.status, answer.headers["content-type"]) == (500, "image/svg+xml")
    assert "No picture: " in answer.words
    assert (str(tmp_path) in answer.text, "<img" in answer.text) == (False, False)
    assert answer.headers["cache-control"] == "no-store"
    shutil.rmtree(data / "images")
    gone = Asking(make_app(hostile))(run)
    assert "No pictures: " in gone.words
    assert str(tmp_path) not in gone.words
    assert len(units_in(gone)) == len(STEMS)


def differences(answer):
    """Unit to its difference, as the page shows it."""
    rows = re.findall(r'unit-cell[^>]*><a[^>]*>([^<]*)</a></td>\s*<td class="number">([^<]*)</td>', answer.text)
    return {unit: float(text.replace("\N{MINUS SIGN}", "-")) for unit, text in rows}


def test_swapped_runs_have_swapped_signs(ask, keys):
    there = ask(f"/compare?first={keys['strange']}&second={keys['ragged']}&view=table")
    (link,) = [link for link in there.links("/compare?") if link.startswith(f"/compare?first={keys['ragged']}&")][:1]
    one, other = differences(there), differences(ask(link))
    assert len(one) == SCENES
    assert other == {unit: -gap for unit, gap in one.items()}


@pytest.mark.parametrize(
    ("second", "said"),
    [("SAME", "Choose two different runs"), ("nowhere", "no such run"), ("", "no such run")],
)
def test_comparisons_that_cannot_be_are_refused(ask, keys, second, said):
    second = keys["strange"] if second == "SAME" else second
    answer = ask(f"/compare?first={keys['strange']}&second={second}")
    assert answer.status in (400, 404)
    assert said in answer.words


def test_runs_of_other_units_share_none(ask, keys):
    answer = ask(f"/compare?first={keys['strange']}&second={keys['hostile']}")
    assert answer.status == 200
    assert "14 units are only in seg/strange" in answer.words
    assert "No record matches." in answer.words


def test_data_that_is_gone_is_told_and_the_record_stays(copied, tmp_path):
    data = tmp_path / "data"
    (hostile,) = [path for path in copied.iterdir() if path.name != "seg"]
    shutil.copytree(copied.parent / "runs", tmp_path / "other")
    text = (hostile / "run.json").read_text()
    old = re.search(r'"images": "([^"]*)images"', text)[1]
    shutil.copytree(old, data)
    (hostile / "run.json").write_text(text.replace(old, f"{data}/"))
    ask = Asking(make_app(copied))
    (run,) = [
        link
        for link in ask("/").links("/run/")
        if "strange" not in ask(link).words[:60] and "ragged" not in ask(link).words[:60]
    ]
    first, second = ask(run).links("/unit?")[:2]
    assert ask(first).text.count("<img ") == 3
    shutil.rmtree(data)
    page = ask(second)
    assert page.status == 200
    assert "No picture: " in page.words
    assert str(tmp_path) not in page.words.split("No picture: ")[1].split("The record")[0]
    assert "labelled pixels are right" in page.words
    picture = ask(second.replace("/unit?", "/picture?").split("&")[0] + "&number=0")
    assert picture.status == 500
    assert str(tmp_path) not in picture.words


def test_records_that_are_gone_leave_what_is_in_memory(copied):
    ask = Asking(make_app(copied / "seg" / "strange"))
    (run,) = ask("/").links("/run/")
    unit = ask(run).links("/unit?")[0]
    (copied / "seg" / "strange" / "records" / "part-5.parquet").unlink()
    page = ask(unit)
    assert page.status == 200
    assert "This is not the whole record" in page.words
    assert "No picture: " in page.words


def test_a_folder_without_runs_says_what_to_do(tmp_path):
    page = Asking(make_app(tmp_path))("/")
    assert page.status == 200
    assert "There is no run here that can be opened" in page.words


def test_runs_that_cannot_be_opened_are_listed_with_the_reason(copied):
    (copied / "seg" / "strange" / "run.json").write_text("{")
    page = Asking(make_app(copied))("/")
    assert "seg/strange run.json is not valid JSON" in page.words.replace(" (", " (")


TRAVERSALS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "....//....//etc/passwd",
    "%2e%2e/%2e%2e/run.json",
    "..\\..\\windows\\win.ini",
    "file:///etc/passwd",
    "run.json%00.png",
    "seg/strange",
    "~/.ssh/id_rsa",
)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8000", True),
        ("127.0.0.1", True),
        ("localhost:8000", True),
        ("LOCALHOST", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("evil.example#127.0.0.1", False),
        ("127.0.0.1:8000:9", False),
        ("127.0.0.1:x", False),
        ("10.0.0.7", False),
        ("0.0.0.0:8000", False),
        ("", False),
    ],
)
def test_only_our_own_names_are_answered(ask, host, allowed):
    answer = ask("/", headers=[(b"host", host.encode())])
    assert answer.status == (200 if allowed else 421)
    assert ("strange" in answer.text) == allowed


def test_no_host_and_two_hosts_are_refused(ask):
    assert ask("/", headers=[]).status == 421
    assert ask("/", headers=[(b"host", b"localhost"), (b"host", b"evil.example")]).status == 421


def test_a_host_that_was_given_is_answered_and_wildcards_take_numbers():
    assert is_allowed_host("box.lan:8000", "box.lan")
    assert not is_allowed_host("other.lan", "box.lan")
    assert is_allowed_host("192.168.1.4:8000", "0.0.0.0")
    assert is_allowed_host("[fe80::1]:8000", "::")
    assert not is_allowed_host("evil.example", "0.0.0.0")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
@pytest.mark.parametrize("path", ["/", "/run/x", "/nowhere", "/style.css"])
def test_pages_can_only_be_read(ask, method, path):
    answer = ask(path, method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_has_no_body(ask, keys):
    for path in ("/", f"/run/{keys['strange']}", "/nowhere"):
        answer = ask(path, method="HEAD")
        assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/", "/nowhere", "/style.css", "/explorer.js", "/run/x", "/compare"])
def test_every_answer_carries_the_headers(ask, path):
    headers = ask(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]


def test_long_addresses_are_refused(ask, keys):
    page = f"/run/{keys['strange']}"
    assert ask(f"{page}?q=" + "x" * MAX_QUERY).status == 414
    assert ask("/" + "x" * 600).status == 414
    assert ask(f"{page}?" + "&".join(f"a{n}=1" for n in range(300))).status == 400
    assert ask(f"{page}?" + "&".join("is.context=%3Dsea" for n in range(300))).status == 400
    assert ask(f"{page}?q=" + "x" * 299).status == 200


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_parameter_is_a_path(ask, keys, path, made):
    key = keys["strange"]
    addresses = [
        f"/{path}",
        f"/run/{path}",
        f"/run/{path}/unit?id=scene-0001",
        f"/run/{key}/{path}",
        f"/run/{key}/unit?id={path}",
        f"/run/{key}/unit?id=scene-0001&with={path}",
        f"/run/{key}/unit?id=scene-0001&overlay={path}",
        f"/run/{key}/picture?id={path}&number=0",
        f"/run/{key}/picture?id=scene-0001&number={path}",
        f"/run/{key}/thumbnail?id={path}",
        f"/run/{key}/thumbnail?id=scene-0001&overlay={path}",
        f"/run/{key}/thumbnail?id=scene-0001&{path}=1",
        f"/run/{key}/unit?id=scene-0001&compare={path}",
        f"/run/{key}/unit?id=scene-0001&compare={keys['ragged']}&quality={path}",
        f"/run/{key}?view={path}",
        f"/run/{key}?overlay={path}",
        f"/run/{key}?sort={path}",
        f"/run/{key}?order={path}",
        f"/run/{key}?page={path}",
        f"/run/{key}?{path}=1",
        f"/run/{key}?min.{path}=1",
        f"/compare?first={path}&second={key}",
        f"/compare?first={key}&second={path}",
        f"/compare?first={key}&second={keys['ragged']}&quality={path}",
        f"/style.css/{path}",
    ]
    for address in addresses:
        answer = ask(address)
        assert answer.status in (400, 404), address
        assert "root:" not in answer.text
        assert str(made) not in answer.text
        assert "Traceback" not in answer.text
    for name in ("q", "is.context"):
        answer = ask(f"/run/{key}?{name}={path}")
        assert answer.status in (200, 400)
        assert "root:" not in answer.text


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    where=st.sampled_from(
        ["/{}", "/run/{}", "/run/KEY/unit?id={}", "/run/KEY?q={}", "/run/KEY?{}=1", "/compare?first={}"]
    ),
    text=st.text(max_size=40),
)
def test_no_text_breaks_a_page(ask, keys, where, text):
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
    answer = ask(where.replace("KEY", keys["strange"]).format(encoded))
    assert answer.status in (200, 400, 404)


@pytest.mark.parametrize("query", ["%ff%fe", "%00", "a=%", "&&&=", "=", "%zz=1", "q=\x7f"])
def test_odd_query_strings_are_survived(ask, keys, query):
    assert ask(f"/run/{keys['strange']}?{query}").status in (200, 400)


class Elements(HTMLParser):
    """Every element with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@pytest.fixture(scope="module")
def hostile_pages(ask, keys):
    run = f"/run/{keys['hostile']}"
    pages = ["/", run, f"{run}?q={quote(IMAGE)}", f"{run}?q={quote(SCRIPT)}", f"/{quote(SCRIPT)}"]
    pages += [f"{run}/unit?id={quote(stem)}" for stem in STEMS]
    pages += [f"{run}?sort={quote(IMAGE)}", f"/compare?first={quote(SCRIPT)}"]
    return {page: ask(page) for page in pages}


def test_names_are_text_and_never_markup(hostile_pages):
    for page, answer in hostile_pages.items():
        for tag, attributes in Elements(answer.text).found:
            assert tag != "script" or attributes == {"src": "/explorer.js", "defer": None}, page
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (
                page,
                tag,
                attributes,
            )
            for name in ("href", "src", "action"):
                assert attributes.get(name, "/").startswith(("/", "#", "data:,")), (page, tag, attributes)
            assert tag not in ("iframe", "object", "embed", "base", "style"), page
            assert tag != "img" or attributes["src"].startswith("/run/"), page


def test_hostile_names_are_shown_as_they_are(hostile_pages, keys):
    run = f"/run/{keys['hostile']}"
    assert IMAGE in hostile_pages["/"].words
    assert all(stem in hostile_pages[run].words for stem in STEMS if "<" not in stem)
    unit = hostile_pages[f"{run}/unit?id={quote(STEMS[2])}"]
    assert unit.status == 200
    assert "{{7*7}}" in unit.words
    assert unit.text.count("<img ") == 3


def test_units_with_any_id_have_pictures(ask, keys):
    for stem in STEMS:
        answer = ask(f"/run/{keys['hostile']}/picture?id={quote(stem)}&number=1")
        assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
        assert answer.content.startswith(b"\x89PNG")


def test_the_command_of_a_hostile_unit_is_one_word_a_name(ask, keys):
    import html
    import re
    import shlex

    page = ask(f"/run/{keys['hostile']}/unit?id={quote(STEMS[0])}").text
    words = shlex.split(html.unescape(re.search('id="command">(.*?)</code>', page)[1]))
    assert words[:3] == ["hardlook", "run", "closed-miou"]
    assert words[words.index("--unit") + 1] == STEMS[0]


def test_errors_name_no_path_outside(copied):
    path = copied / "seg" / "strange" / "run.json"
    manifest = parse_checked_json(path.read_text())
    manifest["options"] |= {"data": {"voc": "/nowhere/secret place/VOC2012"}}
    path.write_text(json.dumps(manifest))
    ask = Asking(make_app(copied))
    (page,) = [link for link in ask("/").links("/run/") if "strange" in ask(link).words.split(" Benchmark ")[0]]
    unit = ask(ask(page).links("/unit?")[0])
    assert unit.status == 200
    assert "No picture: " in unit.words
    reason = unit.words.split("No picture: ")[1].split("The record")[0]
    assert "secret" not in reason
    assert "nowhere" not in reason
    assert " /" not in reason
