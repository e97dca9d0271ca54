"""Somebody at a browser who goes through the pages of a study, by mouse, finger or keys."""

from __future__ import annotations

import re

from hardlook.collect.web.sessions import Sessions

DESKTOP = {"viewport": {"width": 800, "height": 600}}

PHONE = {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 3, "has_touch": True, "is_mobile": True}

PATIENCE = 10_000

EARLY = """answered => {
  const look = () => {
    const now = document.querySelector('.trial')?.dataset.phase === 'again';
    if (!now || document.getElementById('progress').value !== answered) return requestAnimationFrame(look);
    const { left, top, width, height } = document.querySelector('.picture').getBoundingClientRect();
    const at = { clientX: left + width / 2, clientY: top + height / 2 };
    for (const name of ['pointerdown', 'pointerup']) {
      const made = new PointerEvent(name, { ...at, bubbles: true, isPrimary: true, button: 0, pointerType: 'mouse' });
      document.querySelector('.stage').dispatchEvent(made);
    }
  };
  look();
}"""


class Visitor:
    """A page of a study, and what a person does on it; `complaints` are what the browser says on its console."""

    def __init__(self, context, served):
        self.served, self.context, self.page = served, context, context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.touch = self.page.evaluate("matchMedia('(pointer: coarse)').matches")
        self.complaints, self.requested = [], []
        self.page.on("console", lambda said: said.type == "error" and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))

    def join(self, language="en"):
        self.page.goto(f"{self.served.address}/?lang={language}")
        self.page.locator("[name=agree]").check()
        self.press("button[type=submit]")
        self.page.locator("h1").wait_for()
        return self

    def begin(self, language="en"):
        """Join, confirm the device where it is asked for, and read the instructions."""
        self.join(language)
        if self.served.study.settings.kind == "clicks":
            self.page.locator("[name=device]").first.wait_for()
            self.press("button.main")
        self.page.locator("[value=begin]").wait_for()
        self.press("[value=begin]")
        return self

    def enter(self, language="en"):
        """Begin as somebody who has joined and said what they use; quicker, for tests of what comes after."""
        served, kind = self.served, self.served.study.settings.kind
        now = served.clock()
        who = served.store.join(None, language, now).id
        served.store.set_device(who, ("mobile" if self.touch else "pc") if kind == "clicks" else "any", now)
        sessions = Sessions(served.study.secret)
        self.context.add_cookies(
            [{"name": sessions.name, "value": sessions.make_cookie(who, now), "url": served.address}]
        )
        self.page.goto(f"{served.address}/work")
        self.page.locator("[value=begin]").wait_for()
        self.press("[value=begin]")
        return self

    def press(self, selector):
        self.page.locator(selector).tap() if self.touch else self.page.locator(selector).click()

    def phase(self, *names):
        """Wait for one of these phases of a click, looking at every frame; short ones alone may pass unseen."""
        self.page.wait_for_function(
            "names => names.includes(document.querySelector('.trial')?.dataset.phase)", arg=names
        )
        return self

    def early(self):
        """Wait for a time when clicks do not count yet."""
        return self.phase("image", "target", "again")

    def press_early(self, answered):
        """Have the page itself press on the picture that comes after so many answers, while it may only be looked at.

        A message to the browser of a busy machine may take longer than a short phase.
        """
        self.page.evaluate(EARLY, answered)

    def started(self):
        """Wait until a picture is on."""
        return self.phase("image", "target", "again", "click")

    def answered(self, count):
        """Wait until so many answers of the set are given."""
        self.page.wait_for_function("n => document.getElementById('progress').value === n", arg=count)
        return self

    def asked(self, count):
        """Wait until the question after so many answers takes an answer."""
        self.answered(count).page.locator(".question[data-phase=asked]").wait_for()
        return self

    def tap(self, x, y):
        """At a point of the window, in CSS pixels."""
        self.page.touchscreen.tap(x, y) if self.touch else self.page.mouse.click(x, y)

    def box(self):
        """Where the picture is: left, top, width, height in CSS pixels."""
        return self.page.locator(".picture").evaluate(
            "p => { const b = p.getBoundingClientRect(); return [b.left, b.top, b.width, b.height] }"
        )

    def point(self, pixel, size):
        """The point of the window over the middle of a pixel (x, y) of the picture, which has `size` (w, h)."""
        left, top, width, height = self.box()
        return left + (pixel[0] + 0.5) / size[0] * width, top + (pixel[1] + 0.5) / size[1] * height

    def task(self):
        """The task whose picture is on the screen."""
        trial = re.search(r"/pictures/([^/]+)/", self.page.locator(".picture").get_attribute("src"))[1]
        if trial.startswith("training-"):
            return self.served.study.training[int(trial.removeprefix("training-"))]
        participant = self.served.store.participants()["id"][-1]
        return self.served.study.by_id[self.served.store.trial(participant, trial).item.task]

    def click_mark(self):
        """Wait for the time to click, and click on the mark of the picture; the mark."""
        self.phase("click")
        task = self.task()
        mark = self.served.marks[task.id]
        self.tap(*self.point(mark, (task.width, task.height)))
        self.page.wait_for_function("() => document.querySelector('.trial')?.dataset.phase !== 'click'")
        return mark

    def words(self, selector="#screen"):
        return self.page.locator(selector).inner_text()

    def stop(self):
        self.page.locator("[value=stop]").wait_for()
        self.press("[value=stop]")
        self.page.wait_for_url("**/done")
        return self
