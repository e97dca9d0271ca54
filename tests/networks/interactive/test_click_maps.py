"""Click maps: worked examples, laws, and the released code."""

import numpy as np
import pytest
import torch
from goldens import goldens_folder

from hardlook.networks.interactive.click_maps import ClickMaps, disk_maps, distance_maps, flip_clicks, pack_clicks


def test_points_are_positive_rows_then_negative_rows_in_order_of_clicks():
    clicks = [(1, 2, True), (3, 4, False), (5.5, 6.25, True)]
    assert pack_clicks([clicks])[0].tolist() == [[1, 2, 0], [5.5, 6.25, 2], [3, 4, 1], [-1, -1, -1]]
    assert pack_clicks([clicks, []])[1].tolist() == [[-1, -1, -1]] * 4
    assert pack_clicks([clicks], limit=1)[0].tolist() == [[1, 2, 0], [-1, -1, -1]]
    assert pack_clicks([clicks], limit=2)[0].tolist() == [[1, 2, 0], [-1, -1, -1], [3, 4, 1], [-1, -1, -1]]
    assert pack_clicks([[]]).shape == (1, 2, 3), "a network wants at least one row per sign"
    assert pack_clicks([clicks], places=3).shape == (1, 6, 3)
    with pytest.raises(ValueError, match="2 clicks of one sign do not fit into 1"):
        pack_clicks([clicks], places=1)


def test_the_border_of_a_disk_belongs_to_it():
    found = disk_maps(pack_clicks([[(3, 3, True)]]), (8, 8), radius=2)
    assert found[0, 0].sum() == 13, "the 13 pixels at most 2 away"
    assert found[0, 0, 3, 5] == 1
    assert found[0, 1].sum() == 0
    assert disk_maps(pack_clicks([[(3, 3.001, True)]]), (8, 8), radius=2)[0, 0, 3].tolist() == [0, 0, 1, 1, 1, 1, 0, 0]


def test_a_click_is_absent_only_with_both_coordinates_negative():
    points = torch.tensor([[[-1.0, 2, 0], [-0.5, -0.5, 1]]])
    found = disk_maps(points, (4, 4), radius=1)
    assert found[0, 0].nonzero().tolist() == [[0, 2]]
    assert found[0, 1].sum() == 0


def test_distances_are_nearest_and_one_without_clicks():
    found = distance_maps(pack_clicks([[(0, 0, True), (0, 6, True)]]), (1, 7), norm_radius=4)
    expected = np.tanh(2 * np.array([0, 1, 2, 3, 2, 1, 0]) / 4)
    np.testing.assert_allclose(found[0, 0, 0], expected, rtol=1e-6)
    assert found[0, 1].tolist() == [[1.0] * 7]


def test_lists_do_not_mix_and_padding_changes_nothing():
    courses = [[(1, 1, True)], [(5, 2, False), (0, 0, True), (3, 6, True)], []]
    together = disk_maps(pack_clicks(courses, places=4), (7, 9), radius=2)
    alone = torch.cat([disk_maps(pack_clicks([clicks]), (7, 9), radius=2) for clicks in courses])
    assert torch.equal(together, alone)


def test_flipped_clicks_give_flipped_maps():
    clicks = [(1, 1.5, True), (4, 7, False)]
    maps = disk_maps(pack_clicks([clicks]), (6, 9), radius=2)
    assert torch.equal(disk_maps(pack_clicks([flip_clicks(clicks, 9)]), (6, 9), radius=2), maps.flip(3))


def test_maps_do_not_depend_on_the_precision_of_the_network():
    points = pack_clicks([[(1.3, 2.7, True)]])
    single = ClickMaps(3)(points, (9, 9))
    for dtype in (torch.float64, torch.bfloat16):
        found = ClickMaps(3)(points, (9, 9), dtype)
        assert found.dtype == dtype
        assert torch.equal(found.float(), single)


def test_equals_the_released_code():
    path = goldens_folder("interactive") / "click_maps.npz"
    if not path.is_file():
        pytest.skip(f"no golden {path}")
    arrays = np.load(path)
    points, size = torch.from_numpy(arrays["points"]), tuple(arrays["size"].tolist())
    compared = 0
    for name in arrays.files:
        kind, _, radius = name.rpartition("_radius")
        if kind == "disks":
            np.testing.assert_array_equal(ClickMaps(int(radius))(points, size).numpy(), arrays[name])
            compared += 1
        elif kind == "tanh_distance":
            found = ClickMaps(int(radius), use_disks=False)(points, size)
            # The roots of torch's builds differ in the last digit.
            np.testing.assert_allclose(found.numpy(), arrays[name], rtol=3e-7)
            compared += 1
    assert compared == len(arrays.files) - 2
