"""Files of open-vocabulary networks: a network's own and CLIP's, read without running what they name, then joined.

Published files are dictionaries of tensors, as detectron2 writes them: below the key `model`, with the state of the
training beside it. A file that torch's safe reader refuses, since it pickles settings as well, is read by
`hardlook.networks.inert_pickles`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.networks.inert_pickles import InertArchive, StoredTensor
from hardlook.networks.loading import (
    WRAPPERS,
    KeyDifferences,
    check_keys,
    check_numbers,
    check_types,
    load_state_dict,
)
from hardlook.reading import reading

NOT_WEIGHTS = ("input_resolution", "context_length", "vocab_size")
"""What OpenAI's files hold beside weights."""
CONTAINERS = ("module.", "_orig_mod.")
"""What names begin with in files of parallel training and of compiled networks."""

Network = TypeVar("Network", bound=nn.Module)


def read_state(path: Path) -> dict[str, Tensor]:
    """Tensors by name on the CPU; a file that would run code is refused with the name of what it would call.

    Names are without what begins those of parallel training and of compiled networks, where all have it.
    """
    state = _read_tensors(path)
    while start := next((one for one in CONTAINERS if state and all(name.startswith(one) for name in state)), ""):
        state = {name.removeprefix(start): value for name, value in state.items()}
    return state


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return dict(load_state_dict(path).state)
    except DataError:
        if path.suffix == ".safetensors" or not zipfile.is_zipfile(path):
            raise
    with zipfile.ZipFile(path) as parts:
        if any(name.endswith("/constants.pkl") for name in parts.namelist()):
            raise DataError(
                "a script of torch, not a file of tensors",
                file=path,
                remedy="where you trust it, save its state dict: torch.save(torch.jit.load(FILE).state_dict(), NEW)",
            ) from None
    with (
        reading(
            path,
            "not a checkpoint that can be read without running what it names",
            remedy="download it again from its authors, or save its state dict as .safetensors where you trust it",
        ),
        InertArchive(path) as archive,
    ):
        state = {name: archive.read_tensor(stored) for name, stored in _find_tensors(archive.content).items()}
    check_numbers(state, path)
    return state


def _find_tensors(content: Any) -> dict[str, StoredTensor]:
    if isinstance(content, Mapping):
        content = next((content[key] for key in WRAPPERS if isinstance(content.get(key), Mapping)), content)
    if not isinstance(content, Mapping) or not content:
        raise ValueError("it holds no tensors by name (a script of torch does not: save its state dict)")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, StoredTensor):
            raise ValueError(f"its entry {str(name)[:200]} is no tensor")
    return dict(content)


@dataclass(frozen=True)
class TwoFiles:
    """The file `weights` of the network called `title` and the file `clip` of the CLIP `clip_title`, joined.

    `is_clip` tells of an entry whether CLIP's file has it, `rename` gives CLIP's tensors the network's names,
    `constants` are entries that are known or that inference never reads: they may be missing or have another shape.
    `note` says what published files hold.
    """

    title: str
    clip_title: str
    weights: Path
    clip: Path | None
    is_clip: Callable[[str], bool]
    rename: Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
    constants: Callable[[str, Tensor], Tensor | None] = lambda name, wanted: None
    note: str = ""

    def fill(self, network: Network, state: Mapping[str, Tensor]) -> Network:
        """The network, made on the meta device, with the entries of its file and those of CLIP that this lacks."""
        wanted = network.state_dict()
        known = {name: one for name, value in wanted.items() if (one := self.constants(name, value)) is not None}
        own = {name: value for name, value in state.items() if name not in known or value.shape == known[name].shape}
        of_clip = self._read_clip([name for name in wanted if name not in known], own)
        # What the network trained of CLIP is not CLIP's own any more: it must be in the network's file.
        of_clip = {name: value for name, value in of_clip.items() if name not in wanted or self.is_clip(name)}
        complete = {**known, **of_clip, **own}
        if found := check_keys(network, complete):
            self._refuse(found, own)
        check_types(network, own, file=self.weights)
        check_types(network, of_clip, file=self.clip or self.weights)
        network.load_state_dict(
            {name: value.float() if value.is_floating_point() else value for name, value in complete.items()},
            assign=True,
        )
        return network.eval().requires_grad_(False)

    def _read_clip(self, wanted: Sequence[str], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        of_clip = [name for name in wanted if self.is_clip(name)]
        missing = [name for name in of_clip if name not in own]
        if not missing:
            return {}
        if self.clip is None:
            what = (
                f"the file holds no weights of CLIP{self.note}"
                if len(missing) == len(of_clip)
                else f"the file lacks {len(missing)} of the {len(of_clip)} weights of CLIP, such as {missing[0]}"
            )
            raise ModelError(
                what,
                file=self.weights,
                remedy=f"--model-arg clip=FILE: the weights of {self.clip_title}, .safetensors or .bin",
            )
        given = read_state(self.clip)
        return self.rename({name: value for name, value in given.items() if name not in NOT_WEIGHTS})

    def _refuse(self, found: KeyDifferences, own: Mapping[str, Tensor]) -> None:
        """Raise an error for the file that an entry was, or had to be, in."""

        def select(keys: tuple[str, ...], of_clip: bool) -> tuple[str, ...]:
            return tuple(
                key
                for key in keys
                if (self.is_clip(key) and (self.clip is None or key.partition(" ")[0] not in own)) == of_clip
            )

        for file, of_clip in ((self.clip or self.weights, True), (self.weights, False)):
            groups = (found.missing, found.unexpected, found.misshapen)
            if differences := KeyDifferences(*(select(keys, of_clip) for keys in groups)):
                title = f"the CLIP {self.clip_title.rpartition(' ')[2]}" if of_clip else self.title
                source = self.clip_title if of_clip else f"the authors of {self.title}"
                raise ModelError(
                    f"the weights are none of {title}: {differences}", file=file, remedy=f"give a file of {source}"
                )


def find_size(state: Mapping[str, Tensor], keys: Mapping[str, int], sizes: Mapping[str, tuple[int, ...]],
              *, title: str, file: Path) -> str:  # fmt: skip
    """The name of the size whose lengths are those of the entries `keys`, each along the axis given with it."""
    if missing := [key for key, axis in keys.items() if key not in state or state[key].ndim <= axis]:
        remedy = f"give the file of the authors of {title} as weights; a CLIP alone is given as clip=FILE"
        raise ModelError(f"the file has no {missing[0]}: not one of {title}", file=file, remedy=remedy)
    lengths = tuple(state[key].shape[axis] for key, axis in keys.items())
    name = next((name for name, own in sizes.items() if own == lengths), None)
    if name is None:
        raise ModelError(
            f"no CLIP has {lengths[0]} channels and vectors of {lengths[1]}",
            file=file,
            remedy=f"give a published file of {title}: {', '.join(sizes)}",
        )
    return name


def build_seeded(build: Callable[[str], Network], size: str, sizes: Mapping[str, Any], seed: int,
                 title: str) -> Network:  # fmt: skip
    """The network of that size with random parameters of a seed."""
    if size not in sizes:
        raise OptionError(f"there is no {size!r} for {title}", remedy=f"one of {', '.join(sizes)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(size).eval().requires_grad_(False)
