import pytest

from hardlook.errors import OptionError
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.scoring import check_readings


def test_a_reading_with_an_option_of_its_own_is_refused_with_that_option():
    benchmark = find_benchmark("open-ap")
    for given in ({"measure": "path"}, {"measure": "path", "nosuch": "1"}):
        with pytest.raises(OptionError, match="--reading measure: it changes more than the scores") as caught:
            check_readings(benchmark, benchmark.options(reading=given))
        assert caught.value.remedy == "`hardlook run open-ap` sets it by --measure"


def test_of_several_unknown_readings_the_first_by_name_is_refused_with_those_there_are():
    benchmark = find_benchmark("open-ap")
    check_readings(benchmark, benchmark.options(reading={"unmatched": "released"}))
    with pytest.raises(OptionError, match="--reading fast: open-ap has no such reading") as caught:
        check_readings(benchmark, benchmark.options(reading={"slow": "1", "fast": "1", "unmatched": "released"}))
    assert caught.value.remedy == "it has: protocol, unmatched"
