"""Random panoptic images with void and crowd, and Open PQ written out from the text of the specification."""

import numpy as np

from hardlook.metrics.panoptic import Segments


def random_side(rng, near, classes, crowds):
    """A map of segment ids and its table: regions that follow another map, in part."""
    height, width = near.shape
    regions = near.copy()
    for _ in range(rng.integers(0, 4)):
        y, x = rng.integers(0, height), rng.integers(0, width)
        regions[y : y + rng.integers(1, height + 1), x : x + rng.integers(1, width + 1)] = rng.integers(0, 8)
    ids = np.append(0, rng.choice(np.arange(1, 5000), 7, replace=False))
    segment_map = ids[regions]
    listed = rng.permutation(np.setdiff1d(segment_map, 0))
    crowd = rng.random(len(listed)) < (0.35 if crowds else 0)
    return segment_map, listed, rng.integers(0, classes, len(listed)), crowd


def random_image(rng, classes):
    """(true map, true segments, predicted map, predicted segments) of one small image."""
    near = np.repeat(np.repeat(rng.integers(0, 8, (2, 3)), 3, 0), 3, 1)
    truth, true_ids, true_classes, crowd = random_side(rng, near, classes, True)
    prediction, ids, predicted, _ = random_side(rng, near, classes, False)
    # Half of the predictions have the class of the segment that they lie on.
    for k, one in enumerate(ids):
        below = truth[prediction == one][0]
        if below and rng.random() < 0.5:
            predicted[k] = true_classes[true_ids == below][0]
    return truth, Segments(true_ids, true_classes, crowd), prediction, Segments(ids, predicted)


def literal_sums(images, similarity, things, crowds="last"):
    """(4, K) sums of IoU, tp, fp, fn, a segment at a time."""
    sums = np.zeros((4, len(things)))
    for truth, true_table, prediction, predicted_table in images:
        true = {k: (c, w) for k, c, w in zip(true_table.ids, true_table.classes, true_table.crowd, strict=True)}
        called = dict(zip(predicted_table.ids, predicted_table.classes, strict=True))
        missed, spare, partner = {k for k, (_, crowd) in true.items() if not crowd}, set(called), {}
        for one in list(missed):
            for other in called:
                a, b = truth == one, (prediction == other) & (truth != 0)
                iou = (a & b).sum() / (a | b).sum()
                if iou > 0.5:
                    partner[other] = one, iou
                    missed.discard(one)
                    spare.discard(other)
        for other, label in called.items():
            area = (prediction == other).sum()
            on_void = ((prediction == other) & (truth == 0)).sum()
            own = [k for k, (c, crowd) in true.items() if crowd and c == label]
            own = own[-1:] if crowds == "last" else own
            on_crowd = sum(((prediction == other) & (truth == k)).sum() for k in own)
            excused = (on_void + on_crowd) / area > 0.5
            similar = 0.0
            if other in partner:
                one, iou = partner[other]
                actual = true[one][0]
                if actual == label:
                    similar = 1.0
                elif things[actual] == things[label]:
                    similar = similarity[actual, label]
                sums[:, actual] += similar * iou, similar, 0, 1 - similar
            if not excused:
                sums[2, label] += 1 - similar
        for one in missed:
            sums[3, true[one][0]] += 1
    return sums
