"""Tasks that share images: the variance that the draw of the images adds, against pools that are drawn again."""

import numpy as np
import pytest

from hardlook.harness.stats.shared_draws import ImageShares, share_out_errors

CONCEPTS, WAYS, DEPTH = 10, 5, 6
CENTRES = np.random.default_rng(3).normal(size=(CONCEPTS, DEPTH))


def answer(rng, images, tasks, shots, queries):
    """Nearest centroid on a pool of images that is drawn anew."""
    spread = np.exp(0.4 * rng.normal(size=(CONCEPTS, images, 1)))
    pool = CENTRES[:, None] + 0.8 * spread * rng.normal(size=(CONCEPTS, images, DEPTH))
    classes = np.argsort(rng.random((tasks, CONCEPTS)), axis=1)[:, :WAYS]
    drawn = np.argsort(rng.random((tasks, WAYS, images)), axis=2)[:, :, : shots + queries]
    seen = pool[classes[:, :, None], drawn]
    apart = ((seen[:, :, shots:, None] - seen[:, :, :shots].mean(axis=2)[:, None, None]) ** 2).sum(axis=-1)
    numbers = classes[:, :, None] * images + drawn
    return apart.argmin(axis=-1) == np.arange(WAYS)[None, :, None], classes, numbers[..., :shots], numbers[..., shots:]


@pytest.mark.parametrize("shots", [1, 3])
def test_the_standard_error_is_that_of_means_over_other_pools(shots):
    rng = np.random.default_rng(shots)
    means, alone, both = [], [], []
    for _ in range(120):
        right, *drawn = answer(rng, 30, 300, shots, 5)
        values = right.mean(axis=(1, 2))
        means.append(values.mean())
        alone.append(values.var(ddof=1) / len(values))
        both.append(alone[-1] + share_out_errors(right, *drawn).measure()[0])
    true = np.std(means)
    # Tasks as if they were independent: an interval of less than half the width.
    assert np.sqrt(np.mean(alone)) < 0.5 * true
    assert 0.85 * true < np.sqrt(np.mean(both)) < 1.2 * true


def test_tasks_without_an_image_in_common_add_nothing():
    rng = np.random.default_rng(0)
    right = rng.random((50, 2, 3)) < 0.6
    classes = np.tile([0, 1], (50, 1))
    numbers = np.arange(50 * 2 * 4).reshape(50, 2, 4)
    variance, _ = share_out_errors(right, classes, numbers[..., :1], numbers[..., 1:]).measure()
    assert variance == pytest.approx(0, abs=1e-12)


def test_two_equal_models_have_no_difference_to_vary():
    rng = np.random.default_rng(1)
    shares = share_out_errors(*answer(rng, 20, 60, 1, 4))
    assert shares.measure()[0] > 0
    assert shares.minus(shares).measure()[0] == pytest.approx(0, abs=1e-15)


def test_no_answers_add_nothing():
    none = np.zeros(0, np.int64)
    assert ImageShares(none, none, np.zeros((0, 2))).measure() == (0.0, 1.0)


def measure_by_loops(shares, column):
    """The variance and the degrees of freedom of one account, image by image and task by task."""
    cells = {}
    for task, image, share in zip(shares.task.tolist(), shares.image.tolist(), shares.share[:, column], strict=True):
        cells[image, task] = cells.get((image, task), 0.0) + float(share)
    sums, counts = {}, {}
    for (image, _), share in cells.items():
        sums[image], counts[image] = sums.get(image, 0.0) + share, counts.get(image, 0) + 1
    squares = sum(share**2 for share in cells.values())
    pairs = sum(count * (count - 1) for count in counts.values())
    variance = sum(one**2 for one in sums.values()) - squares + pairs * squares * shares.groups / len(cells) ** 2
    freedom = sum(one**2 for one in sums.values()) ** 2 / sum(one**4 for one in sums.values())
    return max(variance, 0.0), max(freedom, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_variance_and_freedom_are_those_of_loops_and_the_larger_account_counts(seed):
    rng = np.random.default_rng(seed)
    shares = ImageShares(
        rng.integers(0, 6, 40), rng.integers(10, 15, 40), rng.normal(0.05, 0.1, (40, 3)), groups=1 + seed % 3
    )
    expected = [measure_by_loops(shares, column) for column in range(3)]
    assert shares.measure() == pytest.approx(max(expected))
    for column, one in enumerate(expected):
        alone = ImageShares(shares.task, shares.image, shares.share[:, column : column + 1], shares.groups)
        assert alone.measure() == pytest.approx(one)
    assert ImageShares(shares.task, shares.image, shares.share).groups == 1


def test_shares_are_those_of_loops():
    rng = np.random.default_rng(2)
    tasks, ways, shots, queries = 4, 2, 3, 2
    right = rng.random((tasks, ways, queries)) < 0.5
    classes = np.array([[0, 2], [2, 0], [0, 5], [5, 2]])
    support, query = rng.integers(0, 9, (tasks, ways, shots)), rng.integers(20, 29, (tasks, ways, queries))
    found = share_out_errors(right, classes, support, query)
    mean = {
        name: np.mean([right[t, w].mean() for t in range(tasks) for w in range(ways) if classes[t, w] == name])
        for name in (0, 2, 5)
    }
    error = np.array([[right[t, w] - mean[classes[t, w]] for w in range(ways)] for t in range(tasks)]) / right.size
    expected = [
        (t, query[t, w, q], error[t, w, q], error[t, w, q])
        for t in range(tasks) for w in range(ways) for q in range(queries)
    ] + [
        (t, support[t, w, s], error[t].sum(), error[t, w].sum())
        for t in range(tasks) for w in range(ways) for s in range(shots)
    ]  # fmt: skip
    rows = np.column_stack([found.task, found.image, found.share])
    np.testing.assert_allclose(rows, expected, atol=1e-15)
    assert found.groups == 3


def test_the_difference_of_two_means_has_the_shares_of_both():
    one = ImageShares(np.array([0]), np.array([1]), np.array([[0.5]]), 2)
    other = ImageShares(np.array([3, 0]), np.array([1, 4]), np.array([[0.25], [0.125]]), 3)
    both = one.minus(other)
    assert (both.task.tolist(), both.image.tolist()) == ([0, 3, 0], [1, 1, 4])
    assert both.share.tolist() == [[0.5], [-0.25], [-0.125]] and both.groups == other.minus(one).groups == 3
