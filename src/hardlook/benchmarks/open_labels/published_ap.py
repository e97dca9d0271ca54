"""Published AP of the open metrics' paper, for leaderboards: vanilla, dagger and open, as fractions of 1.

Values are as printed. In Table 9 the open score of RegionCLIP over all classes (53.9) does not fit its base and novel
ones (61.6 and 33.6 average to 54.3).

>>> len(PUBLISHED_AP), PUBLISHED_AP[0].method, PUBLISHED_AP[0].values["open-ap"]
(23, 'ODISE', 0.143)
"""

from __future__ import annotations

from hardlook.contract.published import PublishedResult

Kinds = tuple[float, float, float]
_NAMES = ("", "dagger-", "open-")
_NOTE = "comparable with a run on the dataset's whole validation set with --variant published and --measure path"
# Method, then vanilla, dagger and open of each quantity, in percent.
TABLE_7: dict[str, dict[str, Kinds]] = {
    "ODISE": {
        "ap": (14.0, 12.7, 14.3),
        "ap50": (23.4, 20.9, 23.7),
        "ap75": (13.9, 12.7, 14.2),
        "aps": (3.3, 2.8, 3.8),
        "apm": (16.2, 14.5, 16.4),
        "apl": (27.6, 25.3, 27.3),
    },
    "FC-CLIP": {
        "ap": (16.8, 15.8, 17.1),
        "ap50": (27.4, 25.5, 27.8),
        "ap75": (17.2, 16.3, 17.4),
        "aps": (5.7, 5.4, 6.1),
        "apm": (19.9, 18.7, 20.0),
        "apl": (29.7, 27.7, 29.2),
    },
}
_CONSTRAINED_BASE, _CONSTRAINED_NOVEL = "constrained, base", "constrained, novel"
_BASE, _NOVEL, _ALL = "generalised, base", "generalised, novel", "generalised, all"
# Tables 8 (masks) and 9 (boxes) print AP50 on COCO's 48 base and 17 novel classes.
TABLE_8: dict[str, dict[str, Kinds]] = {
    "CGG": {
        _CONSTRAINED_BASE: (46.2, 44.2, 45.2),
        _CONSTRAINED_NOVEL: (29.5, 28.9, 30.0),
        _BASE: (46.0, 43.6, 44.8),
        _NOVEL: (28.1, 26.4, 28.7),
        _ALL: (41.4, 39.1, 40.6),
    },
}
TABLE_9: dict[str, dict[str, Kinds]] = {
    "CGG": {
        _CONSTRAINED_BASE: (46.0, 44.3, 45.3),
        _CONSTRAINED_NOVEL: (30.4, 29.4, 30.6),
        _BASE: (45.9, 43.6, 44.9),
        _NOVEL: (28.9, 26.9, 29.1),
        _ALL: (41.4, 39.2, 40.8),
    },
    "RegionCLIP": {
        _CONSTRAINED_BASE: (62.1, 61.0, 61.6),
        _CONSTRAINED_NOVEL: (42.9, 39.8, 40.6),
        _BASE: (61.7, 60.3, 61.6),
        _NOVEL: (39.3, 30.1, 33.6),
        _ALL: (55.9, 52.4, 53.9),
    },
    "Rasheed et al.": {
        _BASE: (56.7, 54.8, 55.8),
        _NOVEL: (40.5, 36.9, 38.7),
        _ALL: (52.5, 50.1, 51.3),
    },
    "CORA": {_BASE: (44.7, 42.2, 43.6), _NOVEL: (41.5, 37.9, 39.8), _ALL: (43.9, 41.1, 42.6)},
}


def _named(quantity: str, values: Kinds) -> dict[str, float]:
    return {prefix + quantity: round(value / 100, 6) for prefix, value in zip(_NAMES, values, strict=True)}


_MASKS = tuple(
    PublishedResult(
        method,
        "Table 7, A-150, masks",
        {name: value for quantity, kinds in rows.items() for name, value in _named(quantity, kinds).items()},
        _NOTE,
        {"dataset": "A-150", "iou": "segm"},
    )
    for method, rows in TABLE_7.items()
)
_BASE_AND_NOVEL = tuple(
    PublishedResult(
        method,
        f"{source}, {setting}",
        _named("ap50", values),
        _NOTE,
        {"dataset": "COCO", "iou": iou, **dict(zip(("setting", "classes"), setting.split(", "), strict=True))},
    )
    for source, iou, methods in (
        ("Table 8, COCO 48/17, masks", "segm", TABLE_8),
        ("Table 9, COCO 48/17, boxes", "bbox", TABLE_9),
    )
    for method, settings in methods.items()
    for setting, values in settings.items()
)
PUBLISHED_AP = (*_MASKS, *_BASE_AND_NOVEL)
