"""Which images tasks are drawn from, said in names from which any process opens the same ones.

>>> source = ImageSource("PACS", None, "all", 0, (), (), 480)
>>> source.whole, source.split_in(("train", "test"))
(True, None)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.data.concept_context import ConceptContextDataset
from hardlook.errors import DataError, OptionError

ALL = "all"


@dataclass(frozen=True)
class ImageSource:
    """Small, hashable, picklable; an empty `path` is the planted world.

    `keep` and `drop` are contexts. `without` names images that are left out since another split has them too.
    `fingerprint` is that of the images as they were when tasks were listed: opening others is an error.
    """

    path: str
    rule: str | None
    split: str | None
    seed: int
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    scenes: int
    without: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def whole(self) -> bool:
        """Whether every image is asked about, whatever its split."""
        return self.split == ALL

    def split_in(self, splits: Sequence[str]) -> str | None:
        """The split to test on out of those there are; None for all images."""
        return None if self.whole else self.split or ("test" if "test" in splits else None)


def asked_source(options: MetaCocoOptions) -> ImageSource:
    """What the options say about images; nothing is read."""
    if options.data and set(options.data) != {"root"}:
        raise OptionError(
            f"--data {', '.join(sorted(options.data))}: MetaCoCo reads one dataset",
            remedy="give --data root=DIR (split/concept/context/image or concept/context/image) or a manifest",
        )
    return ImageSource(
        str(options.data.get("root", "")),
        options.split_rule,
        options.split,
        options.seed,
        options.test_contexts,
        options.train_contexts,
        options.scenes,
    )


def images_in_two_splits(dataset: ConceptContextDataset, source: ImageSource) -> tuple[str, ...]:
    """Names of images of the tested split whose content another split has too; classes in two splits are refused.

    Where all splits are asked about together nothing is held out, and nothing is checked.
    """
    tested = source.split_in(dataset.splits)
    if tested is None or not dataset.splits:
        return ()
    shared = dataset.shared_concepts()
    if shared:
        named = "; ".join(f"{concept} ({', '.join(splits)})" for concept, splits in shared.items())
        raise DataError(
            f"classes of the splits must differ, and {len(shared)} are in several: {named}",
            file=dataset.source,
            remedy="--split-rule size, seed or a CSV file splits by class; --split all takes every image as one split",
        )
    across = {row.name for group in dataset.duplicates().across for row in group if row.split == tested}
    return tuple(sorted(across))
