"""Kernels are used on a GPU only if a trial there gave what torch gives."""

import contextlib
import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import triton_loops  # noqa: E402, F401
from triton_tests import DEVICE, NEEDS_TRITON  # noqa: E402

from hardlook.errors import ModelError, RunWarning  # noqa: E402
from hardlook.networks.interactive.gpu import convolutions as gpu_convolutions  # noqa: E402
from hardlook.networks.interactive.gpu import norms as gpu_norms  # noqa: E402
from hardlook.networks.kernels import fused_layers, fused_norm, split_products, task_kernels  # noqa: E402
from hardlook.networks.kernels.triton_kernels import Kernel, check_close, try_kernels  # noqa: E402
from hardlook.training.images import fused_augmentation  # noqa: E402

HERE = torch.empty(0, device=DEVICE).device


def try_operations(dtype, precision="ieee"):
    return lambda where: task_kernels._try_operations(where, dtype, 16, precision)


TRIALS = {
    "steps": fused_layers._try_steps,
    "blocks": fused_norm._try_blocks,
    "maps": gpu_convolutions._try_maps,
    "norms": gpu_norms._try_norms,
    "images": fused_augmentation._try_images,
    "operations": try_operations(torch.float32),
}


SMALL = {
    "task_kernels": {
        "TRIED": (3, 5, 6), "LEAST_ROWS": 64, "SPANS": {"statistics": 1, "sums": 1, "weights": 1}
    },
    "fused_layers": {"MANY": 90, "CHUNK": 64},
    "convolutions": {"TILES": gpu_convolutions.TILES[:2]},
}  # fmt: skip


def make_small(module, monkeypatch):
    for name, value in SMALL.get(Path(module.__file__).stem, {}).items():
        monkeypatch.setattr(module, name, value)


@pytest.fixture(autouse=True)
def small_trials(monkeypatch):
    """Triton's interpreter is slow: several parts of sums come from smaller parts."""
    if DEVICE.type == "cpu":
        for module in (task_kernels, fused_layers, gpu_convolutions):
            make_small(module, monkeypatch)


@NEEDS_TRITON
@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS)
def test_kernels_pass_their_trials(trial):
    with torch.no_grad():
        assert trial(HERE) is not None


@pytest.mark.skipif(DEVICE.type != "cuda", reason="no GPU here, and Triton's interpreter does not multiply bfloat16")
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_operations_of_other_precisions_pass_their_trials(dtype, precision):
    with torch.no_grad():
        assert try_operations(dtype, precision)(HERE) is not None


# What computes, the trial that has to notice a wrong number of it, and what that one complains of.
WRONG = {
    "attention to few": (fused_layers.Kernels, "attend", "steps", "attention"),
    "layer norm": (fused_layers.Kernels, "normalize", "steps", "a layer norm"),
    "masks": (fused_layers.Kernels, "draw", "steps", "a mask's logits"),
    "statistics": (fused_norm.Kernels, "find_statistics", "blocks", "a normalised map"),
    "blocks": (fused_norm.Kernels, "write_result", "blocks", "a normalised map"),
    "gradients": (fused_norm.Kernels, "write_gradients", "blocks", "a gradient"),
    **{
        name: (task_kernels.TritonOperations, name, "operations", what)
        for name, what in {
            "cut_patches": "a patch",
            "run": "a block",
            "go_back": "a block's gradient",
            "transpose": "a map's gradient",
            "run_tangent": "a block's tangent",
            "go_back_tangent": "the tangent of a block's gradient",
            "transpose_tangent": "the tangent of a map's gradient",
        }.items()
    },
}


def spoil(found):
    """The first tensor of what a kernel returned, with a number that is a hundredth off."""
    first = found
    while not isinstance(first, torch.Tensor):
        first = first[0] if isinstance(first, tuple | list) else first.y
    flat = first.as_strided((first.numel(),), (1,))  # in the order of its memory
    flat[flat.abs().argmax()] *= 1.01
    return found


