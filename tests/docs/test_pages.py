"""Pages keep their promises: links lead somewhere, blocks that do not run say why, every benchmark has its page."""

import re

import pytest
from doc_pages import HARNESS, PAGES, ROOT, TOPICS, blocks_of


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_are_there(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_that_does_not_run_says_why(page):
    for block in blocks_of(page):
        assert all(reason for reason in block.note("skip")), f"{page.name}:{block.line}"
        assert {key for key, _ in block.notes} <= {"skip", "needs", "file", "continues"}, f"{page.name}:{block.line}"


def test_every_benchmark_has_a_page_and_every_reading_a_row():
    from hardlook.harness.registry import BUILT_IN, find_benchmark

    readings = (ROOT / "docs" / "readings.md").read_text()
    for name in BUILT_IN:
        benchmark = find_benchmark(name)
        assert (ROOT / "docs" / f"{name}.md").is_file()
        for reading in benchmark.readings(benchmark.options()):
            assert f"| `{name}` | `{reading.name}` |" in readings


def test_every_topic_of_pages_is_run_by_a_test_file():
    texts = [path.read_text() for path in (ROOT / "tests" / "docs").glob("test_*_pages.py")]
    for topic in {*TOPICS.values(), HARNESS}:
        constant = "HARNESS" if topic == HARNESS else f'"{topic}"'
        assert sum(f"pages_about({constant})" in text for text in texts) == 1, topic
    assert set(TOPICS) <= {page.stem for page in PAGES}
