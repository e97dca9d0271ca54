"""People with known habits who go through the real pages of a study in a browser, several at once.

Somebody looks at the picture on the screen, knows it among the images of the dataset by its pixels, and clicks where
their click model says. Nothing is read from the study folder: a study that mixed up its masks would be found out.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import cv2
import numpy as np
from browsers import CHROMIUM, FLAGS

from hardlook.data.object_instances import list_instances
from hardlook.models.registry import build
from hardlook.randomness import generator
from hardlook.rclicks.click_models.distribution import click_distribution

# Small windows with few pixels: drawing them is most of the work.
LOOKS = {
    "pc": {"viewport": {"width": 720, "height": 620}},
    "mobile": {
        "viewport": {"width": 360, "height": 560}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True,
    },
}  # fmt: skip

AT_ONCE = 4

PATIENCE = 60_000

# Milliseconds; to look at every frame would keep the browser drawing.
POLLING = 20

# The next thing to do, other than the last: a click that is due, a choice, or to take the code.
DUE = """last => {
  const picture = document.querySelector(".trial[data-phase=click] .picture");
  const choice = document.querySelector("#screen [value=next], #screen [value=begin], #screen [value=another]");
  const code = document.getElementById("code");
  const name = picture?.getAttribute("src") ?? (choice && document.querySelector("h1").textContent) ?? code?.value;
  if (!name || name === last) return null;
  const box = picture?.getBoundingClientRect();
  return { name, choice: choice?.value, box: box && [box.left, box.top, box.width, box.height] };
}"""


class Habit:
    """A crowd that clicks on the objects of a dataset as a click model says, person by person."""

    def __init__(self, data, clicks, seed=0):
        self.name, self._seed = clicks, seed
        model = build(clicks, "click-model")
        self._known = []
        for instance in list_instances(data).instances:
            image, mask = instance.read(), instance.read_target().mask
            chances = click_distribution(model.click_map(image, mask, mask, True), mask)
            self._known.append((instance.full_stem, image, chances))

    def stem(self, picture):
        """Which image of the dataset a picture is; the study may have stored it anew."""
        likeness = {
            stem: np.abs(image[::4, ::4].astype(int) - picture[::4, ::4]).mean()
            for stem, image, _ in self._known
            if image.shape == picture.shape
        }
        found = min(likeness, key=likeness.get)
        assert likeness[found] < 3, f"no image of the dataset looks like this: {likeness}"
        return found

    def click(self, person, stem):
        """The pixel (x, y) that a person clicks on."""
        [chances] = [chances for known, _, chances in self._known if known == stem]
        return tuple(chances.draw(generator(self._seed, "circle", self.name, person, stem), 1)[0].tolist())


@dataclass
class Person:
    """One participant on their own device; `clicks` are the pixels they meant, by stem."""

    number: int
    device: str
    habit: Habit
    address: str
    clicks: dict = field(default_factory=dict)
    code: str = ""
    practised: int = 0

    async def take_part(self, browser):
        context = await browser.new_context(**LOOKS[self.device])
        try:
            self._page, self._last, self._responses = await context.new_page(), "", {}
            self._page.set_default_timeout(PATIENCE)
            self._page.on("response", lambda response: self._responses.update({response.url: response}))
            await self._page.goto(self.address)
            for selector in ("[name=agree]", "button[type=submit]", ".devices ~ .actions .main"):
                await self._press(selector)
            while not self.code:
                await self._go_on()
        finally:
            await context.close()

    async def _go_on(self):
        """Do what is to be done next; at last there is nothing to do but to take the code."""
        due = await (await self._page.wait_for_function(DUE, arg=self._last, polling=POLLING)).json_value()
        self._last = due["name"]
        if due["box"]:
            await self._click(due["name"], *due["box"])
        elif due["choice"]:
            await self._press(f"#screen [value={due['choice']}]")
        else:
            self.code = due["name"]

    async def _click(self, address, left, top, width, height):
        picture = await self._seen(address)
        if "/training-" in address:
            x, y = innermost(await self._seen(address.replace("/image", "/target")))
            self.practised += 1
        else:
            stem = self.habit.stem(picture)
            assert stem not in self.clicks, f"{stem} was shown to one person twice"
            x, y = self.clicks[stem] = self.habit.click(self.number, stem)
        place = left + (x + 0.5) / picture.shape[1] * width, top + (y + 0.5) / picture.shape[0] * height
        await (self._page.touchscreen.tap(*place) if self.device == "mobile" else self._page.mouse.click(*place))

    async def _seen(self, address):
        """The pixels (H, W, 3) of a picture that the page has loaded."""
        content = await self._responses[self.address.rstrip("/") + address].body()
        return cv2.cvtColor(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)

    async def _press(self, selector):
        button = self._page.locator(selector)
        await (button.tap() if self.device == "mobile" else button.click())


def innermost(target):
    """The pixel (x, y) deepest inside of what a cut-out shows; all else of it has the colour of its corner."""
    shown = (np.abs(target.astype(int) - target[0, 0]).max(axis=2) > 8).astype(np.uint8)
    depth = cv2.distanceTransform(cv2.copyMakeBorder(shown, 1, 1, 1, 1, cv2.BORDER_CONSTANT), cv2.DIST_L2, 5)
    y, x = np.unravel_index(depth[1:-1, 1:-1].argmax(), shown.shape)
    return int(x), int(y)


def send_people(people):
    """Let them all take part in one browser, some at once."""

    async def everybody():
        from playwright.async_api import async_playwright

        turns = asyncio.Semaphore(AT_ONCE)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

            async def one(person):
                async with turns:
                    await person.take_part(browser)

            async with asyncio.TaskGroup() as group:
                for person in people:
                    group.create_task(one(person))
            await browser.close()

    # In a thread of its own: another test's browser may have left a loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, everybody()).result()
    return people
