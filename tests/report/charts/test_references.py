from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.charts.references import place_references
from hardlook.report.charts.scales import LinearScale


@given(st.lists(st.floats(0, 1), max_size=6), st.sampled_from([360.0, 840.0]))
def test_names_in_one_lane_never_meet_and_stay_on_the_page(values, width):
    scale = LinearScale(0, 1, width * 0.2, width * 0.9)
    placed = place_references([(f"reference {i}", value) for i, value in enumerate(values)], scale, 2, width)
    assert len(placed) == len(values)
    for index, one in enumerate(placed):
        assert 0 <= one.start and one.stop <= width
        for other in placed[index + 1 :]:
            assert one.lane != other.lane or one.stop <= other.start or other.stop <= one.start
