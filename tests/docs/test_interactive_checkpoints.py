"""The page on checkpoints lists the 33 of the paper, in its order, with commands that name models of ours."""

from doc_pages import ROOT

from hardlook.models.registry import resolve
from hardlook.rclicks.published import list_checkpoints


def test_the_table_has_every_published_checkpoint_and_a_command_that_can_run_it():
    text = (ROOT / "docs" / "interactive-checkpoints.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "`--model " in line and line.startswith("|")]
    expected = [(one.method, one.backbone, one.trained_on) for one in list_checkpoints()]
    assert [tuple(row[:3]) for row in rows] == expected
    for row, one in zip(rows, list_checkpoints(), strict=True):
        assert len(row) == 8 and one.name in row[3]
        _, model, _, given = row[7].strip("`").split()
        resolve(model, "promptable-segmenter", dict([given.split("=")]))
