"""The part of an analysis' page that is about senses: words of several meanings, and the two variants of a set."""

from __future__ import annotations

from hardlook.commands.similarity.study import Study
from hardlook.contract.sections import Block, Section, Table
from hardlook.labels.polysemy import PolysemyCase
from hardlook.labels.variant_changes import MOST_A_LABEL

MOST_CASES = 30
MOST_SHARED = 40
LONGEST = 80


def polysemy_section(study: Study) -> Section | None:
    """Labels whose word has several senses, and labels that share a word; None where there are neither."""
    cases, measure = study.polysemy, study.analysis.wordnet_measure
    blocks: list[Block] = []
    sentences = []
    if cases:
        later = sum(case.rank is not None and case.rank > 1 for case in cases)
        strange = sum(case.rank is None for case in cases)
        sentences.append(
            f"{len(cases)} of {len(study.analysis.labels)} labels have a word with other noun senses in WordNet. For "
            f"{later} of them the right sense is not the first, which a lookup would take."
        )
        if strange:
            sentences.append(f"For {strange} more it is a synset that WordNet lists under other words.")
        rows = [
            (
                case.label,
                _sense(case.chosen, case.gloss, _rank(case)),
                _sense(case.others[0].synset, case.others[0].gloss),
                case.others[0].mean_change,
                f"{_near(case.nearest)}, then {_near(case.others[0].nearest)}",
            )
            for case in cases[:MOST_CASES]
        ]
        more = f" The {MOST_CASES} that would move most, of {len(cases)}." if len(cases) > MOST_CASES else ""
        blocks.append(
            Table(
                "If another sense were chosen",
                "The chosen sense of a label, with its place among the senses of its word, and the other sense that "
                f"would move its similarities ({measure}) most: by how much on average over all labels, and which "
                f"label is nearest now and would be then.{more}",
                ("label", "chosen sense", "other sense", "mean change", "nearest"),
                rows,
            )
        )
    if study.shared:
        matrices = study.analysis.matrices
        sentences.append(
            f"{len(study.shared)} pairs of labels share a word but not a sense, like crane (the bird) and crane (the "
            "machine). Measures over WordNet tell them apart; measures on words see the wording alone."
        )
        shown = study.shared[:MOST_SHARED]
        more = f" The first {MOST_SHARED} of {len(study.shared)}." if len(study.shared) > MOST_SHARED else ""
        blocks.append(
            Table(
                "Labels that share a word",
                f"Names and aliases count. Similarity of the two under each measure.{more}",
                ("word", "label", "and", *matrices),
                [
                    (one.word, _owner(one.first), _owner(one.second), *(float(s[one.rows]) for s in matrices.values()))
                    for one in shown
                ],
                decimals=2,
            )
        )
    return Section("Words of several senses", " ".join(sentences), tuple(blocks)) if blocks else None


def variants_section(study: Study) -> Section | None:
    """What the corrected senses change; None for a set without published ones."""
    found = study.variants
    if found is None:
        return None
    reasons = {one.label: one.reason for one in found.differences}
    rows = [
        (
            pair.first,
            pair.second,
            pair.published,
            pair.corrected,
            pair.corrected - pair.published,
            "; ".join(f"{name}: {reasons[name]}" for name in (pair.first, pair.second) if name in reasons),
        )
        for pair in found.largest
    ]
    missing = f" {len(found.without)} labels without a published sense are left out." if found.without else ""
    text = (
        f"{len(found.differences)} labels have another sense in the variant `corrected` than in `published`. Under "
        f"{found.measure} this changes {found.changed} of {found.pairs} pairs, by {found.mean_change:.4f} on average "
        f"over all of them.{missing}"
    )
    table = Table(
        "The pairs that change most",
        f"Each label with a changed sense at most {MOST_A_LABEL} times.",
        ("label", "and", "published", "corrected", "change", "why"),
        rows,
    )
    return Section("Published and corrected senses", text, (table,))


def _sense(name: str, gloss: str, rank: str = "") -> str:
    definition = gloss.split('; "')[0].replace("`", "'")
    short = definition if len(definition) <= LONGEST else definition[: LONGEST - 3].rsplit(" ", 1)[0] + "..."
    return f"`{name}`{rank}: {short}"


def _rank(case: PolysemyCase) -> str:
    return "" if case.rank is None else f" ({case.rank} of {case.senses})"


def _near(near: tuple[str, float]) -> str:
    return f"{near[0]} ({near[1]:.2f})"


def _owner(owner: tuple[str, str | None]) -> str:
    return f"{owner[0]} `{owner[1]}`" if owner[1] else owner[0]
