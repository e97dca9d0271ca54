"""What a library's network gets its weights from: the library's own, a file, or random numbers of a seed.

>>> choose_weights("timm:resnet18", weights=None, random=0, pretrained=False)
'random'
>>> choose_weights("timm:resnet18", weights=None, random=None, pretrained=False)
Traceback (most recent call last):
...
hardlook.errors.OptionError: timm:resnet18 without pretrained weights would answer at random
  remedy: weights=FILE for a checkpoint of your own, or random=SEED for random weights
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.extras import require
from hardlook.networks.loading import LoadedWeights, check_keys, load_state_dict

if TYPE_CHECKING:
    from torch import Tensor, nn

Origin = Literal["pretrained", "file", "random"]

# What training scripts put before every name: DataParallel, torch.compile, Lightning.
_PREFIXES = ("module.", "_orig_mod.", "model.")


def require_library(module: str, *, extra: str) -> ModuleType:
    """Import a library that depends on torchvision; an error says if its compiled operators do not fit torch."""
    require("torch", extra="torch")
    try:
        return require(module, extra=extra)
    except (RuntimeError, ImportError, OSError) as error:
        if "torchvision" not in f"{error}":
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] in ("torchvision", module)]:
            del sys.modules[name]  # half imported, it would fail in other words the next time
        torch = require("torch", extra="torch")
        raise ModelError(
            f"the installed torchvision does not fit torch {torch.__version__}: {error}",
            remedy="install torch and torchvision of one release and one build (both CPU, or both the same CUDA)",
        ) from error


def choose_weights(name: str, *, weights: Path | None, random: int | None, pretrained: bool) -> Origin:
    """Where the weights come from; an error unless exactly one source is given."""
    if weights is not None and random is not None:
        raise OptionError(f"{name} has both weights={weights} and random={random}", remedy="leave one of them out")
    if random is not None:
        if random < 0:
            raise OptionError(f"{name}: random={random} is not a seed", remedy="a whole number of at least 0")
        return "random"
    if weights is not None:
        return "file"
    if not pretrained:
        raise OptionError(
            f"{name} without pretrained weights would answer at random",
            remedy="weights=FILE for a checkpoint of your own, or random=SEED for random weights",
        )
    return "pretrained"


def name_model(name: str, origin: Origin, random: int | None = None) -> str:
    """The model's name; that its weights are random is part of it."""
    return f"{name} (random weights, seed {random})" if origin == "random" else name


@contextmanager
def seeded_torch(seed: int | None) -> Iterator[None]:
    """Seed torch's random numbers (None: with 0) and restore their earlier state at the end."""
    torch = require("torch", extra="torch")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed or 0)
        yield


def read_checkpoint(path: Path) -> LoadedWeights:
    """Tensors by name of a file, never unpickled; a prefix that all names share (`module.`, `model.`) is removed."""
    loaded = load_state_dict(path)
    state: Mapping[str, Tensor] = loaded.state
    while prefix := next((one for one in _PREFIXES if all(key.startswith(one) for key in state)), ""):
        state = {key.removeprefix(prefix): value for key, value in state.items()}
    return LoadedWeights(state, loaded.sha256, loaded.path)


def fit_state(network: nn.Module, state: Mapping[str, Tensor], path: Path, *, ignore: tuple[str, ...] = ()) -> None:
    """Copy tensors into the network; any difference is an error that names the tensors, but for those of `ignore`."""
    kept = {key: value for key, value in state.items() if not (ignore and key.startswith(ignore))}
    # Counters of training: frozen normalisation has none, and they change no answer.
    counters = {key: value for key, value in network.state_dict().items() if key.endswith("num_batches_tracked")}
    kept = {key: value for key, value in kept.items() if not key.endswith("num_batches_tracked")} | counters
    if differences := check_keys(network, kept):
        raise ModelError(
            f"the weights do not fit {type(network).__name__}: {differences}",
            file=path,
            remedy="give weights of this architecture; a network that you build yourself: hl.wrap(network, role=...)",
        )
    network.load_state_dict(kept)


def read_class_names(classes: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of classes: as given, or the lines of a text file where one path is given; None for None."""
    if classes is None:
        return None
    names = tuple(classes)
    if len(names) == 1 and (names[0].endswith(".txt") or Path(names[0]).expanduser().is_file()):
        path = Path(names[0]).expanduser()
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"not a readable list of classes: {error}", file=path, remedy="one name a line") from error
        names = tuple(line.strip() for line in lines if line.strip())
        if not names:
            raise DataError("the list of classes is empty", file=path, remedy="one name a line, in the network's order")
    return names


def suggest_name(prefix: str, name: str, known: Sequence[str]) -> ModelError:
    """The error for a name that the library does not have, with the nearest ones."""
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(f'{prefix}:{one}' for one in near)}? " if near else ""
    remedy = f"{hint}`hardlook models --family {prefix}` lists the names"
    return ModelError(f"{prefix} has no model {name!r}", remedy=remedy)
