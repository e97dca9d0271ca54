"""The Pareto front against its definition."""

import math

from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.stats.pareto import find_front

numbers = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([math.nan, math.inf, -math.inf]))


@given(st.lists(st.tuples(numbers, numbers), max_size=12))
def test_the_front_is_what_no_other_point_beats(points):
    known = [place for place, point in enumerate(points) if all(map(math.isfinite, point))]

    def beats(one, other):
        return points[one] != points[other] and all(a <= b for a, b in zip(points[one], points[other], strict=True))

    expected = {one for one in known if not any(beats(other, one) for other in known)}
    front = find_front([x for x, _ in points], [y for _, y in points])
    assert set(front) == expected and len(front) == len(expected)
    along = [points[place] for place in front]
    assert [x for x, _ in along] == sorted(x for x, _ in along), "from left to right"
    assert [y for _, y in along] == sorted((y for _, y in along), reverse=True), "and ever lower"
