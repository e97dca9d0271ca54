"""The numbers on the pages are those of the database, counted row by row; new links are valid until they expire."""

import html
import re
import time
from collections import Counter

import pytest
from research_recount import rows

from hardlook.collect.web.tokens import read_invitation
from hardlook.report.formatting import MISSING

from .conftest import BASE, PEOPLE, crowd, dashboard, tables, words


def test_the_overview_counts_answers_by_mode_and_device(researcher, gathered, recounted):
    study, _, _ = gathered
    _, clicks = recounted
    counted = Counter((click["mode"], click["device"]) for click in clicks if click["counts"])
    table = tables(researcher.page("/research"))["0"]
    wanted = len(study.tasks) * study.settings.target_answers
    expected = [
        [mode, device, str(counted[mode, device]), str(wanted)]
        for mode in ("text", "cut-out")
        for device in ("pc", "mobile")
    ]
    assert [[*row[:2], *row[3:5]] for row in table[1:-1]] == expected
    assert table[-1][2:4] == [str(sum(counted.values())), str(4 * wanted)]
    assert table[1][2] == f"{100 * counted['text', 'pc'] / wanted:.0f} %"


def test_the_overview_counts_people_batches_and_answers(researcher, gathered):
    study, _, _ = gathered
    said = researcher.words("/research")
    people, batches = (rows(study, f"SELECT * FROM {name}") for name in ("participants", "batches"))
    states = Counter(batch["state"] for batch in batches)
    assert states["returned"] == 1
    failed = sum(batch["state"] != "open" and not batch["valid"] for batch in batches)
    assert f"{len(people)} joined 0 finished" in said
    assert f"{states['open']} batches open {states['complete']} complete {states['returned']} returned" in said
    assert f"{failed} not valid" in said
    assert f"{len(rows(study, 'SELECT * FROM answers'))} answers in all" in said


def test_the_chart_counts_the_last_hour(researcher, gathered):
    study, _, _ = gathered
    now = researcher.clock.now
    hour = [answer for answer in rows(study, "SELECT * FROM answers") if answer["received"] > now - 3600]
    assert f"{len(hour)} in the last hour" in researcher.words("/research")
    assert 0 < len(hour) < 81


def test_the_participants_table_is_their_quality(researcher, recounted):
    qualities, _ = recounted
    table = tables(researcher.page("/research/participants"))["Participants"]
    place = {
        name: table[0].index(name) for name in ("participant", "answers", "inside", "reaction", "early", "dropped")
    }
    expected = sorted(qualities.values(), key=lambda one: one["number"])
    people = [row for row in table[1:] if len(row) > 1]
    assert len(expected) == len(PEOPLE)
    for row, one in zip(people, expected, strict=True):
        assert row[place["participant"]] == str(one["number"])
        assert row[place["answers"]] == str(one["answers"])
        assert row[place["inside"]] == (MISSING if one["inside"] is None else f"{100 * one['inside']:.1f} %")
        assert row[place["reaction"]] == (MISSING if one["reaction"] is None else f"{one['reaction']:.0f} ms")
        assert row[place["early"]] == str(one["early"])
        assert row[place["dropped"]] == str(one["dropped"])


def test_participants_sort_both_ways_and_blanks_come_last(researcher, recounted):
    qualities, _ = recounted
    shares = [one["inside"] for one in qualities.values() if one["inside"] is not None]
    for order, descending in (("up", False), ("down", True)):
        table = tables(researcher.page(f"/research/participants?sort=inside&order={order}"))["Participants"]
        said = [row[table[0].index("inside")] for row in table[1:] if len(row) > 1]
        assert said == [f"{100 * share:.1f} %" for share in sorted(shares, reverse=descending)] + [MISSING]


def test_doubtful_participants_are_flagged_and_can_be_shown_alone(researcher, gathered, recounted):
    _, _, ids = gathered
    qualities, _ = recounted
    numbers = {name: str(qualities[who]["number"]) for name, who in ids.items()}
    table = tables(researcher.page("/research/participants?flagged=yes"))["Participants"]
    flags = {row[0]: why[0] for row, why in zip(table[1::2], table[2::2], strict=True)}
    assert set(flags) == {numbers["careless"], numbers["slow"]}
    assert f"Look at participant {numbers['careless']}: share inside 0.25, below 0.7" in flags[numbers["careless"]]
    assert "median lateness in ms 190, above 100" in flags[numbers["slow"]]


