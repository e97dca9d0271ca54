"""How RClicks drove each family of predictors with RITM's interface: what a factory must set to compare with it.

>>> settings_of("cfr-icl").words()
'448 px square (DAVIS 672), first click predicted twice, threshold .49'
>>> settings_of("ritm").words()
'longest side 400 (DAVIS 600), zoom-in from click 2 (TETRIS: 1), box x 1.4, at least 200 px, new below IoU .5,
averaged with the mirror image, threshold .49'
"""

from __future__ import annotations

from dataclasses import dataclass

from hardlook.errors import OptionError


@dataclass(frozen=True)
class FamilySettings:
    """One row of RClicks' table.

    `size` in pixels of what the network is shown, `davis_size` on DAVIS: the longest side, or a `square`'s side;
    `zoom` in words; `threshold` on the probability; `first_click_twice`: whether the first click is predicted twice,
    the second time with the first answer given back.
    """

    family: str
    size: int
    davis_size: int
    square: bool = False
    zoom: str = ""
    first_click_twice: bool = False
    threshold: float = 0.49

    def words(self) -> str:
        """The settings in one sentence, without a full stop."""
        size = f"{self.size} px square" if self.square else f"longest side {self.size}"
        twice = "first click predicted twice" if self.first_click_twice else ""
        threshold = f"threshold {self.threshold:g}".replace(" 0.", " .")
        return ", ".join(part for part in (f"{size} (DAVIS {self.davis_size})", self.zoom, twice, threshold) if part)


_RITM_ZOOM = (
    "zoom-in from click 2 (TETRIS: 1), box x 1.4, at least 200 px, new below IoU .5, averaged with the mirror image"
)
_CROP_ZOOM = "box x 1.4, network at 384 px"
FAMILIES = {
    settings.family: settings
    for settings in (
        FamilySettings("ritm", 400, 600, zoom=_RITM_ZOOM),
        FamilySettings("simpleclick", 448, 672, square=True),
        FamilySettings("adaptiveclick", 448, 672, square=True),
        FamilySettings("cfr-icl", 448, 672, square=True, first_click_twice=True),
        FamilySettings("cdnet", 400, 600, zoom=_CROP_ZOOM),
        FamilySettings("gpcis", 400, 600, zoom=_CROP_ZOOM),
    )
}


def settings_of(family: str) -> FamilySettings:
    """The settings of a family by its name in lower case; an `OptionError` that lists them when there is none."""
    if family not in FAMILIES:
        raise OptionError(f"there is no family {family!r}", remedy=f"the families are {', '.join(FAMILIES)}")
    return FAMILIES[family]
