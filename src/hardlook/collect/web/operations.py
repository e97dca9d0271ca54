"""The API as a table: address, what is sent, what is done, what comes back; routes and description are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from hardlook.collect.web import answers, participating, replies
from hardlook.collect.web.bodies import AnswerBody, DeviceBody, EmptyBody, LanguageBody, TrainingBody

SHOWN = (replies.ShownClick, replies.ShownReview, replies.ShownRating)


@dataclass(frozen=True)
class Operation:
    """One thing that a participant's page can ask; `body` is None for a GET, and `act` is called with what it is."""

    name: str
    path: str
    summary: str
    act: Callable[..., Mapping[str, Any]]
    body: type[BaseModel] | None
    replies: tuple[Any, ...]

    @property
    def method(self) -> str:
        """GET or POST."""
        return "POST" if self.body else "GET"


OPERATIONS = (
    Operation("state", "/api/state", "Where the participant stands", participating.state, None, (replies.State,)),
    Operation(
        "language", "/api/language", "Change the language", participating.language, LanguageBody, (replies.Language,)
    ),
    Operation("device", "/api/device", "Say which device is used", participating.device, DeviceBody, (replies.Device,)),
    Operation(
        "trained", "/api/trained", "End the training round", participating.trained, EmptyBody, (replies.Trained,)
    ),
    Operation("pause", "/api/pause", "Give a sign of life", participating.pause, EmptyBody, (replies.Paused,)),
    Operation(
        "batch", "/api/batch", "Get the open batch or a new one", participating.batch, EmptyBody, (replies.BatchReply,)
    ),
    Operation("show", "/api/trials/{trial}/show", "Begin a trial", answers.show, EmptyBody, SHOWN),
    Operation("answer", "/api/answers", "Store an answer", answers.answer, AnswerBody, (replies.Stored,)),
    Operation(
        "training", "/api/training", "Judge a training answer", answers.training, TrainingBody, (replies.Training,)
    ),
)
