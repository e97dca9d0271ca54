"""Where the images of a run come from, what their pairs share, and what they are known by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hardlook import fingerprint
from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions
from hardlook.benchmarks.one_shot_pairs.pairs import PairSettings
from hardlook.benchmarks.one_shot_pairs.planted_pairs import planted_world
from hardlook.data.class_masks import ClassMasks, open_class_masks, open_coco, open_fss
from hardlook.data.toss_pairs import list_pair_files
from hardlook.errors import OptionError

KNOWN = ({"voc"}, {"voc", "binary"}, {"images", "masks"}, {"images", "binary"}, {"coco"})
WANTED = "give voc=DIR, coco=DIR, or images=DIR with masks=DIR and --labels FILE; fss=DIR for tier 3"


def sources_of(options: OneShotOptions) -> Mapping[str, Path | str]:
    """What the pairs come from, by name.

    Pair lists are hashed whole: one support changed in the middle of a list is another benchmark.
    """
    given: dict[str, Path | str] = dict(options.data)
    if "pairs" in options.data:
        listed = list_pair_files(options.data["pairs"])
        given["pairs"] = fingerprint.of_value([[file.name, fingerprint.of_file(file.path)] for file in listed])
    if options.pred is not None:
        given["pred"] = options.pred
    if options.labels is not None:
        given["labels"] = Path(options.labels)
    return given or {"planted world": planted_world(options).fingerprint()}


def open_sources(options: OneShotOptions) -> dict[str, ClassMasks]:
    """The images and masks that are given: `fss` for tier 3, `main` for all else; an error where there are none."""
    given = {name: path for name, path in options.data.items() if name != "pairs"}
    main = {name: path for name, path in given.items() if name != "fss"}
    if not given:
        raise OptionError("the lists of pairs are given, and no images", remedy=f"beside pairs {WANTED}")
    if main and set(main) not in KNOWN:
        names = ", ".join(sorted(main))
        raise OptionError(f"--data {names}: these names together are no source of images", remedy=WANTED)
    found: dict[str, ClassMasks] = {}
    if "coco" in main:
        found["main"] = open_coco(main["coco"])
    elif main:
        found["main"] = open_class_masks(main, labels=Path(options.labels) if options.labels else None)
    if "fss" in given:
        found["fss"] = open_fss(given["fss"])
    return found


def open_source(options: OneShotOptions) -> ClassMasks:
    """The one source of a study that draws its own pairs."""
    sources = open_sources(options)
    return sources.get("main") or sources["fss"]


def settings_of(options: OneShotOptions, source: ClassMasks, listing: str) -> PairSettings:
    """What the pairs of one list share."""
    return PairSettings(
        source,
        key=fingerprint.of_value({name: str(path) for name, path in source.paths().items()} or repr(source)),
        listing=listing,
        size=0 if options.size == "original" else int(options.size),
        seed=options.seed,
        keep_prediction=options.keep_predictions,
        predictions=options.pred,
    )
