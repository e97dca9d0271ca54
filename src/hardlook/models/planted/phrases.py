"""Planted segmenters that answer in words of their own: synonyms, hypernyms and misspellings of the true names.

They perceive what the planted segmenters of `segmenters` do, with the same faults from the same draws; only the words
are theirs. With synonyms alone, an open score is that of the labels; hypernyms lower it, the further up the more.

>>> import numpy as np
>>> from hardlook.world.signature import write_signature
>>> classes = np.full((16, 16), 13, np.uint8)
>>> classes[4:12, 2:10] = 1
>>> picture = write_signature(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> for dials in ({}, {"hypernym": 1.0, "steps": 2}, {"misspelled": 1.0}, {"sibling": 1.0}):
...     [answer] = PlantedPhraseSegmenter(**dials).segment([picture])
...     answer.phrases, answer.answer[0, 0].item(), answer.answer[8, 8].item()
(('the sky', 'a true cat'), 0, 1)
(('the sky', 'a carnivore'), 0, 1)
(('the sky', 'a ccat'), 0, 1)
(('the sky', 'a domestic dog'), 0, 1)
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from hardlook.errors import ModelError
from hardlook.fingerprints import hash_array
from hardlook.models.planted.dials import check_dials, draw
from hardlook.models.planted.segmenters import (
    INSTANCES_NAME,
    PANOPTIC_NAME,
    SEGMENTER_NAME,
    Faults,
    Perceived,
    Thing,
    find_segments,
    list_detections,
    make_instances,
    perceive,
)
from hardlook.models.roles import Image, PhrasedAnswer, Segments
from hardlook.world.vocabulary import BY_CODE, VOID

MAX_STEPS = 3


@cache
def read_planted_phrases() -> Mapping[str, tuple[str, ...]]:
    """For each concept of the planted world a phrase that means it, then phrases for its hypernyms, nearest first."""
    text = files("hardlook.models.planted").joinpath("phrases.csv").read_text(encoding="utf-8")
    return {row[0]: tuple(row[1:]) for row in list(csv.reader(text.splitlines()))[1:]}


class _PhraseSegmenter:
    """Base of the models with free words.

    `hypernym`, `misspelled`: shares of objects called by the hypernym `steps` (1 to 3) above, or by a word that does
    not exist; the others are called by a synonym. `sibling`, `stranger`, `ragged`, `missed` as for the planted models
    with labels.
    """

    free_words = True
    labels: Sequence[str] = ()
    things: Sequence[bool] = ()
    name = ""

    def __init__(
        self,
        hypernym: float = 0.0,
        misspelled: float = 0.0,
        steps: int = 1,
        sibling: float = 0.0,
        stranger: float = 0.0,
        ragged: float = 0.0,
        missed: float = 0.0,
        seed: int = 0,
    ) -> None:
        check_dials(hypernym=hypernym, misspelled=misspelled)
        if hypernym + misspelled > 1 + 1e-9:
            what = f"hypernym={hypernym} and misspelled={misspelled} are shares of the same objects"
            raise ModelError(what, remedy="their sum goes up to 1")
        if not 1 <= steps <= MAX_STEPS:
            raise ModelError(f"steps={steps}: there are hypernyms for 1 to {MAX_STEPS} steps", remedy="steps=1")
        self.hypernym, self.misspelled, self.steps = hypernym, misspelled, steps
        self.faults = Faults(sibling=sibling, stranger=stranger, ragged=ragged, missed=missed)
        self.seed = seed

    def _perceive(self, image: Image) -> Perceived:
        return perceive(image, self.faults, self.name, self.seed)

    def _name_things(self, image: Image, things: Sequence[Thing]) -> list[str]:
        """What each object is called; the same whatever the others are."""
        key = hash_array(image)
        return [
            self._choose_phrase(
                BY_CODE[thing.called].name,
                draw(self.seed, self.name, key, thing.true, thing.instance, "phrase"),
            )
            for thing in things
        ]

    def _choose_phrase(self, name: str, drawn: float) -> str:
        if drawn < self.misspelled:
            return f"a {name[0]}{name}"
        phrases = read_planted_phrases()[name]
        return phrases[self.steps] if drawn < self.misspelled + self.hypernym else phrases[0]


class PlantedPhraseSegmenter(_PhraseSegmenter):
    """Names every pixel by the picture's signature, in words of its own."""

    name = SEGMENTER_NAME

    def segment(self, images: Sequence[Image]) -> list[PhrasedAnswer]:
        """One label map (H, W) int32 with its phrases per image; -1 for void."""
        return [self._segment(image) for image in images]

    def _segment(self, image: Image) -> PhrasedAnswer:
        perceived = self._perceive(image)
        stuff = np.where(perceived.owner == 0, perceived.codes, VOID)
        codes = [int(code) for code in np.unique(stuff) if code != VOID]
        phrases = [f"the {BY_CODE[code].name}" for code in codes]
        label_map = np.full(stuff.shape, -1, np.int32)
        for place, code in enumerate(codes):
            label_map[stuff == code] = place
        phrases += self._name_things(image, perceived.things)
        drawn = perceived.owner > 0
        label_map[drawn] = perceived.owner[drawn] - 1 + len(codes)
        return PhrasedAnswer(label_map, tuple(phrases))


class PlantedPhraseInstances(_PhraseSegmenter):
    """Finds the objects of the picture's signature, and names them in words of its own."""

    name = INSTANCES_NAME

    def detect(self, images: Sequence[Image]) -> list[PhrasedAnswer]:
        """One `Instances` with its phrases per image."""
        return [self._detect(image) for image in images]

    def _detect(self, image: Image) -> PhrasedAnswer:
        rows = list_detections(image, self._perceive(image), self.seed)
        phrases = self._name_things(image, [thing for _, thing, _ in rows])
        return PhrasedAnswer(make_instances(image, rows, range(len(rows))), tuple(phrases))


class PlantedPhrasePanoptic(_PhraseSegmenter):
    """Finds the objects and the stuff of the picture's signature, and names them in words of its own."""

    name = PANOPTIC_NAME

    def segment_panoptic(self, images: Sequence[Image]) -> list[PhrasedAnswer]:
        """One `Segments` with its phrases, and which of them are countable, per image."""
        return [self._segment(image) for image in images]

    def _segment(self, image: Image) -> PhrasedAnswer:
        segments, things, codes = find_segments(self._perceive(image))
        phrases = [*self._name_things(image, things), *(f"the {BY_CODE[code].name}" for code in codes)]
        labels = {segment + 1: segment for segment in range(len(phrases))}
        countable = (True,) * len(things) + (False,) * len(codes)
        return PhrasedAnswer(Segments(segments, labels), tuple(phrases), countable)
