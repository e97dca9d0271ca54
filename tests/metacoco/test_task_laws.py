"""The laws of MetaCoCo's tasks, read off the records of whole runs."""

import numpy as np
import polars as pl
import pytest

from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import launch
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.tasks.images import MODES
from hardlook.metacoco.units import load_images, make_source
from hardlook.models.registry import build

TASKS = {"tasks": 8, "resamples": 0, "modes": ",".join(MODES), "shots": "1,2", "ways": "5,2", "queries": 2}

COMMON = [mode for mode in MODES if mode != "shared"]


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("metacoco", TASKS)


@pytest.fixture(scope="module")
def kept(own_cache, tmp_path_factory):
    """Records with their rows of the dataset, of all modes and two learners."""
    found = []
    for name, model in (("planted", "planted-learner"), ("centroid", "nearest-centroid")):
        out = tmp_path_factory.mktemp(name) / "run"
        launch("metacoco", out=out, model=model, given=TASKS)
        parts = sorted(RunFolder(out).records_path.glob("part-*.parquet"))
        found.append(pl.concat([pl.read_parquet(part) for part in parts]).sort("unit"))
    return found


@pytest.fixture(scope="module")
def table(rehearsal):
    return load_images(make_source(rehearsal.options)).table


def wide(records, column):
    """One row a task's number, one column a mode."""
    return records.pivot("mode", index=["ways", "shots", "index"], values=column)


def test_every_learner_gets_the_same_tasks(kept):
    asked = ["unit", "concepts", "contexts", "support_context", "query_context", "support", "query"]
    assert kept[0].select(asked).equals(kept[1].select(asked))
    assert kept[0]["unit"].n_unique() == 8 * 2 * 2 * len(MODES)


def test_every_mode_has_the_same_classes_and_supports(kept):
    for column in ("concepts", "support"):
        by_mode = wide(kept[0], column)
        assert len(by_mode) == 8 * 2 * 2
        for mode in COMMON:
            assert by_mode[mode].to_list() == by_mode["iid"].to_list()
    queries = wide(kept[0], "query")
    assert all((queries[mode] != queries["iid"]).any() for mode in COMMON if mode != "iid")


def test_tasks_differ_from_each_other(kept):
    iid = kept[0].filter(mode="iid", ways=5, shots=1)
    assert iid["concepts"].n_unique() > 6
    assert iid["support"].n_unique() == 8


def test_no_query_is_in_its_support(kept, table):
    for row in kept[0].iter_rows(named=True):
        support, query = table.content[row["support"]], table.content[row["query"]]
        assert not set(support) & set(query)
        assert len(set(support)) == row["ways"] * row["shots"]
        assert len(query) == row["queries"] == 2 * row["ways"]


def test_contexts_are_as_the_mode_says(kept, table):
    for row in kept[0].iter_rows(named=True):
        concepts, contexts = row["concepts"].split("\n"), row["contexts"].split("\n")
        shown = [contexts[place] for place in row["support_context"]]
        asked = [
            [contexts[place] for place in row["query_context"][way * 2 : way * 2 + 2]] for way in range(row["ways"])
        ]
        assert [table.concepts[n] for n in table.concept[row["query"]]] == list(np.repeat(concepts, 2))
        assert [table.contexts[n] for n in table.context[row["query"]]] == [name for names in asked for name in names]
        assert [table.contexts[n] for n in table.context[row["support"]]] == list(np.repeat(shown, row["shots"]))
        for own, seen in zip(shown, asked, strict=True):
            if row["mode"] in ("iid", "shared"):
                assert set(seen) == {own}
            elif row["mode"] != "blind":
                assert own not in seen
            if row["mode"] == "swapped":
                assert set(seen) <= set(shown)
        if row["mode"] == "shared":
            assert len(set(shown)) == 1


def test_records_do_not_depend_on_order_or_company(rehearsal):
    units = [unit for batch in rehearsal.prepared for unit in batch.units][::4]
    model = build("planted-learner", role="few-shot-learner", args={"context": 0.5, "noise": 0.2})
    together = {record["unit"]: record for record in METACOCO.evaluate(units, model)}
    shuffled = [units[place] for place in np.random.default_rng(0).permutation(len(units))]
    assert {record["unit"]: record for record in METACOCO.evaluate(shuffled, model)} == together
    for unit in shuffled[:5]:
        assert METACOCO.evaluate([unit], model) == [together[unit.id]]


class Heads:
    """Trains heads from random starts; keeps episodes and scores."""

    accepts = "features"

    def __init__(self):
        self.learner = build("linear-head", role="few-shot-learner", args={})
        self.episodes, self.scores = [], []

    def classify(self, episodes):
        scores = self.learner.classify(episodes)
        self.episodes += episodes
        self.scores += scores
        return scores


@pytest.fixture(scope="module")
def answered(own_cache):
    """{blind supports: {(mode, index): (record, episode, scores)}} of linear heads."""
    given = {"tasks": 6, "resamples": 0, "modes": "iid,ood,blind,shared", "queries": 3, "encoder_args": "context=.5"}
    found = {}
    for blind_supports in ("ours", "paper"):
        rehearsal = InMemoryRun("metacoco", {**given, "blind_supports": blind_supports})
        units = [unit for batch in rehearsal.prepared for unit in batch.units]
        heads = Heads()
        records = METACOCO.evaluate(units, heads)
        rows = zip(records, heads.episodes, heads.scores, strict=True)
        found[blind_supports] = {(row[0]["mode"], row[0]["index"]): row for row in rows}
    return found


def test_one_head_answers_in_every_mode_with_the_same_supports(answered):
    """An image that is asked about in two modes of a task gets one answer: the gap compares no two heads."""
    met = 0
    tasks = answered["ours"]
    for index in range(6):
        first = asked(*tasks["iid", index])
        for mode in ("ood", "blind"):
            other = asked(*tasks[mode, index])
            for image in first.keys() & other.keys():
                np.testing.assert_allclose(first[image], other[image], atol=1e-5)
                met += 1
        assert tasks["iid", index][1].key == tasks["ood", index][1].key == tasks["blind", index][1].key
    assert met > 0


def asked(record, episode, scores):
    """{the query's vector: its scores}."""
    return {vector.tobytes(): row for vector, row in zip(episode.query, scores, strict=True)}


def test_other_supports_have_a_key_of_their_own(answered):
    for blind_supports, alike in (("ours", 2), ("paper", 3)):
        keys = [row[1].key for row in answered[blind_supports].values()]
        assert len(set(keys)) == 6 * alike


def test_the_order_of_queries_tells_no_labels_and_is_undone_in_the_records(answered):
    straight = 0
    for record, episode, scores in answered["ours"].values():
        predicted = scores.argmax(1)
        truth = np.repeat(np.arange(5), 3)
        vectors = _vectors(record["query"])
        # Where the class-by-class queries went; equal vectors have equal scores, so any of them will do.
        place = [next(at for at, query in enumerate(episode.query) if (query == vector).all()) for vector in vectors]
        assert [predicted[at] for at in place] == record["predicted"]
        assert sorted(episode.query.tolist()) == sorted(vectors.tolist())
        assert record["correct"] == (np.array(record["predicted"]) == truth).sum()
        straight += (episode.query == vectors).all()
    assert straight == 0


def _vectors(rows):
    opened = load_images(make_source(MetaCocoOptions()))
    encoder = build("planted-encoder", role="encoder", args={"context": 0.5})
    return np.concatenate([encoder.encode([opened.read(row)]).vectors for row in rows])
