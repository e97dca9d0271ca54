"""The rules of handing out as a machine that does anything in any order, against a plain list of what happened."""

import shutil
import tempfile
from pathlib import Path

from collect_people import assert_counts_are_true, click, some_items
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from hardlook.collect.store.records import BatchRules, Refusal
from hardlook.collect.store.store import Store

DEVICES = ("pc", "mobile")


class Handing(RuleBasedStateMachine):
    """A store, and beside it every trial as [person, device, item, state, inside, batch]."""

    people = Bundle("people")

    @initialize(items=st.integers(1, 7), modes=st.integers(1, 2), size=st.integers(1, 4), enough=st.integers(1, 3))
    def begin(self, items, modes, size, enough):
        self.folder = Path(tempfile.mkdtemp())
        self.url = f"sqlite:///{self.folder}/a.sqlite"
        self.store = Store.open(self.url)
        self.items = some_items(items, ("text", "cut-out")[:modes])
        self.store.prepare(self.items, DEVICES, "f")
        self.rules = BatchRules(size, enough, most_batches=3, return_after=100.0)
        self.now, self.trials, self.batches, self.device = 0.0, {}, {}, {}

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    def counts(self, item, device):
        """Valid and pending answers of an item on a device, counted from the list."""
        count = 0
        for trial in self.trials.values():
            batch = self.batches[trial["batch"]]
            if trial["item"] == item and batch["device"] == device:
                count += batch["state"] == "open" or (batch["valid"] and trial["inside"] is True)
        return count

    def judge(self, name, state):
        own = [trial for trial in self.trials.values() if trial["batch"] == name]
        inside = sum(trial["inside"] is True for trial in own)
        self.batches[name] |= {"state": state, "valid": inside > 0 and inside >= self.rules.needed(len(own))}

    def give_back(self, batch):
        if batch["state"] == "open" and batch["touched"] <= self.now - self.rules.return_after:
            self.judge(batch["id"], "returned")

    @rule(target=people, device=st.sampled_from(DEVICES))
    def arrive(self, device):
        person = self.store.join(None, "en", self.now).id
        self.store.set_device(person, device, self.now)
        self.device[person] = device
        return person

    @rule(person=people, device=st.sampled_from(DEVICES))
    def change_device(self, person, device):
        self.store.set_device(person, device, self.now)
        self.device[person] = device

    @rule(seconds=st.sampled_from([1.0, 60.0, 200.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def sweep(self):
        stale = [batch for batch in self.batches.values() if batch["touched"] <= self.now - 100.0]
        expected = sum(batch["state"] == "open" for batch in stale)
        assert self.store.return_abandoned(100.0, self.now) == expected
        for batch in stale:
            self.give_back(batch)

    @rule(person=people)
    def ask(self, person):
        device = self.device[person]
        got = self.store.next_batch(person, self.rules, self.now)
        own = [batch for batch in self.batches.values() if batch["person"] == person]
        opened = next((batch for batch in own if batch["state"] == "open"), None)
        if opened is not None and opened["device"] == device:
            opened["touched"] = self.now
            assert got.id == opened["id"]
            return
        if opened is not None:
            self.judge(opened["id"], "returned")
        else:
            for batch in self.batches.values():
                self.give_back(batch)
        wanted = self.expected_needs(person, device, own)
        assert (got is None) == (wanted == [])
        if got is None:
            return
        needs = [
            (self.counts(trial.item.id, device), sum(self.counts(trial.item.id, one) for one in DEVICES))
            for trial in got.trials
        ]
        assert needs == wanted
        self.batches[got.id] = {"id": got.id, "person": person, "device": device, "state": "open", "touched": self.now}
        for trial in got.trials:
            self.trials[trial.id] = {"item": trial.item.id, "subject": trial.item.subject, "inside": None}
            self.trials[trial.id] |= {"batch": got.id, "person": person, "trial": trial}

    def expected_needs(self, person, device, own):
        """The needs, on this device and on all, of the items that the rules would hand out."""
        answered = sum(t["inside"] is not None for t in self.trials.values() if t["person"] == person)
        if sum(batch["state"] == "complete" for batch in own) >= 3 or answered >= 3 * self.rules.size:
            return []
        seen = {trial["subject"] for trial in self.trials.values() if trial["person"] == person}
        best = {}
        for item in self.items:
            here = self.counts(item.id, device)
            need = (here, sum(self.counts(item.id, one) for one in DEVICES))
            if item.subject not in seen and here < self.rules.target:
                best[item.subject] = min(need, best.get(item.subject, need))
        return sorted(best.values())[: self.rules.size]

    @rule(inside=st.booleans(), choice=st.integers(0, 10**6))
    def answer(self, inside, choice):
        if not self.trials:
            return
        trial = list(self.trials.values())[choice % len(self.trials)]
        batch = self.batches[trial["batch"]]
        new = click(f"key-{choice}-{trial['trial'].id}", trial["trial"], inside)
        try:
            stored = self.store.answer(trial["person"], new, self.rules.needed, self.now)
        except Refusal as refusal:
            expected = "already-answered" if trial["inside"] is not None else "returned"
            assert refusal.code == expected and (trial["inside"] is not None or batch["state"] == "returned")
            return
        if stored.repeated:
            assert trial["inside"] is not None
            return
        assert trial["inside"] is None and batch["state"] == "open"
        trial["inside"], batch["touched"] = inside, self.now
        own = [one for one in self.trials.values() if one["batch"] == batch["id"]]
        assert stored.batch_complete == all(one["inside"] is not None for one in own)
        if stored.batch_complete:
            self.judge(batch["id"], "complete")
            assert stored.batch_valid == batch["valid"]

    @invariant()
    def counts_are_true(self):
        if hasattr(self, "store") and self.trials:
            assert_counts_are_true(self.url, self.rules.target)


TestHanding = Handing.TestCase

TestHanding.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
