"""The planted interactive model, slowed down so that a run can be killed in its middle."""

import time

from hardlook.models.planted.disc import Disc


class Slow(Disc):
    """Takes its time with every picture."""

    def open(self, image):
        time.sleep(0.15)
        return super().open(image)
