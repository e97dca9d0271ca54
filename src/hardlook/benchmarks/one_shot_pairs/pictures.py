"""The pictures of a pair: what was shown, what is true, what was found."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.benchmarks.one_shot_pairs.reading import read_pair
from hardlook.benchmarks.one_shot_pairs.records import decode_prediction
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture

MOST_SUPPORTS = 3


def pictures_of(unit: Unit, record: Record, shelf: Shelf) -> Sequence[Picture]:
    """The supports (three at most), the query with its truth, and the query with the prediction."""
    pair: OneShotPair = read_pair(unit.payload, unit.id, shelf)
    assert pair.image is not None and pair.truth is not None
    pictures = [Picture("support", shown.image, mask=shown.mask) for shown in pair.support[:MOST_SUPPORTS]]
    pictures.append(Picture("query and truth", pair.image, mask=pair.truth.mask))
    if record["prediction"]:
        mask = decode_prediction(record["prediction"], pair.truth.mask.shape)
        pictures.append(Picture("prediction", pair.image, mask=mask))
    return pictures
