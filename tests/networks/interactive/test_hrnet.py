"""HRNet: sizes, padded batches, and the object's context worked out by hand."""

import pytest
import torch
from torch.nn import functional

from hardlook.networks.interactive.hrnet import Frame, HRNet, gather_object


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    built = HRNet(6, 4, small=True).double().eval()
    with torch.no_grad():
        for name, value in built.named_buffers():
            if name.endswith("running_mean"):
                value.normal_(0, 0.3)
    return built


def test_odd_sizes_are_rounded_up(network):
    found = network.features(torch.rand(1, 3, 33, 47, dtype=torch.float64))
    assert found["logits_quarter"].shape == (1, 1, 9, 12)
    assert found["stage4_branch3"].shape == (1, 48, 2, 2)
    assert found["aggregated"].shape == (1, 90, 9, 12)


def test_pictures_of_a_padded_batch_have_their_own_answers(network):
    sizes = [(33, 47), (40, 48), (5, 3)]
    pictures = [torch.randn(3, *size, dtype=torch.float64) for size in sizes]
    # Whatever lies in the padding is not seen.
    batch = torch.full((len(sizes), 3, 40, 48), 7.0, dtype=torch.float64)
    for place, picture in enumerate(pictures):
        batch[place, :, : picture.shape[1], : picture.shape[2]] = picture
    together = network.features(batch, frame=Frame(torch.tensor(sizes), (40, 48)))
    for place, picture in enumerate(pictures):
        alone = network.features(picture[None])
        assert alone.keys() == together.keys()
        for name, maps in alone.items():
            rows, columns = maps.shape[2:]
            torch.testing.assert_close(together[name][place, :, :rows, :columns], maps[0], rtol=1e-10, atol=1e-10)


def test_a_frame_resizes_each_picture_as_torch_does():
    sizes = torch.tensor([[9, 14], [16, 20], [1, 3]])
    frame, maps = Frame(sizes, (16, 20)), torch.rand(3, 2, 8, 10, dtype=torch.float64)
    found = frame.resize(maps, (16, 20))
    for place, (rows, columns) in enumerate(sizes.tolist()):
        own = maps[place : place + 1, :, : (rows + 1) // 2, : (columns + 1) // 2]
        expected = functional.interpolate(own, (rows, columns), mode="bilinear", align_corners=True)
        torch.testing.assert_close(found[place, :, :rows, :columns], expected[0])


def test_a_limit_is_infinite_on_pictures_and_zero_elsewhere():
    frame = Frame(torch.tensor([[1, 3], [2, 1]]), (3, 4))
    inside = torch.tensor([[[1, 1, 1, 0], [0] * 4, [0] * 4], [[1, 0, 0, 0], [1, 0, 0, 0], [0] * 4]], dtype=torch.bool)
    for dtype in (torch.float32, torch.bfloat16):
        limit = frame.limit(torch.rand(2, 5, 3, 4, dtype=dtype))
        assert limit.dtype == dtype
        assert torch.equal(limit, torch.where(inside[:, None], torch.inf, 0.0).to(dtype))
    assert frame.limit(torch.rand(2, 5, 2, 2)).count_nonzero() == 3, "at half the size 1 x 2 and 1 x 1"


def test_the_object_is_the_softmax_weighted_mean_of_its_pixels():
    pixels, logits = torch.tensor([[[[1.0, 3.0, 8.0]]]]), torch.tensor([[[[0.0, 0.0, -50.0]]]])
    assert gather_object(pixels, logits).item() == pytest.approx(2)
    frame = Frame(torch.tensor([[1, 1]]), (1, 3))
    assert gather_object(pixels, logits, frame).item() == 1


def test_training_updates_all_running_statistics():
    network = HRNet(6, 4, small=True).train()
    network(torch.rand(2, 3, 32, 32))
    counts = {name: int(value) for name, value in network.named_buffers() if name.endswith("num_batches_tracked")}
    assert set(counts.values()) == {1}, [name for name, count in counts.items() if count != 1]
