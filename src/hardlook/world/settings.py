"""The colours and light of each context.

>>> SETTINGS["night"].light[0] < SETTINGS["meadow"].light[0]
True
"""

from __future__ import annotations

from dataclasses import dataclass

from hardlook.world.pen import Colour


@dataclass(frozen=True)
class Setting:
    """Sky from top to horizon, ground from far to near (0-255), and the factor of light on the three channels."""

    sky: tuple[Colour, Colour]
    ground: tuple[Colour, Colour]
    light: Colour = (1.0, 1.0, 1.0)

    def ground_at(self, depth: float) -> Colour:
        """The ground's colour at `depth` in [0, 1]: 0 at the horizon, 1 at the picture's lower edge."""
        (far, near) = self.ground
        red, green, blue = (f + (n - f) * depth for f, n in zip(far, near, strict=True))
        return red, green, blue


SETTINGS: dict[str, Setting] = {
    "meadow": Setting(((96, 176, 236), (206, 234, 250)), ((152, 200, 96), (84, 158, 66))),
    "beach": Setting(((64, 160, 232), (196, 232, 248)), ((246, 226, 176), (228, 194, 132)), (1.0, 0.99, 0.95)),
    "winter": Setting(((166, 192, 220), (226, 236, 246)), ((236, 242, 250), (212, 224, 240)), (0.95, 0.98, 1.0)),
    "street": Setting(((150, 186, 214), (222, 232, 238)), ((118, 120, 128), (88, 90, 100))),
    "dusk": Setting(((84, 58, 128), (252, 156, 88)), ((142, 94, 68), (92, 58, 46)), (0.98, 0.78, 0.74)),
    "night": Setting(((12, 16, 46), (48, 58, 112)), ((136, 136, 150), (104, 104, 122)), (0.44, 0.48, 0.7)),
    "fog": Setting(((190, 202, 210), (222, 228, 230)), ((156, 180, 190), (104, 142, 160)), (0.96, 0.98, 0.99)),
    "autumn": Setting(((128, 182, 216), (244, 230, 202)), ((214, 142, 62), (172, 92, 40)), (1.0, 0.96, 0.88)),
}
