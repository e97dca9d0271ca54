"""The dashboard behind its routes: one study, its snapshots, pictures and export; a page is a template and values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardlook.collect.research import pages
from hardlook.collect.research.excluding import left_out, saved_rules
from hardlook.collect.research.export_job import ExportJob
from hardlook.collect.research.export_view import clock_time, export_view, start_export
from hardlook.collect.research.gallery_view import gallery_view
from hardlook.collect.research.image_view import image_view
from hardlook.collect.research.links_view import links_view, made_links
from hardlook.collect.research.overview_view import overview_view
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.participants_view import participants_view
from hardlook.collect.research.ratings_view import ratings_view
from hardlook.collect.research.refusals import Refused
from hardlook.collect.research.review_view import review_view
from hardlook.collect.research.rules_view import NUMBERS, rules_from, rules_view
from hardlook.collect.research.snapshot import Snapshot, Snapshots
from hardlook.collect.research.task_pictures import TaskPictures
from hardlook.collect.study.folder import Study

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

_VIEWS: Mapping[str, tuple[str, Callable[[Snapshot, Collection[str], Pairs], dict[str, Any]]]] = {
    "clicks": ("images.html", gallery_view),
    "review": ("review.html", review_view),
    "ratings": ("ratings.html", ratings_view),
}
_TASKS = {"clicks": "Images", "review": "Candidates", "ratings": "Ratings"}


@dataclass(frozen=True)
class Asking:
    """A request as the dashboard sees it: parameters or fields, the token for its forms, the address it came to."""

    pairs: Pairs
    form_token: str
    base_url: str
    task: str = ""


class Dashboard:
    """Makes pages; `clock` gives seconds since 1970."""

    def __init__(self, study: Study, store: Store, clock: Callable[[], float]) -> None:
        self.study, self.store, self.clock = study, store, clock
        self.snapshots = Snapshots(study, store, clock)
        self.pictures = TaskPictures(study)
        self.job = ExportJob(clock)
        rooms = {"": "Overview", "/participants": "Participants", "/images": _TASKS[study.settings.kind]}
        self.rooms = rooms | {"/rules": "Rules", "/export": "Export", "/links": "Links"}

    def overview(self, asking: Asking) -> str:
        """How far the study is."""
        Asked(asking.pairs, ())
        snapshot = self.snapshots.latest()
        values = overview_view(snapshot, len(self._left_out(snapshot)))
        return self._page("overview.html", "", asking, snapshot, **values)

    def participants(self, asking: Asking) -> str:
        """How good the answers of each participant are."""
        snapshot = self.snapshots.latest()
        values = participants_view(snapshot, saved_rules(self.store), asking.pairs)
        return self._page("participants.html", "/participants", asking, snapshot, **values)

    def images(self, asking: Asking) -> str:
        """All tasks: a gallery of clicks, candidates with their verdicts, or measures with their means."""
        snapshot = self.snapshots.latest()
        template, view = _VIEWS[self.study.settings.kind]
        return self._page(
            template, "/images", asking, snapshot, **view(snapshot, self._left_out(snapshot), asking.pairs)
        )

    def image(self, asking: Asking) -> str:
        """One image with its clicks."""
        snapshot = self.snapshots.latest()
        values = image_view(snapshot, self._left_out(snapshot), self.pictures, asking.task, asking.pairs)
        return self._page("image.html", "/images", asking, snapshot, title=values["name"], **values)

    def rules(self, asking: Asking) -> str:
        """The rules, and what others would do."""
        snapshot = self.snapshots.latest()
        values = rules_view(snapshot, saved_rules(self.store), asking.pairs)
        return self._page("rules.html", "/rules", asking, snapshot, title="Rules of exclusion", **values)

    def save_rules(self, asking: Asking) -> str:
        """Save the rules of a form; the address to go to."""
        try:
            rules = rules_from(Asked(asking.pairs, (*NUMBERS, "participants")))
        except ValueError as error:
            raise Refused(str(error)) from None
        self.store.set_rules(rules.model_dump(mode="json"))
        return "/research/rules?saved=yes"

    def export(self, asking: Asking) -> str:
        """How far the files are."""
        Asked(asking.pairs, ())
        return self._page("export.html", "/export", asking, None, **export_view(self.study, self.job))

    def start_export(self, asking: Asking) -> str:
        """Begin to make the files; the address to go to."""
        start_export(self.study, self.store, self.job, Asked(asking.pairs, ("mode", "all_clicks")))
        return "/research/export"

    def links(self, asking: Asking) -> str:
        """The form for invitation links."""
        Asked(asking.pairs, ())
        return self._links(asking, links_view(self.study, asking.base_url))

    def make_links(self, asking: Asking) -> str:
        """The page with new links."""
        asked = Asked(asking.pairs, ("count", "days", "base_url"))
        return self._links(asking, made_links(self.study, asked, asking.base_url, self.clock()))

    def _links(self, asking: Asking, values: dict[str, Any]) -> str:
        return self._page("links.html", "/links", asking, None, title="Invitation links", **values)

    def _left_out(self, snapshot: Snapshot) -> dict[str, str]:
        return left_out(snapshot, saved_rules(self.store))

    def _page(self, template: str, here: str, asking: Asking, snapshot: Snapshot | None, **values: Any) -> str:
        own = {
            "title": self.rooms[here],
            "study": self.study.settings.title,
            "kind": self.study.settings.kind,
            "rooms": [(name, f"/research{path}") for path, name in self.rooms.items()],
            "here": f"/research{here}",
            "form_token": asking.form_token,
            "taken": clock_time(snapshot.taken) if snapshot else "",
        }
        return pages.render(template, **{**own, **values})
