import json

import hardlook as hl


def test_a_calibration_is_shown_and_written(tmp_path):
    shown = hl.calibrate("closed-miou", scenes=8, resamples=0, settings=3)
    written = hl.calibrate("closed-miou", scenes=8, resamples=0, settings=3, out=tmp_path)
    assert shown.passed and shown.page is None and written.page == tmp_path / "calibration.html"
    assert json.loads((tmp_path / "calibration.json").read_text()) == json.loads(json.dumps(shown.document))
    assert "as meant" in repr(shown) and "<svg" in shown._repr_html_() and "closed-miou" in shown._repr_html_()
