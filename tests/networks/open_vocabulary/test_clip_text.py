"""CLIP's text tower: laws, names of classes, and the released code."""

import numpy as np
import pytest
import torch
from fc_clip_goldens import CLIP_PREFIX, check_array, fill_module
from goldens import Golden, goldens_folder, read_golden

from hardlook.networks.open_vocabulary.clip_text import (
    CLIP,
    TEXT_SIZES,
    TextSize,
    average_prompts,
    find_seen,
    split_names,
)


@pytest.fixture(scope="module", params=[False, True])
def tower(request):
    torch.manual_seed(0)
    return CLIP(text=TextSize(128, 2, 24, quick=request.param, vocabulary=50, context=9)).eval()


def test_what_follows_the_end_token_does_not_count_and_what_precedes_it_does(tower):
    tokens = torch.tensor([[48, 3, 4, 49, 0, 0, 0], [48, 3, 4, 49, 7, 8, 49], [48, 4, 3, 49, 0, 0, 0]])
    with torch.no_grad():
        vectors = tower.encode_tokens(tokens)
        alone = tower.encode_tokens(tokens[2:, :4])
    torch.testing.assert_close(vectors[0], vectors[1])
    torch.testing.assert_close(vectors[2:], alone)
    assert (vectors[0] - vectors[2]).abs().max() > 1e-3


def test_the_gelu_of_openai_is_another():
    torch.manual_seed(0)
    exact = CLIP(text=TextSize(64, 1, 8, vocabulary=5, context=3)).eval()
    quick = CLIP(text=TextSize(64, 1, 8, quick=True, vocabulary=5, context=3)).eval()
    quick.load_state_dict(exact.state_dict())
    tokens = torch.tensor([[1, 4, 0]])
    with torch.no_grad():
        difference = (exact.encode_tokens(tokens) - quick.encode_tokens(tokens)).abs().max()
    assert 1e-6 < difference < 0.05


def test_a_name_is_the_direction_of_its_prompts_whatever_their_lengths():
    features = torch.tensor([[2.0, 0.0], [0.0, 5.0], [1.0, 0.0], [3.0, 0.0]])
    torch.testing.assert_close(average_prompts(features, 2), torch.tensor([[0.5**0.5, 0.5**0.5], [1.0, 0.0]]))
    torch.testing.assert_close(average_prompts(7 * features, 2), average_prompts(features, 2))


def test_names_of_classes_and_which_were_seen():
    assert split_names(" lamp  post ,cat,,cat") == ("lamp post", "cat")
    assert split_names("a, b,  c,a", released=True) == ("a", "b", " c", "a")
    assert find_seen(["kitten, cat", "Cat ", "catfish"], ["cat,feline"]) == (True, True, False)
    assert find_seen(["kitten, cat", "Cat ", "catfish"], ["cat,feline"], released=True) == (True, False, False)


def test_bfloat16_by_autocast(tower):
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert tower.encode_tokens(torch.tensor([[48, 3, 49]])).isfinite().all()


def test_names_are_read_as_in_the_released_code():
    golden = read_golden("open_vocabulary", "fcclip_convnext_large")
    case = golden.facts["golden_case"]
    counts = [len(split_names(label, released=True)) for label in case["test_labels"]]
    assert counts == golden.arrays["num_templates"].tolist()
    seen = find_seen(case["test_labels"], case["train_labels"], released=True)
    assert list(seen) == golden.arrays["category_overlap"].astype(bool).tolist()


def test_the_text_tower_equals_the_released_code():
    image_golden = read_golden("open_vocabulary", "fcclip_convnext_large")
    arrays = np.load(goldens_folder("open_vocabulary") / "fcclip_text_tower.npz")
    golden = Golden("fcclip_text_tower", image_golden.facts, arrays)
    tower = fill_module(lambda: CLIP(text=TEXT_SIZES["convnext_large_d_320"]), golden, CLIP_PREFIX)
    tokens = torch.from_numpy(arrays["tokens"]).long()
    labels = image_golden.facts["golden_case"]["text_tower_labels"]
    names = sum(len(split_names(label, released=True)) for label in labels)
    for dtype in (torch.float32, torch.float64):
        with torch.no_grad():
            features = tower.to(dtype).encode_tokens(tokens)
        check_array(golden, "text_features", features)
        check_array(golden, "classifier", average_prompts(features, len(tokens) // names))
