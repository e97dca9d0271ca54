"""The two files of a run that a leaderboard reads, checked as far as it relies on them.

>>> problem({"benchmark": {"name": "toss"}, "model": None, "options": {}, "answers": 3})
'answers is no object'
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.errors import RunError
from hardlook.runs.folder import RunFolder

SCORE_AGAIN = "`hardlook score` makes it anew"
NO_MANIFEST = "put back its run.json, or run it again"


@dataclass(frozen=True)
class GatheredRun:
    """A run as its two files tell it; `folder` is relative to where the search began."""

    folder: str
    manifest: Mapping[str, Any]
    scorecard: Scorecard

    @property
    def date(self) -> str:
        """The day on which it began, UTC."""
        return str(self.manifest["created"])[:10]


def read_manifest(run: RunFolder) -> dict[str, Any]:
    """The content of `run.json`; an error says what is wrong with it."""
    try:
        manifest = run.read_manifest()
    except RunError as error:
        raise RunError(error.what, file=error.file, remedy=error.remedy or NO_MANIFEST) from None
    except OSError as error:
        raise RunError(f"run.json cannot be read ({error.strerror})", file=run.manifest_path) from None
    if (wrong := problem(manifest)) or (wrong := _stray_letters(manifest)):
        raise RunError(f"run.json cannot be used: {wrong}", file=run.manifest_path, remedy=NO_MANIFEST)
    return manifest


def read_scorecard(run: RunFolder) -> Scorecard:
    """The content of `scores.json`, infinite values as undefined ones; an error says what is wrong with it."""
    path = run.scores_path
    try:
        text = path.read_text(encoding="utf-8")
        scorecard = Scorecard.from_json(text)
        wrong = _stray_letters(json.loads(text)) if "\\ud" in text.lower() else ""
        wrong = wrong or next(filter(None, map(_score_problem, scorecard.scores)), "") or _count_problem(scorecard)
    except FileNotFoundError:
        why = "not scored yet: there is no scores.json"
        raise RunError(why, remedy="finish the run, or score what it has by `hardlook score`") from None
    except OSError as error:
        raise RunError(f"scores.json cannot be read ({error.strerror})", file=path) from None
    except KeyError as error:
        raise RunError(f"scores.json cannot be read (it lacks {error})", file=path, remedy=SCORE_AGAIN) from None
    except json.JSONDecodeError as error:
        raise RunError(f"scores.json is not valid JSON ({error})", file=path, remedy=SCORE_AGAIN) from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"scores.json cannot be read ({error})", file=path, remedy=SCORE_AGAIN) from None
    if wrong:
        raise RunError(f"scores.json cannot be read ({wrong})", file=path, remedy=SCORE_AGAIN)
    return replace(scorecard, scores=tuple(map(_defined, scorecard.scores)))


def problem(manifest: Mapping[str, Any]) -> str:
    """What a leaderboard could not work with; empty where all is well."""
    objects = {name: manifest[name] for name in ("benchmark", "options", "answers")}
    objects["parts of answers"] = manifest["answers"].get("parts", {}) if isinstance(manifest["answers"], dict) else {}
    objects["model"] = manifest["model"] or {}
    for name, value in objects.items():
        if not isinstance(value, dict):
            return f"{name} is no object"
    if not isinstance(objects["model"].get("args", {}), dict):
        return "the model's args are no object"
    return "" if isinstance(manifest["benchmark"].get("name"), str) else "the benchmark has no name"


def _score_problem(score: Score) -> str:
    bounds = (score.interval.low, score.interval.high) if score.interval else ()
    texts = (score.name, score.reading, score.comparable)
    if not all(_is_number(one) for one in (score.value, score.n, *bounds)) or not all(
        isinstance(t, str) for t in texts
    ):
        return f"score {score.name!r} is not made of numbers and texts"
    whole = isinstance(score.slice, dict) and all(isinstance(value, str) for value in score.slice.values())
    return "" if whole else f"the slice of score {score.name!r} is not made of texts"


def _count_problem(scorecard: Scorecard) -> str:
    units = scorecard.units
    counts = all(isinstance(count, int) for count in (units.planned, units.scored, units.failed))
    return "" if counts and isinstance(scorecard.model, str) else "the units are not counted, or the model has no name"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stray_letters(value: Any) -> str:
    """JSON can hold halves of letters, which no file can be written with."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "a text in it is not Unicode"
    return ""


def _defined(score: Score) -> Score:
    return score if math.isfinite(score.value) else replace(score, value=math.nan, interval=None)
