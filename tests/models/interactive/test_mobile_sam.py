"""MobileSAM: how prompts are batched and driven, and what the real weights do on real images."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import distance_transform_edt

from hardlook.errors import ModelError, OptionError
from hardlook.models.interactive.mobile_sam import MobileSam, MobileSamSession, build_network
from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.sam_frame import SamFrame
from hardlook.models.registry import find
from hardlook.models.roles import Clicks
from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.networks.loading import check_keys, load_state_dict

torch = pytest.importorskip("torch", reason="the extra torch is not installed")


@pytest.fixture(scope="module")
def network():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return build_network().eval().requires_grad_(False)


@pytest.fixture(scope="module")
def cells():
    return 0.3 * torch.randn(1, 4096, 256, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def session(network, cells):
    """A session on what an encoder might have made, by policy and batch."""

    def opened(policy: PromptPolicy | None = None, batch: int = 32, threshold: float = 0.0) -> MobileSamSession:
        frame = SamFrame.from_image(np.zeros((60, 80, 3), np.uint8))
        grid = network.prompt_encoder.grid()
        return MobileSamSession(network, frame, cells, grid, policy or PromptPolicy(), threshold, batch)

    return opened


def prompt(*points: tuple[float, float, bool], state=None) -> Clicks:
    table = np.array(points, np.float32).reshape(-1, 3)
    return Clicks(table[:, :2], table[:, 2] > 0, state)


def several_prompts() -> list[Clicks]:
    state = np.random.default_rng(0).normal(scale=5, size=(256, 256)).astype(np.float32)
    return [
        prompt((10, 10, True)),
        prompt((10, 10, True), (50, 30, False), state=state),
        prompt((70, 20, True)),
        prompt((30, 40, False), (5, 5, True)),
        prompt((79, 50, True), (1, 2, True), state=-state),
    ]


def test_batches_answer_as_prompts_alone(session) -> None:
    prompts = several_prompts()
    together = session().predict(prompts)
    for one, answer in zip(prompts, together, strict=True):
        [alone] = session().predict([one])
        assert answer.mask.shape == (60, 80) and answer.mask.dtype == np.bool_
        assert answer.state.shape == (256, 256) and answer.state.dtype == np.float32
        assert np.allclose(answer.state, alone.state, atol=1e-4 * np.abs(alone.state).max())
    assert session().predict([]) == []


def test_one_prompt_at_a_time_has_the_same_bits_in_any_company(session) -> None:
    prompts = several_prompts()
    together = session(batch=1).predict(prompts)
    for one, answer in zip(prompts, together, strict=True):
        [alone] = session(batch=1).predict([one])
        assert np.array_equal(answer.state, alone.state) and np.array_equal(answer.mask, alone.mask)


def test_the_mask_with_the_highest_predicted_iou_is_taken(session, network, cells) -> None:
    one = prompt((20, 30, True), (60, 10, False))
    encoder = network.prompt_encoder
    points = torch.tensor([[[20, 30], [60, 10]]], dtype=torch.float32) * 12.8
    with torch.inference_mode():
        logits, ious = network.mask_decoder(
            encoder.tokens(points, torch.tensor([[True, False]])), cells + encoder.mask(None), encoder.grid()
        )
    best = 1 + int(ious[0, 1:].argmax())
    for multimask, chosen in (("always", best), ("first", 0), ("never", 0)):
        [answer] = session(PromptPolicy(multimask)).predict([one])
        assert np.allclose(answer.state, logits[0, chosen], atol=1e-4)


def test_the_state_counts_only_where_the_policy_says_so(session) -> None:
    without, given = (
        prompt((20, 30, True), (60, 10, False), state=state) for state in (None, several_prompts()[1].state)
    )
    for previous, same in ((True, False), (False, True)):
        first, second = session(PromptPolicy(previous=previous)).predict([without, given])
        assert np.array_equal(first.state, second.state) is same


def test_a_higher_threshold_takes_fewer_pixels(session) -> None:
    one = prompt((20, 30, True))
    low, high = (session(threshold=threshold).predict([one])[0].mask for threshold in (-0.05, 0.05))
    assert high.sum() < low.sum() and not (high & ~low).any()


def test_states_are_of_their_own_and_inputs_stay(session) -> None:
    prompts = several_prompts()
    before = [one.points.copy() for one in prompts]
    answers = session().predict(prompts)
    assert all(answer.state.base is None and answer.mask.base is None for answer in answers)
    assert all(np.array_equal(one.points, points) for one, points in zip(prompts, before, strict=True))


def test_options_and_weights_that_cannot_be(tmp_path) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        MobileSam(batch=0)
    with pytest.raises(OptionError, match="always, first, never"):
        MobileSam(multimask="second")
    torch.save({"mask_decoder.iou_token.weight": torch.zeros(1, 256)}, tmp_path / "other.pt")
    with pytest.raises(ModelError, match=r"missing: image_encoder\.patch_embed"):
        MobileSam(weights=tmp_path / "other.pt")
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="no GPU"):
            MobileSam(device="cuda")


def test_it_is_registered() -> None:
    card = find("mobile-sam").card
    assert card.roles == ("promptable-segmenter",) and card.extra == "torch" and card.weights == ("mobile-sam",)


@pytest.fixture(scope="module")
def model() -> MobileSam:
    if get_weights_status("mobile-sam") != "installed":
        pytest.skip("mobile-sam is not installed; hardlook weights install mobile-sam")
    torch.set_num_threads(1)
    return MobileSam()


@pytest.mark.real
def test_the_published_weights_fit_without_a_difference(model, network) -> None:
    path = locate_weights("mobile-sam")["mobile_sam.pt"]
    assert not check_keys(network, load_state_dict(path).state)
    assert model.weights_files == (path,)
    assert sum(parameter.numel() for parameter in network.parameters()) == pytest.approx(10.1e6, rel=0.01)


@pytest.fixture(scope="module")
def opened(model, shared_data):
    """A GrabCut photo's session, target, known pixels and innermost point, opened once."""

    @functools.cache
    def by_stem(stem: str):
        folder = shared_data / "data" / "GrabCut"
        image = np.asarray(Image.open(folder / "data_GT" / f"{stem}.jpg").convert("RGB"))
        truth = np.asarray(Image.open(folder / "boundary_GT" / f"{stem}.bmp").convert("L"))
        target = truth > 128
        return model.open(image), target, truth != 128, innermost(target)

    return by_stem


