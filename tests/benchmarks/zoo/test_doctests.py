import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["study", "answering", "report", "packing"])
def test_examples_in_docstrings(name):
    done = doctest.testmod(importlib.import_module(f"zoo.{name}"))
    assert done.attempted and not done.failed
