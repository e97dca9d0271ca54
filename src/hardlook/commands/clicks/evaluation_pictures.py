"""Pictures of stems: people's clicks, each model's map with clicks drawn from it, and PC beside mobile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.clicks.clicked_stem import ClickedStem
from hardlook.clicks.evaluation import drawn_clicks
from hardlook.commands.clicks.judging import Judging, NamedClickModel, distribution_of
from hardlook.commands.clicks.map_colours import heat
from hardlook.contract.sections import Example, Gallery, Picture
from hardlook.errors import DataError
from hardlook.metrics.click_ks import fasano_franceschini
from hardlook.regions.close_ups import close_up
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.clicks.device_comparison import PairScores
    from hardlook.clicks.evaluation import StemScores
    from hardlook.commands.clicks.clicked_sources import ClickedSource
    from hardlook.commands.clicks.evaluation_study import EvaluationStudy

SHOWN = 4
DEVICES_SHOWN = 3
BESIDE = " (pc, mobile)"
ASKED = {"first": "the object", "fn": "what is missing", "fp": "what is too much"}


def model_galleries(study: EvaluationStudy) -> list[Gallery]:
    """Stems where the best model by KS fits best, where it fits worst, and where models differ most."""
    best = max(study.models, key=lambda name: study.overall[name].scores["ks"].value)
    rows = {name: study.judged.whole(name) for name in study.models}
    ks = np.array([[row.ks for row in found] for found in rows.values()])
    leading = ks[list(rows).index(best)]
    galleries = [
        (
            f"Where {best} fits",
            "Highest share of draws that pass for people's clicks.",
            np.argsort(-leading, kind="stable"),
        ),
        (f"Where {best} does not fit", "Lowest share of such draws.", np.argsort(leading, kind="stable")),
    ]
    if len(rows) > 1:
        order = np.argsort(-np.ptp(ks, axis=0), kind="stable")
        galleries.append(("Where models differ", "Largest difference between the shares of two models.", order))
    return [
        Gallery(title, caption, [_example(rows, place) for place in order[:SHOWN].tolist()])
        for title, caption, order in galleries
    ]


def device_gallery(pairs: Sequence[PairScores]) -> Gallery:
    """Stems whose two crowds are most and least alike."""
    order = sorted(pairs, key=lambda row: (not row.ks, -row.p if row.p == row.p else 1.0))
    chosen = list(dict.fromkeys([*order[:DEVICES_SHOWN], *order[-DEVICES_SHOWN:]]))
    examples = [
        Example(
            f"{row.dataset}/{row.full_stem}{BESIDE}",
            f"{row.clicks} clicks on a PC and {row.other_clicks} on a mobile device: "
            f"{_verdict(row.ks, row.p, row.why)}; PL1 {row.pl1:.2f}, WD {row.wd:.3f}.",
        )
        for row in chosen
    ]
    return Gallery("PC beside mobile", "The most alike first, then the least alike.", examples)


def evaluation_pictures(
    galleries: Sequence[Gallery],
    sources: Sequence[ClickedSource],
    models: Mapping[str, NamedClickModel],
    judging: Judging,
) -> dict[str, Sequence[Picture] | str]:
    """The pictures of every example, or the reason why there are none."""
    known = {source.key: source for source in sources}
    found: dict[str, Sequence[Picture] | str] = {}
    for unit in dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples):
        try:
            crowd = known[unit.removesuffix(BESIDE)].read()
        except DataError as error:
            found[unit] = str(error)
            continue
        if unit.endswith(BESIDE):
            parts = [part for part in map(crowd.on, ("pc", "mobile")) if part is not None]
            found[unit] = [_clicked(part, f"{part.device}: {counted(len(part.clicks), 'click')}") for part in parts]
        else:
            found[unit] = stem_pictures(crowd.stem, models, judging)
    return found


def stem_pictures(stem: ClickedStem, models: Mapping[str, NamedClickModel], judging: Judging) -> list[Picture]:
    """People's clicks on the region, then each model's map with the first draw and its verdict."""
    close = close_up(stem.error)
    pictures = [_clicked(stem, f"{len(stem.clicks)} people's clicks on {ASKED[stem.click_type]}")]
    for name, one in models.items():
        chances = distribution_of(stem, one.model)
        drawn = drawn_clicks(stem, chances, 1, judging.seed)[0]
        test = fasano_franceschini(drawn.astype(np.float64), stem.clicks)
        image = close.cut(heat(stem.image, chances.chances))
        label = f"{name}: {_verdict(test.passes, test.p, test.why)}"
        pictures.append(Picture(label, image, points=_dots(close.moved(drawn), stem.positive), ordered=False))
    return pictures


def _clicked(stem: ClickedStem, label: str) -> Picture:
    close = close_up(stem.error)
    return Picture(
        label,
        close.cut(stem.image),
        mask=close.cut(stem.error),
        points=_dots(close.moved(stem.clicks), stem.positive),
        ordered=False,
    )


def _example(rows: Mapping[str, Sequence[StemScores]], place: int) -> Example:
    row = next(iter(rows.values()))[place]
    shares = ", ".join(f"{name} {100 * found[place].ks:.0f} %" for name, found in rows.items())
    return Example(f"{row.dataset}/{row.full_stem}", f"Draws that pass for people's clicks: {shares}.")


def _dots(points: Sequence[Any], positive: bool) -> list[tuple[float, float, bool]]:
    return [(x, y, positive) for x, y in points]


def _verdict(passes: bool, p: float, why: str) -> str:
    if why:
        return "no test"
    return f"{'alike' if passes else 'told apart'} (p {p:.2f})"