def test_a_participant_is_found_by_number_id_and_completion_code(researcher, gathered, recounted):
    from hardlook.collect.web.tokens import derive_completion_code

    study, _, ids = gathered
    qualities, _ = recounted
    number = str(qualities[ids["slow"]]["number"])
    for text in (number, ids["slow"], derive_completion_code(study.secret, ids["slow"]).lower()):
        table = tables(researcher.page(f"/research/participants?q={text}"))["Participants"]
        assert [row[0] for row in table[1:] if len(row) > 1] == [number]
    assert "No matching participant." in researcher.words("/research/participants?q=nobody")


def test_the_gallery_counts_every_task(researcher, gathered, recounted):
    study, _, _ = gathered
    _, clicks = recounted
    shown = {name: table for name, table in tables(researcher.page("/research/images")).items()}
    assert len(shown) == len(study.tasks)
    for task in study.tasks:
        table = shown[f"Valid answers of {task.full_stem}"]
        for mode, *cells in table[1:]:
            for device, cell in zip(("pc", "mobile"), cells, strict=True):
                mine = [c for c in clicks if (c["task"], c["mode"], c["device"]) == (task.id, mode, device)]
                assert cell == f"{sum(c['counts'] for c in mine)} ({len(mine)})"


def test_the_gallery_filters_and_sorts_by_the_fewest(researcher, gathered, recounted):
    study, _, _ = gathered
    _, clicks = recounted
    fewest = {}
    for task in study.tasks:
        mine = [click for click in clicks if click["task"] == task.id and click["counts"]]
        cells = Counter((click["mode"], click["device"]) for click in mine)
        fewest[task.full_stem] = min(cells[m, d] for m in ("text", "cut-out") for d in ("pc", "mobile"))
    everything = named(researcher.page("/research/images"))
    assert [fewest[name] for name in everything] == sorted(fewest.values())
    assert set(named(researcher.page("/research/images?below=2"))) == {name for name in fewest if fewest[name] < 2}
    assert named(researcher.page("/research/images?sort=order")) == [task.full_stem for task in study.tasks]
    assert named(researcher.page("/research/images?q=SCENE-03")) == ["scene-03"]


def named(page):
    return re.findall('<span class="name">([^<]*)</span>', page)


def test_an_image_draws_every_click_where_it_is_and_as_what_it_is(researcher, gathered, recounted):
    study, _, _ = gathered
    _, clicks = recounted
    task = study.tasks[1]
    for device in ("pc", "mobile"):
        for mode in study.settings.modes:
            page = researcher.page(f"/research/images/{task.id}?device={device}&mode={mode}")
            mine = [c for c in clicks if (c["task"], c["mode"], c["device"]) == (task.id, mode, device)]
            panel = re.search('<div class="over">(.*?)</div>', page, re.DOTALL)[1]
            drawn = Counter(re.findall(r'class="mark (\w+) (\w+)"', panel))
            assert drawn == Counter((c["kind"], "full" if c["stands"] else "hollow") for c in mine)
            inside = re.findall(r'mark inside \w+" cx="([\d.]+)" cy="([\d.]+)"', panel)
            expected = [(f"{c['x']:.1f}", f"{c['y']:.1f}") for c in mine if c["kind"] == "inside"]
            assert sorted(inside) == sorted(expected)
            table = tables(page)["Clicks by display mode and device"]
            assert table[1][2:] == [
                str(len(mine)),
                *(str(sum(c["kind"] == kind for c in mine)) for kind in ("inside", "near", "outside")),
                str(sum(c["counts"] for c in mine)),
            ]
    assert {"inside", "near", "outside"} == {click["kind"] for click in clicks}


