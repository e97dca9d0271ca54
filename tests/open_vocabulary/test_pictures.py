import numpy as np

from hardlook.open_vocabulary.pictures import decode_label_map, encode_label_map


def test_kept_predictions_survive():
    maps = np.array([[-1, 0], [149, 65534]], np.int32)
    assert (decode_label_map(encode_label_map(maps)) == maps).all()
