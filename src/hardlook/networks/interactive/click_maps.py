"""Clicks as tensors, and the two maps (positive, negative) that a network gets of them.

A click is (row, column, positive) in pixels of the network's input, (0, 0) the centre of the first pixel, fractions
allowed. A batch of click lists is one tensor of points (B, 2n, 3): rows 0..n-1 positive, n..2n-1 negative, each row
(row, column, place in the order of clicks); unused rows are (-1, -1, -1).

>>> points = pack_clicks([[(4, 2, True), (0, 5, False), (1, 1, True)], [(3, 3, False)]])
>>> points.shape
torch.Size([2, 4, 3])
>>> points[0].tolist()
[[4.0, 2.0, 0.0], [1.0, 1.0, 2.0], [0.0, 5.0, 1.0], [-1.0, -1.0, -1.0]]
>>> disk_maps(points, (6, 7), radius=1)[0, 0].int().tolist()[:3]
[[0, 1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

Click = tuple[float, float, bool]
"""Row, column and whether the click is positive."""

ABSENT = 1e6
"""Squared distance to a click that is not there."""


def pack_clicks(
    courses: Sequence[Sequence[Click]],
    *,
    limit: int | None = None,
    places: int | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Points (B, 2n, 3) float32 of B click lists, n the most clicks of one sign in a list, at least 1.

    With `limit` only the first `limit` clicks of each list are given, and n is that of all clicks, at most `limit`.
    `places` sets n, at least what the lists need.
    """
    signs = (True, False)
    most = max((sum(bool(click[2]) is sign for click in clicks) for clicks in courses for sign in signs), default=0)
    most = most if limit is None else min(most, limit)
    rows = max(1, most) if places is None else places
    if rows < most:
        raise ValueError(f"{most} clicks of one sign do not fit into {rows} places")
    packed = [
        row for clicks in courses for sign in signs for row in _fill_rows(clicks[:limit], positive=sign, rows=rows)
    ]
    return torch.tensor(packed, dtype=torch.float32, device=device).reshape(len(courses), 2 * rows, 3)


def _fill_rows(clicks: Sequence[Click], *, positive: bool, rows: int) -> list[tuple[float, float, float]]:
    found = [
        (float(row), float(column), float(place))
        for place, (row, column, sign) in enumerate(clicks)
        if bool(sign) is positive
    ]
    return found + [(-1.0, -1.0, -1.0)] * (rows - len(found))


def flip_clicks(clicks: Sequence[Click], width: int) -> list[Click]:
    """The clicks on the mirrored picture: column c becomes width - c - 1."""
    return [(row, width - column - 1, positive) for row, column, positive in clicks]


def disk_maps(points: Tensor, size: tuple[int, int], *, radius: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """(B, 2, H, W): 1 where a click of that sign is at most `radius` pixels away, else 0."""
    return (_squared_distances(points, size) <= radius**2).to(dtype)


def distance_maps(
    points: Tensor, size: tuple[int, int], *, norm_radius: float, dtype: torch.dtype = torch.float32
) -> Tensor:
    """(B, 2, H, W) in [0, 1]: tanh of twice the distance to the nearest click of that sign over `norm_radius`."""
    return _squared_distances(points, size, norm_radius).sqrt_().mul_(2).tanh_().to(dtype)


class ClickMaps(nn.Module):
    """Disk maps of a radius, or the distance maps of that norm radius; no parameters."""

    def __init__(self, norm_radius: float = 5, *, use_disks: bool = True) -> None:
        super().__init__()
        if type(norm_radius) not in (int, float) or not norm_radius > 0:  # a checkpoint may tell anything
            raise ValueError(f"the radius of clicks is {norm_radius!r}, not a number of pixels")
        self.norm_radius, self.use_disks = norm_radius, use_disks

    def forward(self, points: Tensor, size: tuple[int, int], dtype: torch.dtype = torch.float32) -> Tensor:
        """(B, 2, H, W) of points (B, 2n, 3)."""
        if self.use_disks:
            return disk_maps(points, size, radius=self.norm_radius, dtype=dtype)
        return distance_maps(points, size, norm_radius=self.norm_radius, dtype=dtype)


def _squared_distances(points: Tensor, size: tuple[int, int], unit: float | None = None) -> Tensor:
    """(B, 2, H, W) squared distance to the nearest click of each sign, in units of `unit`.

    Always in float32, as published, whatever the network computes in: a disk's edge must not move with the precision.
    A click counts as absent where the larger of its coordinates is negative.
    """
    batch, rows = points.shape[:2]
    places = points.detach().to(torch.float32).reshape(batch, 2, rows // 2, points.shape[2])
    absent = places[..., :2].amax(-1) < 0
    squared = []
    for axis, length in enumerate(size):
        offsets = torch.arange(length, dtype=torch.float32, device=points.device) - places[..., axis, None]
        squared.append((offsets if unit is None else offsets / unit).square())
    # One click after the other: all at once would take n times the memory.
    nearest = torch.full((batch, 2, *size), ABSENT, dtype=torch.float32, device=points.device)
    for place in range(rows // 2):
        distance = squared[0][:, :, place, :, None] + squared[1][:, :, place, None, :]
        nearest = torch.minimum(nearest, distance.masked_fill_(absent[:, :, place, None, None], ABSENT))
    return nearest
