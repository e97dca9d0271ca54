"""A real network keeps its contract where its weights are installed."""

import pytest

from hardlook.errors import HardlookError
from hardlook.models.conformance import check_named
from hardlook.models.registry import build


@pytest.mark.real
def test_deeplab_keeps_its_contract():
    try:
        build("deeplabv3-voc", "semantic-segmenter")
    except HardlookError as error:
        pytest.skip(str(error))
    findings = check_named("deeplabv3-voc", "semantic-segmenter")
    assert [finding.line() for finding in findings if not finding.passed] == []
