import pickle
import subprocess
import sys

import pytest

from hardlook.errors import ModelError
from hardlook.harness.by_value import ByValue

PROGRAM = """
import pickle, sys
value = pickle.loads(bytes.fromhex(sys.stdin.read())).value
print(value(3))
"""


def test_a_function_of_this_test_arrives_in_another_process():
    factor = 7

    def scale(number):
        return number * factor

    data = pickle.dumps(ByValue(scale)).hex()
    answer = subprocess.run([sys.executable, "-c", PROGRAM], input=data, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "21"


def test_what_cannot_be_pickled_names_its_class_and_the_remedy():
    with pytest.raises(ModelError, match="this generator cannot be sent") as caught:
        pickle.dumps(ByValue(number for number in range(3)))
    assert "engine='inline'" in str(caught.value)


def test_the_value_comes_back_in_the_same_process_too():
    assert pickle.loads(pickle.dumps(ByValue([1, {"two": 3}]))) == ByValue([1, {"two": 3}])
