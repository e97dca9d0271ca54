"""A preset is data: its options are defaults, and its name says which of its runs is meant."""

import pytest

from hardlook.errors import OptionError
from hardlook.harness.presets import Preset, PresetPart, describe_presets, expand_preset, find_preset

ONE = PresetPart("voc", "PAS-20", {"labels": "voc20", "variant": "published"})
TWO = PresetPart("ade20k", "A-150", {"labels": "ade150", "compare": ["path", "wup"]})
PRESET = Preset("both", "open-miou", "Table 4", "mIoU", (ONE, TWO), ("Table 4",))
ALONE = Preset("alone", "open-pq", "Table 6", "PQ", (ONE,), ("Table 6",))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"preset": "both/voc"}, {"labels": "voc20", "variant": "published", "preset": "both/voc"}),
        ({"preset": "both/voc", "labels": None}, {"labels": "voc20", "variant": "published", "preset": "both/voc"}),
        ({"preset": "both/voc", "labels": "x"}, {"labels": "x", "variant": "published", "preset": "both/voc"}),
        ({"preset": "alone"}, {"labels": "voc20", "variant": "published", "preset": "alone/voc"}),
        ({"labels": "x"}, {"labels": "x"}),
        ({"preset": None, "gt": None}, {"preset": None, "gt": None}),
    ],
)
def test_options_of_a_part_are_defaults(given, expected):
    assert expand_preset([PRESET, ALONE], given) == expected


def test_the_part_is_that_of_the_data():
    found = expand_preset([PRESET], {"preset": "both", "data": {"ade20k": "x"}})
    assert (found["preset"], found["labels"]) == ("both/ade20k", "ade150")


@pytest.mark.parametrize(
    ("given", "message", "remedy"),
    [
        ({"preset": "bouth"}, "no such preset", "one of both"),
        ({"preset": "both"}, "several runs", "both/voc, both/ade20k"),
        ({"preset": "both", "data": {"ade": "x"}}, "no data 'ade'", "voc, ade20k"),
        ({"preset": "both/ade"}, "no data 'ade'", "voc, ade20k"),
    ],
)
def test_what_is_not_a_preset_is_said_with_what_is(given, message, remedy):
    with pytest.raises(OptionError, match=message) as caught:
        expand_preset([PRESET], given)
    assert remedy in caught.value.remedy


def test_a_benchmark_without_presets():
    with pytest.raises(OptionError, match="no such preset") as caught:
        find_preset((), "both")
    assert caught.value.remedy == "leave it out"


def test_a_preset_is_shown_as_the_commands_it_stands_for():
    [text] = describe_presets([PRESET])
    assert text.splitlines() == [
        "Preset both (Table 4, mIoU):",
        "  hardlook run open-miou --data voc=PATH --labels voc20 --variant published",
        "  hardlook run open-miou --data ade20k=PATH --labels ade150 --compare path,wup",
    ]