@NEEDS_TRITON
@pytest.mark.parametrize(("kind", "name", "trial", "what"), WRONG.values(), ids=WRONG)
def test_a_trial_notices_one_wrong_number(monkeypatch, kind, name, trial, what):
    right = getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda *given, **more: spoil(right(*given, **more)))
    with torch.no_grad(), pytest.raises(ArithmeticError, match=f"^{what} is off by "):
        TRIALS[trial](HERE)


@NEEDS_TRITON
@pytest.mark.parametrize(("name", "what"), [("weigh", "a weight's gradient"), ("weigh_tangent", "the tangent of a w")])
def test_a_trial_notices_a_wrong_gradient_of_a_weight(monkeypatch, name, what):
    right = getattr(task_kernels.TritonOperations, name)

    def weigh(self, *given):
        right(self, *given)
        given[-1].mul_(1.01)

    monkeypatch.setattr(task_kernels.TritonOperations, name, weigh)
    with torch.no_grad(), pytest.raises(ArithmeticError, match=what):
        TRIALS["operations"](HERE)


@NEEDS_TRITON
@pytest.mark.parametrize(
    ("module", "name", "trial"),
    [
        (gpu_convolutions, "convolve", "maps"),
        (gpu_convolutions, "enlarge", "maps"),
        (gpu_norms, "normalise_group", "norms"),
        (gpu_norms, "add_and_normalise", "norms"),
        (gpu_norms, "merge_levels", "norms"),
    ],
)
def test_a_trial_notices_one_wrong_number_of_a_function(monkeypatch, module, name, trial):
    right = getattr(module, name)

    def run(*given, kernels=None, **more):
        found = right(*given, kernels=kernels, **more)
        return found if kernels is None else spoil(found)

    monkeypatch.setattr(module, name, run)
    with torch.no_grad(), pytest.raises(ArithmeticError, match="is off by"):
        TRIALS[trial](HERE)


@NEEDS_TRITON
def test_a_trial_notices_a_wrong_grey_value(monkeypatch):
    right = fused_augmentation._launch

    def launch(*given):
        right(*given)
        given[-1][0, 0, 0, 0] += 1 / 70.682

    monkeypatch.setattr(fused_augmentation, "_launch", launch)
    with torch.no_grad(), pytest.raises(ArithmeticError, match="an image is off by"):
        TRIALS["images"](HERE)


# A module, a part of one of its kernels, a wrong one in its place, and what its trial complains of.
PLANTED = {
    "statistics without the last row": (fused_norm, "(row < last)[:", "(row < last - 1)[:", "normalised map"),
    "a norm without epsilon": (fused_norm, "variance + epsilon", "variance", "normalised map"),
    "a running mean without the bias": (fused_norm, "mean += tl.load(shift", "mean += 0 * tl.load(shift", "running"),
    "the last of equal pixels": (fused_norm, "better = score > best", "better = score >= best", "a gradient"),
    "keys of another prompt": (fused_layers, "keys + prompt * key_stride", "keys + prompt * query_stride", "attention"),
    "values by the rows of queries": (fused_layers, "[:, None] * value_row", "[:, None] * query_row", "attention"),
    "keys beyond the last one": (
        fused_layers,
        "(key < asked)[None, :], scores, float",
        "(key < asked + 1)[None, :], scores, float",
        "attention",
    ),
    "chunks that count alike": (
        fused_layers,
        "total = total * before + tl.load",
        "total = total + tl.load",
        "attention",
    ),
    "a map that is not repeated": (fused_layers, "(row % period)", "(row // 3)", "layer norm"),
    "rows as long as a block": (fused_layers, "tl.sum(value, 1) / width", "tl.sum(value, 1) / block", "layer norm"),
    "filters of the first prompt": (fused_layers, "one = prompt * masks", "one = 0 * prompt", "logits"),
    "one epsilon less": (task_kernels, "/ count + epsilon", "/ count", "a block"),
    "parts of one span": (task_kernels, "for start in range(0, parts, span)", "for start in range(0, span)", "block"),
    "weights of the first task": (task_kernels, "weight += task * stride", "weight += 0 * stride", "a block"),
    "a shift of the first picture": (gpu_convolutions, "(picture * shift4 * 4)", "(0 * picture)", "a convolution"),
    "a group norm without epsilon": (gpu_norms, "sqrt(variance + eps)", "sqrt(variance)", "a group norm"),
    "a layer norm without epsilon": (gpu_norms, "/ channels + eps)", "/ channels)", "a layer norm"),
    "crops without the last pixel": (fused_augmentation, "pixel < size * size", "pixel < size * size - 1", "image"),
}


