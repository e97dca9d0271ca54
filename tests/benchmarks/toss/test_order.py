"""The order of units: by fold, class and query image, so that a class's images stay in memory."""

from collections import OrderedDict

import pytest

from hardlook.benchmarks.toss.benchmark import TOSS
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.data.toss_pairs import list_pair_files, read_pairs
from hardlook.runs.batches import lay_out


def test_batches_keep_the_order_of_fold_class_and_image():
    units = TOSS.units(TossOptions(scenes=48))
    pairs = [unit.payload for batch in lay_out(units, TOSS.card.batch_size) for unit in batch]
    order = [(pair.slices["fold"], pair.slices["class"], pair.settings.source.image_of(pair.query)) for pair in pairs]
    assert order == sorted(order)
    # Scenes with two objects are queries of two classes.
    assert len({(fold, image) for fold, _, image in order}) < len(set(order))


def misses(images, room):
    """How often a store with room for so many images has to make one, the longest unused going first."""
    kept, made = OrderedDict(), 0
    for image in images:
        made += image not in kept
        kept[image] = None
        kept.move_to_end(image)
        if len(kept) > room:
            kept.popitem(last=False)
    return made


@pytest.mark.real
def test_the_published_tier_one_encodes_each_image_twice_at_most(shared_data):
    files = [file for file in list_pair_files(shared_data / "reference" / "toss") if file.tier == 1]
    listed = [pair for file in files for pair in read_pairs(file).pairs]
    assert len(listed) == 308_269

    def images(pairs):
        return [token.partition("_")[2] for pair in pairs for token in (pair.query, pair.support)]

    def place(pair):
        number, _, image = pair.query.partition("_")
        return pair.fold, number, image

    distinct = len(set(images(listed)))
    # 2 GiB of EfficientNet-Lite0's cells: stride 16 and 32 at 320 pixels are 20 x 20 x 432 floats an image.
    room = (2 << 30) // (20 * 20 * 432 * 4)
    assert distinct == 12_012
    assert misses(images(sorted(listed, key=place)), room) < 2 * distinct < misses(images(listed), room)
