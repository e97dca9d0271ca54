"""Who clicks: the centre rule, or a clicking group that draws from one share of the click model's mass.

>>> [course.name for course in (BASE, *clicking_groups(3))]
['base', 'G1', 'G2', 'G3']
>>> clicking_groups(10)[9]
Course(name='G10', low=0.9, high=1.0)
"""

from __future__ import annotations

from dataclasses import dataclass

from hardlook.errors import OptionError


@dataclass(frozen=True)
class Course:
    """One who clicks: by the centre rule without bounds, else drawing from the mass between `low` and `high`.

    The bounds are shares of the probability, in [0, 1], counted from the least probable pixel. The name keys the
    random numbers.
    """

    name: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            return
        if self.low is None or self.high is None or not 0 <= self.low < self.high <= 1:
            raise OptionError(
                f"the course {self.name!r} cannot draw between {self.low} and {self.high}",
                remedy="0 <= low < high <= 1, or neither for the centre rule",
            )

    @property
    def draws(self) -> bool:
        """Whether it draws its clicks from the click model."""
        return self.low is not None


BASE = Course("base")
HALVES = (Course("lower", 0.0, 0.5), Course("upper", 0.5, 1.0))


def clicking_groups(count: int = 10) -> tuple[Course, ...]:
    """G1 to G`count`, each an equal share of the mass; G1 is the least probable."""
    if count < 1:
        raise OptionError(f"{count} clicking groups", remedy="at least 1")
    return tuple(Course(f"G{one + 1}", one / count, (one + 1) / count) for one in range(count))
