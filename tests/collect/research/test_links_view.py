"""Links of the dashboard let people in, each once, until they end."""

import html
import re

from hardlook.collect.web.invitations import invitation_in

from .conftest import BASE


def links_in(page):
    return html.unescape(re.search("<textarea readonly[^>]*>([^<]*)<", page)[1]).split()


def test_links_are_ours_different_and_end(researcher, gathered):
    study, _, _ = gathered
    answer = researcher.post("/research/links", count="7", days="2")
    links = links_in(answer.text)
    assert len(set(links)) == 7
    assert all(link.startswith(f"{BASE}/join/") for link in links)
    now, token = researcher.clock(), links[0].rpartition("/")[2]
    assert invitation_in(study.secret, token, now + 2 * 86_400 - 1)
    assert invitation_in(study.secret, token, now + 2 * 86_400) is None


def test_a_link_opens_the_page_of_consent(researcher):
    link = links_in(researcher.post("/research/links", count="1").text)[0]
    assert researcher.get(link.removeprefix(BASE)).status_code == 200


def test_the_address_can_be_another(researcher):
    answer = researcher.post("/research/links", count="1", base_url="https://study.example/")
    assert links_in(answer.text)[0].startswith("https://study.example/join/")


def test_the_public_address_is_proposed(gathered):
    from hardlook.collect.web.app import make_app

    from .conftest import KEY, Clock, Researcher

    study, store, _ = gathered
    clock = Clock()
    app = make_app(study, store, research_key=KEY, clock=clock, public_url="http://study.example")
    someone = Researcher(app, clock).log_in()
    assert 'value="http://study.example"' in someone.page("/research/links")
