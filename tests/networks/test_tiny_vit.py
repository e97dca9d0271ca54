"""TinyViT: its windows against loops, and the whole of it against the code that comes with its weights."""

from __future__ import annotations

import importlib.util
import sys
import types

import numpy as np
import pytest

from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.networks.loading import check_keys, load_state_dict
from hardlook.networks.tiny_vit import build_tiny_vit

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

PART = "image_encoder."


@pytest.fixture(scope="module")
def random_encoder():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = build_tiny_vit().eval().requires_grad_(False)
    for parameter in network.parameters():
        # The defaults (zero biases, unit scales) would hide a term that is left out.
        parameter.add_(torch.randn_like(parameter) * 0.1)
    return network


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3)])
def test_a_cell_is_sixteen_pixels(random_encoder, height, width) -> None:
    with torch.inference_mode():
        answer = random_encoder(torch.randn(2, 3, 16 * height, 16 * width))
    assert answer.shape == (2, 256, height, width) and answer.isfinite().all()


def test_the_size_is_the_published_one() -> None:
    network = build_tiny_vit()
    used = sum(
        parameter.numel()
        for name, parameter in network.named_parameters()
        if not name.startswith(("head.", "norm_head.", "neck."))
    )
    # The paper's TinyViT-5M has 5.4 M parameters, of which 0.32 M are the classifier that is not counted here.
    assert used == pytest.approx(5.07e6, rel=0.01)


def test_attention_in_windows_against_loops(random_encoder) -> None:
    block = random_encoder.layers[1].blocks[0]
    side, heads, each = 7, 4, 32
    cells = torch.randn(1, 9, 10, 128)
    with torch.inference_mode():
        found = block.attend_in_windows(cells)[0].double().numpy()
    attention = block.attn
    weights = {name: value.double().numpy() for name, value in attention.state_dict().items()}
    padded = np.zeros((14, 14, 128))
    padded[:9, :10] = cells[0]
    wanted = np.zeros_like(padded)
    for top in (0, 7):
        for left in (0, 7):
            places = [(row, column) for row in range(top, top + side) for column in range(left, left + side)]
            normed = []
            for place in places:
                cell = padded[place]
                unit = (cell - cell.mean()) / np.sqrt(cell.var() + 1e-5)
                normed.append(unit * weights["norm.weight"] + weights["norm.bias"])
            mixed = np.array(normed) @ weights["qkv.weight"].T + weights["qkv.bias"]
            joined = np.zeros((len(places), 128))
            for head in range(heads):
                query, key, value = (
                    mixed[:, start : start + each] for start in range(3 * each * head, 3 * each * (head + 1), each)
                )
                for number, (row, column) in enumerate(places):
                    scores = np.array(
                        [
                            query[number] @ key[other] / np.sqrt(each)
                            + weights["attention_biases"][head, abs(row - r) * side + abs(column - c)]
                            for other, (r, c) in enumerate(places)
                        ]
                    )
                    chances = np.exp(scores - scores.max())
                    joined[number, each * head : each * (head + 1)] = chances / chances.sum() @ value
            for place, cell in zip(places, joined @ weights["proj.weight"].T + weights["proj.bias"], strict=True):
                wanted[place] = cell
    assert np.allclose(found, wanted[:9, :10], atol=1e-4)


@pytest.fixture
def published(monkeypatch):
    """The encoder as the package of the weights defines it; what it imports of others is replaced by stand-ins."""
    if get_weights_status("mobile-sam") != "installed":
        pytest.skip("mobile-sam is not installed; hardlook weights install mobile-sam")
    path = locate_weights("mobile-sam")["mobile_sam.pt"]
    code = path.parent.parent / "segment_any" / "mobile_sam" / "modeling" / "tiny_vit_sam.py"
    if not code.is_file():
        pytest.skip("the package of the weights came without its code")
    for name, contents in {
        "timm": {},
        "timm.models": {},
        "timm.models.layers": {
            "DropPath": torch.nn.Identity,
            "to_2tuple": lambda side: (side, side),
            "trunc_normal_": torch.nn.init.trunc_normal_,
        },
        "timm.models.registry": {"register_model": lambda function: function},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("published_tiny_vit", code)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network = module.TinyViT(1024, 3, 1000, [64, 128, 160, 320], [2, 2, 6, 2], [2, 4, 5, 10], drop_path_rate=0.0)
    state = load_state_dict(path).state
    encoder = {key.removeprefix(PART): value for key, value in state.items() if key.startswith(PART)}
    network.load_state_dict(encoder)
    # Only now: its biases are laid out when it turns to evaluation, and those laid out before loading would stay.
    network.eval()
    return network, encoder


@pytest.mark.real
def test_the_published_weights_and_code_give_the_same_map(published) -> None:
    theirs, state = published
    torch.set_num_threads(1)
    ours = build_tiny_vit().eval()
    assert not check_keys(ours, state)
    ours.load_state_dict(state)
    square = torch.randn(1, 3, 1024, 1024, generator=torch.Generator().manual_seed(0))
    square[..., 700:, :] = 0
    with torch.inference_mode():
        wanted, found = theirs(square), ours(square)
    assert wanted.shape == (1, 256, 64, 64) and wanted.std() > 0.05
    assert (wanted - found).abs().max() < 1e-4