@NEEDS_TRITON
@pytest.mark.parametrize(("module", "right", "wrong", "what"), PLANTED.values(), ids=PLANTED)
def test_a_trial_notices_a_wrong_kernel(monkeypatch, tmp_path, module, right, wrong, what):
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert right in text
    path = tmp_path / Path(module.__file__).name
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"wrong_{path.stem}", path)
    planted = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, planted)
    spec.loader.exec_module(planted)
    make_small(planted, monkeypatch)
    with torch.no_grad(), pytest.raises(ArithmeticError, match=rf"{what}.* is off by"):
        if module is task_kernels:
            planted._try_operations(HERE, torch.float32, 16, "ieee")
        else:
            next(vars(planted)[one.__name__] for one in TRIALS.values() if one.__module__ == module.__name__)(HERE)


def test_a_few_wrong_numbers_of_many_are_noticed():
    """Of bfloat16 a hundredth of the norm is rounding; one of a thousand rows changes it by less."""
    exact = torch.randn(1000, 64, generator=torch.Generator().manual_seed(0))
    found = exact.clone()
    found[-1] = 0
    with pytest.raises(ArithmeticError, match=r"^a number of a map is off by"):
        check_close(found, exact, 5e-2, "a map")
    check_close(exact.bfloat16(), exact, 5e-2, "a map")


@pytest.fixture
def gpu(monkeypatch):
    """As if this machine had a GPU, for as long as nothing is computed there."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda where: None)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda where: "Model 7")
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda where: (8, 0))
    monkeypatch.delenv("HARDLOOK_KERNELS", raising=False)
    return torch.device("cuda", 0)


def fail(error):
    raise error


def test_kernels_that_pass_are_used(gpu):
    assert try_kernels(lambda: "kernels", gpu, "faster steps") == "kernels"


@pytest.mark.parametrize("error", [ArithmeticError("a sum is off by 1.0\nsecond line"), RuntimeError("no ptxas")])
def test_kernels_that_fail_are_left_out_with_a_warning(gpu, error):
    reason = str(error).splitlines()[0]
    with pytest.warns(RunWarning, match=rf"^faster steps are not used on this .* \({reason}\): torch") as found:
        assert try_kernels(lambda: fail(error), gpu, "faster steps") is None
    assert "HARDLOOK_KERNELS=off" in str(found[0].message) and "second line" not in str(found[0].message)


def test_without_triton_torch_computes_and_nobody_is_warned(gpu):
    missing = ModuleNotFoundError("No module named 'triton'", name="triton")
    assert try_kernels(lambda: fail(missing), gpu, "faster steps") is None
    with pytest.warns(RunWarning, match="tensor_descriptor"):  # a version without what a kernel needs
        assert try_kernels(lambda: fail(ImportError("triton.tools.tensor_descriptor")), gpu, "faster steps") is None


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)])
def test_before_ampere_torch_computes_and_nobody_is_warned(gpu, monkeypatch, capability):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda where: capability)
    assert try_kernels(lambda: fail(AssertionError), gpu, "faster steps") is None


def test_on_an_amd_gpu_torch_computes_and_nobody_is_warned(gpu, monkeypatch):
    """ROCm's devices are called cuda; their capability may be that of a Hopper."""
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda where: (9, 4))
    assert try_kernels(lambda: fail(AssertionError), gpu, "faster steps") is None
    assert split_products.find_kernels.__wrapped__(gpu) is None


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_kernels_can_be_switched_off(gpu, monkeypatch, word):
    monkeypatch.setenv("HARDLOOK_KERNELS", word)
    assert try_kernels(lambda: fail(AssertionError), gpu, "faster steps") is None
    monkeypatch.setenv("HARDLOOK_KERNELS", "on")
    assert try_kernels(lambda: "kernels", gpu, "faster steps") == "kernels"