def test_clicks_of_participants_who_are_left_out_are_hollow(researcher, gathered, recounted):
    _, store, ids = gathered
    _, clicks = recounted
    assert researcher.page("/research/images/t000001").count(" full") > 3
    store.set_rules({"participants": [ids["slow"], ids["pc-1"]]})
    page = researcher.page("/research/images/t000001").split('class="panels"')[1]
    mine = [click for click in clicks if click["task"] == "t000001"]
    kept = [click for click in mine if click["stands"] and click["participant"] not in (ids["slow"], ids["pc-1"])]
    assert len(kept) < sum(click["stands"] for click in mine)
    assert len(re.findall(r'class="mark \w+ full"', page)) == len(kept)


def test_the_outline_can_be_hidden(researcher):
    assert 'class="edge"' in researcher.page("/research/images/t000001")
    assert 'class="edge"' not in researcher.page("/research/images/t000001?outline=no")


def test_pictures_are_those_of_the_study(researcher, gathered):
    study, _, _ = gathered
    whole = researcher.get("/research/pictures/t000002/whole")
    assert whole.content == study.file(study.tasks[1].image).read_bytes()
    assert whole.headers["content-type"] == "image/png"
    small = researcher.get("/research/pictures/t000002/small")
    assert small.content.startswith(b"\xff\xd8\xff")
    assert researcher.get("/research/pictures/t000002/mask").status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "/research?x=1",
        "/research/participants?sort=secret",
        "/research/participants?sort=inside&sort=early",
        "/research/images?page=0",
        "/research/images?below=-1",
        "/research/images/t000001?device=any",
        "/research/images?q=" + "a" * 400,
    ],
)
def test_invalid_parameters_are_refused_with_a_message(researcher, address):
    answer = researcher.get(address)
    assert answer.status_code == 400
    assert re.search("parameter|whole number", words(answer.text))


@pytest.mark.parametrize("address", ["/research/images?page=99", "/research/images/t999999", "/research/images/..%2F"])
def test_pages_that_do_not_exist_are_404(researcher, address):
    assert researcher.get(address).status_code == 404


def test_a_missing_mask_or_picture_is_reported(tmp_path):
    from tests.collect.research.conftest import crowd, dashboard

    study, store, _ = crowd(tmp_path / "study", {})
    study.file(study.tasks[0].mask).unlink()
    study.file(study.tasks[0].image).unlink()
    with store:
        someone = dashboard(study, store).log_in()
        assert "The mask of this task cannot be read" in someone.words("/research/images/t000001")
        gone = someone.get("/research/pictures/t000001/small")
    assert gone.status_code == 404
    assert "gone" in gone.text


def test_a_study_without_answers(tmp_path):
    from tests.collect.research.conftest import crowd, dashboard

    study, store, _ = crowd(tmp_path / "study", {})
    with store:
        someone = dashboard(study, store).log_in()
        assert "No answer in the last 48 hours." in someone.words("/research")
        assert "No participant has joined yet." in someone.words("/research/participants")
        assert "0 participants left out" in someone.words("/research/rules?least_inside=0.9")


def links_in(page):
    return html.unescape(re.search("<textarea readonly[^>]*>([^<]*)<", page)[1]).split()


def test_links_are_ours_different_and_end(researcher, gathered):
    study, _, _ = gathered
    answer = researcher.post("/research/links", count="7", days="2")
    links = links_in(answer.text)
    assert len(set(links)) == 7
    assert all(link.startswith(f"{BASE}/join/") for link in links)
    now, token = researcher.clock(), links[0].rpartition("/")[2]
    assert read_invitation(study.secret, token, now + 2 * 86_400 - 1)
    assert read_invitation(study.secret, token, now + 2 * 86_400) is None


def test_a_link_opens_the_page_of_consent(researcher):
    link = links_in(researcher.post("/research/links", count="1").text)[0]
    assert researcher.get(link.removeprefix(BASE)).status_code == 200


def test_the_address_can_be_another(researcher):
    answer = researcher.post("/research/links", count="1", base_url="https://study.example/")
    assert links_in(answer.text)[0].startswith("https://study.example/join/")


