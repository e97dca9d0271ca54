"""Every command of the page about families of models runs, in the environment that has their libraries."""

import importlib.util

import pytest
from doc_pages import pages_about, run_page

LIBRARIES = ("timm", "torchvision", "segmentation_models_pytorch")


@pytest.mark.families
@pytest.mark.parametrize("page", pages_about("families"), ids=lambda page: page.name)
def test_page_runs(page, tmp_path, request):
    if lacking := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{lacking[0]} is not installed here; `make test` runs this page in .venv-families")
    run_page(page, tmp_path, request)
