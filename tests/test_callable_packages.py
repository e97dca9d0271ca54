import sys
import types

import pytest

from hardlook.callable_packages import make_callable


def test_a_package_calls_its_function_and_stays_a_module(monkeypatch):
    package = types.ModuleType("called_package")
    package.number = 3
    monkeypatch.setitem(sys.modules, "called_package", package)
    make_callable("called_package", "operator:add")
    assert package(2, 5) == 7 and package.number == 3 and isinstance(package, types.ModuleType)
    with pytest.raises(TypeError):
        package(1)
