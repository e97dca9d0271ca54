"""Every command and every snippet of the pages about collecting from people runs, in order, in an empty folder."""

import pytest
from doc_pages import pages_about, run_page


@pytest.mark.parametrize("page", pages_about("collecting"), ids=lambda page: page.name)
def test_page_runs(page, tmp_path, request):
    run_page(page, tmp_path, request)
