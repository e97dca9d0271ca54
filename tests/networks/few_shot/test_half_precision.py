"""Every method under autocast: its loss is near that of float32, its gradients are finite, its solvers see float32."""

import pytest
import torch
from torch.overrides import TorchFunctionMode

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.catalogue import find_method, list_methods
from hardlook.networks.few_shot.method import Episodes

WAYS, SHOTS, CLASSES, CHANNELS = 3, 2, 6, 16
# What torch has no half-precision kernels for on a GPU. On a processor autocast quietly gives some of them float32.
SOLVERS = {"linalg_solve", "solve", "solve_triangular", "linalg_solve_triangular", "linalg_cholesky", "cholesky", "svd"}
SOLVERS |= {
    "linalg_svd",
    "linalg_inv",
    "inverse",
    "inv",
    "eigh",
    "linalg_eigh",
    "cholesky_inverse",
    "linalg_cholesky_ex",
}
# Loss within 5 % and .03: bfloat16 has 8 binary digits, and the features keep their rounding whatever follows.
NEAR = {"rtol": 0.05, "atol": 0.03}
# Steps of rate 40 along rounded gradients end at other images.
FAR = {"rtol": 0.3, "atol": 0.1}


class ExactSolvers(TorchFunctionMode):
    """Fails where a solver is called within autocast or with half-precision numbers; counts the calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_function__(self, function, types, inputs=(), options=None):
        if getattr(function, "__name__", "") in SOLVERS:
            self.calls += 1
            given = [one for one in inputs if isinstance(one, torch.Tensor)]
            assert not torch.is_autocast_enabled("cpu") and all(one.dtype.itemsize >= 4 for one in given), function
        return function(*inputs, **(options or {}))


def build(entry):
    kind = entry.load()
    torch.manual_seed(0)
    if kind.inputs == "tokens":
        backbone, side = build_backbone("vit-small", output="tokens", width=16, depth=1, heads=2, patch=8), 4
        channels = 16
    else:
        options = {} if kind.inputs == "vectors" else {"last_pool": False}
        backbone = build_backbone("conv64f", output=kind.inputs, channels=CHANNELS, **options)
        side = 1 if kind.inputs == "vectors" else 4
        channels = backbone(torch.zeros(1, 3, 32, 32)).shape[1]
    return kind.build(backbone, channels=channels, classes=CLASSES, ways=WAYS, side=side)


def make_episodes():
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(2, WAYS, SHOTS + 2, 3, 32, 32, generator=generator)
    images = noise + torch.randn(2, WAYS, 1, 3, 32, 32, generator=generator)
    labels = torch.arange(WAYS).repeat_interleave(2).expand(2, -1)
    classes = torch.tensor([[0, 3, 5], [2, 1, 4]])
    return Episodes(images[:, :, :SHOTS], images[:, :, SHOTS:].flatten(1, 2), labels, classes, ("a", "b"))


def compute_loss(entry, stage, kind):
    """The loss of a stage of a fresh method in a precision, with its solvers; it passes gradients back."""
    method, episodes = build(entry), make_episodes()
    method.start_stage(stage)
    torch.manual_seed(2)
    with torch.autocast("cpu", dtype=kind or torch.bfloat16, enabled=kind is not None), ExactSolvers() as solvers:
        if stage == "episodes":
            loss, _ = method.loss(episodes)
        else:
            images = episodes.query.flatten(0, 1)
            loss, _ = method.class_loss(images, torch.arange(len(images) // method.views) % CLASSES)
    loss.backward()
    gradients = [one.grad for one in method.parameters() if one.grad is not None]
    assert gradients and all(one.isfinite().all() for one in gradients)
    return loss.detach(), solvers.calls


@pytest.mark.parametrize("entry", list_methods(), ids=lambda entry: entry.name)
def test_bfloat16_is_near_float32(entry):
    for stage in entry.stages:
        wanted, _ = compute_loss(entry, stage, None)
        found, _ = compute_loss(entry, stage, torch.bfloat16)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, wanted, **(FAR if entry.name.startswith("ata-") else NEAR))


@pytest.mark.parametrize(
    "name", ["adm", "atl-net", "can", "cdkt-pl", "deepbdc", "frn", "leo", "mcl", "renet", "tpn", "versa"]
)
def test_float16_is_near_float32(name):
    """Its smallest numbers are about 1e-7, so that what is added against a division by 0 may vanish."""
    entry = find_method(name)
    wanted, found = (compute_loss(entry, "episodes", kind)[0] for kind in (None, torch.float16))
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("name", ["adm", "cdkt-ml", "dsn", "frn", "mcl", "r2d2", "r2d2-mcl", "tpn"])
def test_these_solve_and_are_watched(name):
    with pytest.raises(AssertionError):
        with torch.autocast("cpu", dtype=torch.bfloat16), ExactSolvers():
            torch.linalg.solve(torch.eye(2), torch.ones(2))
    assert compute_loss(find_method(name), "episodes", torch.bfloat16)[1] > 0


@pytest.mark.parametrize("name", ["anil", "boil", "ifsl-maml", "lp-ft-fb", "maml", "metal", "mtl", "tsa"])
def test_inner_loops_adapt_in_bfloat16(name):
    """By vmap and functional_call where they have them; probabilities as in float32."""
    method = build(find_method(name)).eval()
    if name == "tsa":
        method.steps = 2
    with torch.no_grad():
        wanted = method.classify(make_episodes()).softmax(-1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = method.classify(make_episodes()).float().softmax(-1)
    assert (found - wanted).abs().max() < 0.1
