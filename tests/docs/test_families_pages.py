"""Every command of the page about families of models runs, in the environment that has their libraries."""

import os
from importlib.util import find_spec

import pytest
from doc_pages import ROOT, pages_about, run_page

LIBRARIES = ("timm", "torchvision", "segmentation_models_pytorch")


@pytest.mark.families
@pytest.mark.parametrize("page", pages_about("families"), ids=lambda page: page.name)
def test_page_runs(page, tmp_path, request):
    if lacking := [name for name in LIBRARIES if find_spec(name) is None]:
        pytest.skip(f"{lacking[0]} is not installed here; `make test` runs this page in .venv-families")
    run_page(page, tmp_path, request)


@pytest.mark.families
def test_the_notebook_of_library_models_runs(monkeypatch):
    """A network of torchvision and an encoder of timm, own images, a comparison and an open score, all inline."""
    if lacking := [name for name in ("timm", "torchvision", "nbclient", "ipykernel") if find_spec(name) is None]:
        pytest.skip(f"{lacking[0]} is not installed here; `make test` and `make docs` install it in .venv-families")
    import torchvision_operators

    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    torchvision_operators.install_in_children()
    from notebook_pages import execute_notebook

    cells = execute_notebook(ROOT / "docs" / "tutorials" / "library-models.ipynb").cells
    shown = [output["data"]["text/html"] for cell in cells for output in cell.get("outputs", []) if "data" in output]
    network, unit, compared, opened, words, encoder = shown
    assert all("<table>" in one for one in shown) and network.count("<svg") == 1
    assert unit.count("data:image/") == 3 and "70 steps" in compared
    assert "open mIoU" in opened and "zero-shot:hf:small-clip" in words and "OOD accuracy" in encoder
