"""Predictors with RITM's interface, small enough to follow: what they remember changes what they answer."""

import numpy as np


class Remembering:
    """The last map feeds into the next, as RITM's fourth channel does; clicks raise or lower it around them."""

    def __init__(self, width: float = 4.0, device: str = "cpu"):
        self.width, self.device, self.calls, self.images = width, device, 0, 0
        self.image = self.prev_prediction = None

    def set_input_image(self, image):
        self.images += 1
        self.image = image.mean(axis=2) / 255
        self.prev_prediction = np.zeros(self.image.shape)

    def get_prediction(self, clicker, prev_mask=None):
        self.calls += 1
        previous = self.prev_prediction if prev_mask is None else prev_mask
        self.prev_prediction = 0.3 * previous + 0.7 * self._near(clicker.get_clicks(), self.image)
        return self.prev_prediction

    def _near(self, clicks, image):
        rows, columns = np.indices(image.shape)
        chance = 0.2 * image
        for click in clicks:
            row, column, number = click.coords_and_indx
            bump = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * self.width**2)) / (1 + 0.1 * number)
            chance = chance + bump if click.is_positive else chance - bump
        return np.clip(chance, 0, 1)


class Zooming(Remembering):
    """From the second click on only a crop around the last mask is predicted; the crop stays while it fits."""

    def __init__(self, width: float = 4.0, skip_clicks: int = 1):
        super().__init__(width)
        self.skip_clicks, self.crop, self.last = skip_clicks, None, None

    def set_input_image(self, image):
        super().set_input_image(image)
        self.crop, self.last = None, None

    def get_prediction(self, clicker, prev_mask=None):
        self.calls += 1
        clicks = clicker.get_clicks()
        if len(clicks) > self.skip_clicks and self.last is not None and (self.last > 0.3).any():
            rows, columns = np.nonzero(self.last > 0.3)
            wanted = (rows.min(), rows.max() + 1, columns.min(), columns.max() + 1)
            inside = self.crop is not None and all(
                self.crop[0] <= click.coords[0] < self.crop[1] and self.crop[2] <= click.coords[1] < self.crop[3]
                for click in clicks
            )
            self.crop = self.crop if inside else wanted
        top, bottom, left, right = self.crop or (0, self.image.shape[0], 0, self.image.shape[1])
        moved = [click.copy(coords=(click.coords[0] - top, click.coords[1] - left)) for click in clicks]
        part = self._near(moved, self.image[top:bottom, left:right])
        whole = np.zeros(self.image.shape)
        whole[top:bottom, left:right] = 0.7 * part + 0.3 * self.prev_prediction[top:bottom, left:right]
        self.last = self.prev_prediction = whole
        return whole

    def get_states(self):
        return {"transform_states": [(self.crop, self.last)], "prev_prediction": self.prev_prediction.copy()}

    def set_states(self, states):
        [(self.crop, self.last)] = states["transform_states"]
        self.prev_prediction = states["prev_prediction"]


class Forgetful(Zooming):
    """Its states leave the last map out, as those of the refining predictors do."""

    def get_states(self):
        return {"transform_states": [(self.crop, self.last)]}

    def set_states(self, states):
        [(self.crop, self.last)] = states["transform_states"]


class Scribbling(Zooming):
    """Writes into its image, and into the map that it handed out as its state."""

    def set_input_image(self, image):
        super().set_input_image(image)
        image[:] = 0

    def get_prediction(self, clicker, prev_mask=None):
        if self.last is not None:
            self.last[:] = self.last.round(1)
        return super().get_prediction(clicker, prev_mask)


class Fading(Zooming):
    """Halves the map that it was given back before it looks at it, in place."""

    def get_prediction(self, clicker, prev_mask=None):
        self.prev_prediction *= 0.5
        return super().get_prediction(clicker, prev_mask)


def zooming(checkpoint: str = "", width: float = 4.0) -> Zooming:
    """A factory as a user writes one."""
    return Zooming(width)


def broken(width: float = 4.0):
    raise RuntimeError("no such checkpoint")


def nothing():
    return object()


class Flat(Remembering):
    """Answers with a map of the wrong shape."""

    def get_prediction(self, clicker, prev_mask=None):
        return super().get_prediction(clicker)[None]


class Channels(Remembering):
    """Salience is the first channel."""

    def set_input_image(self, image):
        self.first = image[..., 0] / 255

    def get_prediction(self, clicker, prev_mask=None):
        return self.first


class Torches(Remembering):
    """Says whether gradients are recorded."""

    def get_prediction(self, clicker, prev_mask=None):
        import torch

        return np.full(self.image.shape, float(torch.is_grad_enabled()))