@pytest.mark.real
@pytest.mark.parametrize("stem", ["book", "flower", "llama"])
def test_one_click_in_the_middle_gives_ninety_percent(opened, stem) -> None:
    session, target, known, middle = opened(stem)
    [first] = session.predict([prompt((*middle, True))])
    assert overlap(first.mask, target, known) > 0.9
    # A click outside the object, the logits given back, leaves the object as it is.
    outside = innermost(~target & ~first.mask)
    [second] = session.predict([prompt((*middle, True), (*outside, False), state=first.state)])
    assert not second.mask[outside[::-1]] and overlap(second.mask, target, known) > 0.9


@pytest.mark.real
def test_eleven_at_once_choose_the_same_masks(opened) -> None:
    one_by_one, target, *_ = opened("llama")
    session = replace(one_by_one, batch=11)
    rows, columns = np.nonzero(target)
    places = np.random.default_rng(0).choice(len(rows), 11, replace=False)
    prompts = [prompt((columns[place], rows[place], True)) for place in places]
    together = session.predict(prompts)
    alone = one_by_one.predict(prompts[:3])
    for one, other in zip(alone, together, strict=False):
        # Pixels whose logits are 0 to the last digits may fall either way.
        assert (one.mask != other.mask).sum() <= 2 and np.abs(one.state - other.state).max() < 1e-3
    assert len({answer.mask.tobytes() for answer in together}) > 1


def innermost(mask: np.ndarray) -> tuple[int, int]:
    """(x, y) of the point farthest from the border."""
    depth = distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(depth.argmax(), depth.shape)
    return int(column), int(row)


def overlap(mask: np.ndarray, target: np.ndarray, known: np.ndarray) -> float:
    return float((mask & target & known).sum() / ((mask | target) & known).sum())
