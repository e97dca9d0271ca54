import numpy as np

from hardlook.clicks.first_clicks import first_clicks
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Clicks

from .scenes import drive, instances


def test_each_point_is_tried_alone():
    for instance in instances(2):
        session = Disc(fragility=1.0).open(instance.image)
        y, x = np.nonzero(instance.target)
        points = np.stack([x, y], axis=1)[:: len(x) // 8]
        found = drive(first_clicks(instance, points), session.predict)
        counted, masks = ~instance.ignore, []
        for index, point in enumerate(points):
            [answer] = session.predict([Clicks(np.array([point], np.float32), np.ones(1, bool))])
            masks.append(answer.mask)
            assert found.intersection[index] == (answer.mask & instance.target & counted).sum()
            assert found.union[index] == ((answer.mask | instance.target) & counted).sum()
        assert np.allclose(found.mean_mask, np.mean(masks, axis=0))
        assert found.mean_mask.dtype == np.float32


def test_points_are_copied_and_none_is_allowed():
    [instance] = instances(1)
    session = Disc().open(instance.image)
    points = np.array([[3.5, 2.5]])
    [prompt] = next(first_clicks(instance, points))
    assert prompt.points.tolist() == [[3.5, 2.5]]
    assert not np.shares_memory(prompt.points, points)
    nobody = drive(first_clicks(instance, np.empty((0, 2))), session.predict)
    assert nobody.union.shape == (0,)
    assert not nobody.mean_mask.any()