def test_an_error_of_the_compiler_names_the_remedy():
    class Compiled:
        __name__ = "_multiply"

        def __getitem__(self, grid):
            return lambda *given, **options: fail(given[0])

    with pytest.raises(ModelError, match="the kernel _multiply cannot run here: ValueError: too wide") as found:
        Kernel(Compiled())[(1,)](ValueError("too wide"))
    assert "HARDLOOK_KERNELS=off" in found.value.remedy
    with pytest.raises(torch.OutOfMemoryError):
        Kernel(Compiled())[(1,)](torch.OutOfMemoryError())


def test_nothing_is_tried_on_a_processor():
    for module in (fused_layers, fused_norm, split_products):
        assert module.find_kernels(torch.device("cpu")) is None
    assert try_kernels(lambda: fail(AssertionError), torch.device("cpu"), "faster steps") is None


def test_a_result_of_another_shape_or_with_nan_is_not_close():
    with pytest.raises(ArithmeticError, match=r"has the shape \(2,\) in place of \(1,\)"):
        check_close(torch.ones(2), torch.ones(1), 1.0, "a sum")
    with pytest.raises(ArithmeticError, match="a sum is off by nan"):
        check_close(torch.tensor([torch.nan]), torch.ones(1), 1.0, "a sum")
    check_close(torch.tensor([1.0000001]), torch.ones(1, dtype=torch.float64), 1e-6, "a sum")


def test_a_trial_sees_neither_gradients_nor_autocast_of_the_training_around_it(gpu):
    def build():
        assert not torch.is_grad_enabled() and not torch.is_autocast_enabled("cuda")
        return "kernels"

    before = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", True)
    try:
        with torch.enable_grad():
            assert try_kernels(build, gpu, "faster steps") == "kernels"
            assert torch.is_grad_enabled() and torch.is_autocast_enabled("cuda")
    finally:
        torch.set_autocast_enabled("cuda", before)


def test_kernels_that_fail_only_when_the_gpu_gets_to_them_are_left_out(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda where: fail(RuntimeError("illegal memory access")))
    with pytest.warns(RunWarning, match="illegal memory access"):
        assert try_kernels(lambda: "kernels", gpu, "faster steps") is None


# What only a part of a trial's calls computes: its second result, one of its inputs' kinds, or a way of its own.
PARTS = {
    "gradients of scales": (fused_norm.Kernels, "write_gradients", "blocks", lambda found, given, more: found[1][-1:]),
    "running statistics": (
        fused_norm.Kernels,
        "find_statistics",
        "blocks",
        lambda _, given, more: given[2].running_var,
    ),
    "pooled maps": (
        fused_norm.Kernels,
        "write_result",
        "blocks",
        lambda found, given, more: found[0][: len(found[0]) * given[4]],
    ),
    "attention of few": (
        fused_layers.Kernels,
        "attend",
        "steps",
        lambda found, given, more: found[: found.shape[1] < fused_layers.MANY],
    ),
    "attention of many": (
        fused_layers.Kernels,
        "attend",
        "steps",
        lambda found, given, more: found[: found.shape[1] >= fused_layers.MANY],
    ),
    "GELU": (fused_layers.Kernels, "normalize", "steps", lambda found, given, more: found[: int(given[4])]),
    "layer norm of tokens": (gpu_norms, "add_and_normalise", "norms", lambda found, given, more: found[1]),
    "TF32": (gpu_convolutions, "convolve", "maps", lambda found, given, more: found[: 2 * more["rounds"]]),
}


@NEEDS_TRITON
@pytest.mark.parametrize(("kind", "name", "trial", "choose"), PARTS.values(), ids=PARTS)
def test_a_trial_notices_a_wrong_part(monkeypatch, kind, name, trial, choose):
    right = getattr(kind, name)

    def run(*given, **more):
        found = right(*given, **more)
        if isinstance(kind, type) or more.get("kernels") is not None:
            choose(found, given, more).mul_(1.01)
        return found

    monkeypatch.setattr(kind, name, run)
    with torch.no_grad(), pytest.raises(ArithmeticError, match="is off by"):
        TRIALS[trial](HERE)
