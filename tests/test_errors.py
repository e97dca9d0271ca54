import pickle

import pytest

from hardlook.errors import DataError, MissingExtra
from hardlook.extras import is_installed, require


def test_an_error_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(DataError("cut off", file="a.png", unit="u", remedy="copy it again")))
    assert type(error) is DataError
    assert str(error) == "cut off\n  file: a.png\n  unit: u\n  remedy: copy it again"


def test_at_fills_in_what_was_not_known():
    error = DataError("cut off", unit="u", remedy="r").at(file="f", unit="other")
    assert (error.file, error.unit, error.remedy) == ("f", "u", "r")


def test_a_missing_extra_is_named():
    with pytest.raises(MissingExtra, match=r'pip install "hardlook\[torch\]"'):
        require("no_such_package_at_all.inner", extra="torch")


def test_a_package_that_breaks_by_itself_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import another_missing_package")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="another_missing_package"):
        require("broken_package", extra="torch")


def test_installed_looks_without_importing():
    assert is_installed("json")
    assert not is_installed("no_such_package_at_all")
