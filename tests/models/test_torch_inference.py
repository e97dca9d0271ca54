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


@pytest.mark.parametrize("precision", ["float32", "tf32"])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_an_autocast_around_it_is_off_inside(precision, kind):
    one = torch.rand(2, 2)
    before = torch.is_autocast_enabled(kind)
    torch.set_autocast_enabled(kind, True)
    try:
        with exact_inference(precision):
            assert not torch.is_autocast_enabled(kind) and (one @ one).dtype == torch.float32
        assert torch.is_autocast_enabled(kind)
    finally:
        torch.set_autocast_enabled(kind, before)


def test_an_error_inside_leaves_no_trace():
    before = switches()
    with pytest.raises(ValueError, match="inside"), exact_inference():
        raise ValueError("inside")
    assert switches() == before


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="torch has no fp32_precision")
def test_a_user_may_have_set_torch_s_newer_switches():
    conv, matmul = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = conv.fp32_precision, torch.backends.fp32_precision
    conv.fp32_precision = torch.backends.fp32_precision = "ieee"
    try:
        with exact_inference("tf32"):
            assert conv.fp32_precision == matmul.fp32_precision == "tf32"
        assert conv.fp32_precision == matmul.fp32_precision == "ieee"
    finally:
        conv.fp32_precision, torch.backends.fp32_precision = before
    test_full_precision_inside_and_what_was_set_before_afterwards()
