import pytest

from hardlook.models.torch_inference import exact_inference

torch = pytest.importorskip("torch", reason="the extra torch is not installed")


def switches():
    return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, torch.is_inference_mode_enabled()


def test_full_precision_inside_and_what_was_set_before_afterwards():
    before = switches()
    with exact_inference():
        assert switches() == (False, False, True)
        assert torch.backends.cudnn.deterministic
    assert switches() == before


def test_an_error_inside_leaves_no_trace():
    before = switches()
    with pytest.raises(ValueError, match="inside"), exact_inference():
        raise ValueError("inside")
    assert switches() == before