def test_the_public_address_is_proposed(gathered):
    from tests.collect.research.conftest import KEY, Clock, Researcher

    from hardlook.collect.web.app import make_app
    from hardlook.collect.web.guard import PublicAddress

    study, store, _ = gathered
    clock = Clock()
    app = make_app(study, store, PublicAddress(url="http://study.example"), research_key=KEY, clock=clock)
    someone = Researcher(app, clock).log_in()
    assert 'value="http://study.example"' in someone.page("/research/links")


CROSS = {"sec-fetch-site": "cross-site"}


def test_a_link_of_another_site_is_loaded_again_from_here(gathered, researcher):
    """A stranger sees nothing by it, and no page is loaded for ever."""
    stranger = dashboard(*gathered[:2])
    address = "/research/participants?q=%22%3E%3Cscript%3E"
    page = stranger.client.get(address, headers=CROSS)
    assert page.status_code == 200 and f'content="0; url={address}"' in page.text
    assert "Participants" not in page.text
    assert stranger.client.get(address, headers={"sec-fetch-site": "same-origin"}).status_code == 403
    assert stranger.client.get(address, headers={"sec-fetch-site": "none"}).status_code == 403
    assert stranger.client.post("/research/rules", data={}, headers=CROSS).status_code == 403
    # With a cookie, which a browser may send, there is no need for it.
    assert "Participants" in researcher.client.get(address, headers=CROSS).text


@pytest.fixture
def leaving(tmp_path):
    study, store, ids = crowd(tmp_path / "study", {name: PEOPLE[name] for name in ("pc-0", "left", "absent", "pc-1")})
    yield study, store, ids
    store.close()


def test_a_participant_is_deleted_on_request(leaving):
    study, store, ids = leaving
    someone = dashboard(study, store).log_in()
    store.set_rules({"participants": ["3"]})
    export_and_wait(someone)
    assert someone.get("/research/export/files.zip").status_code == 200
    # One who never completed a batch, and so has no code.
    table = tables(someone.page("/research/participants"))["Participants"]
    assert [row[0] for row in table[1:] if len(row) > 1] == ["1", "2", "3", "4"]
    page = someone.page("/research/participants/3/delete")
    assert "0 answers in 0 batches" in words(page) and "cannot be brought back" in words(page)
    assert store.participants().height == 4
    done = someone.post("/research/participants/3/delete", token=someone.token("/research/participants/3/delete"))
    assert (done.status_code, done.headers["location"]) == (303, "/research/participants?deleted=3")
    assert "Participant 3 is deleted." in someone.words("/research/participants?deleted=3")
    assert store.participant(ids["absent"]) is None and store.rules() == {"participants": []}
    # Those with answers too; what was made of them is gone, and the numbers of others stay.
    assert someone.post("/research/participants/1/delete").status_code == 303
    table = tables(someone.page("/research/participants"))["Participants"]
    assert [row[0] for row in table[1:] if len(row) > 1] == ["2", "4"]
    assert someone.get("/research/export/files.zip").status_code == 404
    assert someone.get("/research/participants/1/delete").status_code == 404
    assert someone.post("/research/participants/1/delete").status_code == 404
    assert ids["pc-0"] not in set(store.answers()["participant"])


def test_only_a_researchers_own_form_deletes(leaving):
    study, store, _ = leaving
    someone = dashboard(study, store)
    assert someone.client.post("/research/participants/1/delete", data={"token": "x"}).status_code == 403
    someone.log_in()
    assert someone.post("/research/participants/1/delete", token="x").status_code == 403
    assert someone.post("/research/participants/1/delete", other="x").status_code == 400
    for number in ("0", "5", "x", "-1", "1%20", "'%20OR%201=1"):
        assert someone.get(f"/research/participants/{number}/delete").status_code in (200, 404)
        assert someone.post(f"/research/participants/{number}/delete", token="x").status_code == 403
    assert store.participants().height == 4


def export_and_wait(someone):
    someone.post("/research/export")
    deadline = time.monotonic() + 60
    while "files.zip" not in someone.page("/research/export") and time.monotonic() < deadline:
        time.sleep(0.02)
