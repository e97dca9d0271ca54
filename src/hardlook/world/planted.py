"""A planted world: a sequence of scenes in which every concept occurs in every context equally often.

>>> world = PlantedWorld(seed=0, count=96)
>>> len(world), len({(world.concept(i), world.context(i)) for i in range(96)})
(96, 96)
>>> biased = PlantedWorld(seed=0, count=96, correlation=1.0)
>>> all(biased.context(i) == FAVOURITE_CONTEXTS[biased.concept(i)] for i in range(96))
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache

from hardlook import fingerprints
from hardlook.errors import OptionError
from hardlook.randomness import generator
from hardlook.world.render import RenderedScene, render_scene
from hardlook.world.scene import DEFAULT_SIZE, Scene, describe_scene
from hardlook.world.vocabulary import CONCEPTS, CONTEXTS

VERSION = 1  # to be increased when the images of a seed change

# The context of each concept when concept and context are correlated; siblings differ.
FAVOURITE_CONTEXTS: dict[str, str] = {
    "cat": "dusk", "dog": "meadow", "car": "street", "bus": "fog", "house": "winter", "barn": "meadow",
    "apple": "autumn", "pear": "dusk", "cup": "winter", "bottle": "beach", "duck": "fog", "owl": "night",
}  # fmt: skip

_CELLS = len(CONCEPTS) * len(CONTEXTS)
MAX_CACHED_PIXELS = 160 * 120  # larger scenes are not cached
_SceneOptions = tuple[int, int, str, str, bool, int | None, tuple[int, int]]


@dataclass(frozen=True)
class PlantedWorld:
    """`count` scenes of `size` (width, height); `world[i]` renders the i-th.

    Without correlation each block of 96 scenes holds every concept in every context once, and each row of 12 every
    concept once; half of each concept's scenes have a salient subject. With `correlation` in [0, 1] a scene takes
    its concept's favourite context with that probability. `salient` and `distractors`, where given, hold for all.
    """

    seed: int = 0
    count: int = _CELLS
    size: tuple[int, int] = DEFAULT_SIZE
    correlation: float = 0.0
    salient: bool | None = None
    distractors: int | None = None

    def __post_init__(self) -> None:
        if self.count < 0 or not 0 <= self.correlation <= 1:
            raise OptionError(
                f"count {self.count} or correlation {self.correlation} is out of range",
                remedy="give a count of at least 0 and a correlation from 0 to 1",
            )

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> RenderedScene:
        width, height = self.size
        if width * height > MAX_CACHED_PIXELS:
            return render_scene(self.scene(index))
        kept = _render_cached(*self._scene_options(index))
        # Copies, so that callers may modify the arrays.
        own = kept.image.copy(), kept.classes.copy(), kept.instances.copy()
        return RenderedScene(kept.scene, *own, kept.salient.copy())

    def __iter__(self) -> Iterator[RenderedScene]:
        return (self[index] for index in range(self.count))

    def concept(self, index: int) -> str:
        """The concept that scene `index` is about."""
        return CONCEPTS[self._cell(index)[0]].name

    def context(self, index: int) -> str:
        """Where scene `index` takes place."""
        if generator(self.seed, "world", "correlation", self._position(index)).random() < self.correlation:
            return FAVOURITE_CONTEXTS[self.concept(index)]
        return CONTEXTS[self._cell(index)[1]].name

    def is_salient(self, index: int) -> bool:
        """Whether the subject of scene `index` is salient: half of each concept's contexts, alternating by block."""
        if self.salient is not None:
            return self.salient
        concept, context = self._cell(index)
        block = self._position(index) // _CELLS
        order = generator(self.seed, "world", "salient", block // 2, concept).permutation(len(CONTEXTS))
        return bool((order[context] < len(CONTEXTS) // 2) ^ (block % 2))

    def scene(self, index: int) -> Scene:
        """The description of scene `index`."""
        return describe_scene(*self._scene_options(index))

    def fingerprint(self) -> str:
        """A short hash of the generator's version and all options."""
        return fingerprints.hash_value({"planted world": VERSION, **asdict(self)})

    def _scene_options(self, index: int) -> _SceneOptions:
        concept, context, salient = self.concept(index), self.context(index), self.is_salient(index)
        return self.seed, self._position(index), concept, context, salient, self.distractors, self.size

    def _position(self, index: int) -> int:
        if not -self.count <= index < self.count:
            raise IndexError(f"scene {index} of a world with {self.count} scenes")
        return index % self.count

    def _cell(self, index: int) -> tuple[int, int]:
        """Concept and context positions: a Latin rectangle per block, shuffled row by row."""
        block, cell = divmod(self._position(index), _CELLS)
        row, column = divmod(cell, len(CONCEPTS))
        concepts = generator(self.seed, "world", "concepts", block).permutation(len(CONCEPTS))
        contexts = generator(self.seed, "world", "contexts", block).permutation(len(CONTEXTS))
        place = int(generator(self.seed, "world", "row", block, row).permutation(len(CONCEPTS))[column])
        return int(concepts[place]), int(contexts[(place + row) % len(CONTEXTS)])


# A run, its report and its calibration use the same scenes; 256 of the default size take 30 MB.
@lru_cache(maxsize=256)
def _render_cached(*options: *_SceneOptions) -> RenderedScene:
    return render_scene(describe_scene(*options))
