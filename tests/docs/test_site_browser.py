"""Pages of the site fit a phone: the widest ones, built with the site's theme and opened in a browser.

`make docs` builds the whole site, which takes minutes, and checks its links.
"""

import importlib.util
import shutil

import pytest
from browsers import NEEDS_SELENIUM, start_selenium
from doc_pages import ROOT
from report_browser import show

WIDEST = ("other-tools", "clusters", "label-tables", "timm")

pytestmark = [
    *NEEDS_SELENIUM,
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed (extra docs)"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    started = start_selenium(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The widest pages, and one with a wide table as a notebook shows it."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    spec = importlib.util.spec_from_file_location("notebook_pages", ROOT / "docs" / "site" / "notebook_pages.py")
    notebook_pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebook_pages)
    docs, built = (tmp_path_factory.mktemp(name) for name in ("docs", "site"))
    for name in WIDEST:
        shutil.copy(ROOT / "docs" / f"{name}.md", docs)
    import nbformat

    table = f'<table class="dataframe"><tr>{"<td>a_long_name_of_a_column</td>" * 9}</tr></table>'
    output = nbformat.v4.new_output("display_data", {"text/html": table})
    (docs / "notebook.md").write_text(f"# Notebook\n\n{notebook_pages._show(output)}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        given = {"docs_dir": str(docs), "site_dir": str(built), "nav": None, "plugins": [], "hooks": []}
        build(load_config(str(ROOT / "mkdocs.yml"), **given))
    return built


@pytest.mark.parametrize("name", [*WIDEST, "notebook"])
def test_a_page_is_no_wider_than_a_phone(driver, site, name):
    show(driver, site / name / "index.html", 390, "light")
    assert driver.execute_script("return document.documentElement.scrollWidth") == 390
    assert driver.execute_script("return document.querySelectorAll('h1').length") == 1
