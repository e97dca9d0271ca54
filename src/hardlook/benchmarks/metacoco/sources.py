"""What answers depend on besides the learner and the options: the images, the rule that split them, the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from hardlook.benchmarks.metacoco.images import source_of
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.fingerprint import of_sources, of_value
from hardlook.models.inner_model import build_inner
from hardlook.models.registry import find
from hardlook.models.sources import sources_of

RULES = ("size", "seed")


def sources(options: MetaCocoOptions) -> Mapping[str, Path | str]:
    """Paths, and fingerprints of what no path leads to, by name.

    >>> sorted(sources(MetaCocoOptions()))
    ['encoder model', 'planted world']
    """
    given: dict[str, Path | str] = dict(options.data)
    # A manifest's images lie anywhere, and a rule may move classes: the opened table is what tasks come from.
    given["images" if given else "planted world"] = source_of(options).fingerprint
    if options.split_rule is not None and options.split_rule not in RULES:
        given["split_rule"] = Path(options.split_rule).expanduser()
    given["encoder model"] = _encoder(options)
    return given


def _encoder(options: MetaCocoOptions) -> str:
    """The identity of the encoder; the usual one is not built, since a learner on images does without it.

    Its code names its weights by their hashes, so that the code is identity enough.
    """
    if options.encoder_asked:
        return build_inner(options.encoder_name(), "encoder", options.encoder_args).whole_fingerprint()
    usual = find(options.encoder_name())
    return of_value([usual.card.name, of_sources(sources_of(cast("type", usual.factory())))])
