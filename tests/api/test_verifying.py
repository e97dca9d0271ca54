"""`hl.verify` finds and repairs what `hardlook verify` does."""

import json

import pytest
from small_runs import small_run

import hardlook as hl
from hardlook.errors import RunError


@pytest.fixture
def run(tmp_path):
    small_run(tmp_path / "run", scenes=4)
    return tmp_path / "run"


def damage(run):
    part = next((run / "records").iterdir())
    part.write_bytes(part.read_bytes()[:-20])
    return part


def test_a_sound_run_passes_and_equals_the_command(hardlook, run):
    found = hl.verify(run, hl.load(run), progress=False)
    assert found.passed and len(found) == 1 and "no damage" in repr(found) and "<td" in found._repr_html_()
    assert [one.document for one in found] == [
        {**row, "notes": tuple(row["notes"])} for row in json.loads(hardlook("verify", run, "--json").out)
    ]


def test_damage_is_found_as_by_the_command_and_repaired(hardlook, run):
    before, part = hl.load(run).records, damage(run)
    found = hl.verify(run)
    assert not found.passed and found[0].state.problems[0].file == part and part.name[:4]
    assert json.loads(json.dumps(found[0].document)) == json.loads(hardlook("verify", run, "--json").out)[0]
    repaired = hl.verify(run, repair=True, progress=False)
    assert repaired.passed and [one.file for one in repaired[0].repaired] == [part]
    assert hl.load(run).records.equals(before)


def test_a_folder_without_a_run_is_an_error(tmp_path):
    with pytest.raises(RunError, match="there is no run here"):
        hl.verify(tmp_path)
