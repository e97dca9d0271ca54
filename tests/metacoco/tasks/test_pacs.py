import hashlib

import numpy as np
import pytest

from hardlook.data.concept_context import build_image_table
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import draw_tasks
from hardlook.metacoco.tasks.eligibility import find_eligible_classes
from hardlook.metacoco.tasks.images import MODES

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def pacs(shared_data):
    folder = shared_data / "data" / "pacs"
    if not folder.is_dir():
        pytest.skip(f"no PACS at {folder}")
    files = sorted(folder.glob("*/*/*"))
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return build_image_table([path.parts[-3] for path in files], [path.parts[-2] for path in files], hashes)


@pytest.mark.parametrize("shots", [1, 5])
def test_five_way_tasks_of_every_mode(pacs, shots):
    assert len(pacs.concepts) == 7
    assert pacs.contexts == ("art_painting", "cartoon", "photo", "sketch")
    eligibility = find_eligible_classes(pacs, MODES, 5, shots, 15)
    assert len(eligibility.classes) == 7
    assert eligibility.left_out == ()
    tasks = {mode: draw_tasks(eligibility, mode, np.arange(600), seed=0) for mode in MODES}
    for mode, drawn in tasks.items():
        check_tasks(drawn, pacs)
        assert drawn.query.shape == (600, 5, 15)
        assert len(np.unique(drawn.query)) > 0.95 * len(pacs), mode
    for mode in ("iid", "ood", "swapped"):
        assert np.array_equal(tasks[mode].support, tasks["blind"].support)
    seen = pacs.context[tasks["blind"].query]
    # Three of four contexts are others: blind queries are near to that share, for the supports' few images are gone.
    other = (seen != tasks["blind"].support_context[..., None]).mean()
    assert other == pytest.approx(120 / (160 - shots), abs=0.01)
