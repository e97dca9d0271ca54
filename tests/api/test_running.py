"""`hl.run` is `hardlook run`: the same folder, from names or from objects."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import CommandLine
from small_runs import all_records

import hardlook as hl
from hardlook.errors import ChangedRun, ModelError, OptionError, RunError
from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.report.statements import describe_run

SMALL = {
    "closed-miou": {"scenes": 6, "resamples": 50},
    "open-miou": {"scenes": 6, "resamples": 50},
    "open-ap": {"scenes": 6, "resamples": 0},
    "open-pq": {"scenes": 6, "resamples": 50},
    "toss": {"scenes": 24, "tiers": "1", "resamples": 50},
    "metacoco": {"tasks": 4},
    "rclicks": {"scenes": 3, "resamples": 50},
}

# What differs between two runs of the same command: times, processes, folders.
CHANGING = ("created", "sessions", "checksum")


def list_flags(options):
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def read_manifest(folder):
    manifest = json.loads((Path(folder) / "run.json").read_text())
    return {key: value for key, value in manifest.items() if key not in CHANGING}


@pytest.mark.parametrize("benchmark", sorted(SMALL))
def test_the_function_and_the_command_make_the_same_run(tmp_path, benchmark, capsys, monkeypatch):
    options = SMALL[benchmark]
    by_function = hl.run(benchmark, out=tmp_path / "function", progress=False, **options)
    CommandLine(capsys, monkeypatch)("run", benchmark, "--out", tmp_path / "command", "-q", *list_flags(options))
    for name in ("scores.json", "report.html"):
        texts = [(tmp_path / one / name).read_bytes() for one in ("function", "command")]
        if name == "report.html":
            stamps = [read["created"].encode() for read in (json.loads((tmp_path / one / "run.json").read_text())
                                                            for one in ("function", "command"))]  # fmt: skip
            texts = [_without_times(text, stamp) for text, stamp in zip(texts, stamps, strict=True)]
        assert texts[0] == texts[1], name
    assert all_records(tmp_path / "function").equals(all_records(tmp_path / "command"))
    parts = [sorted(path.name for path in (tmp_path / one / "records").iterdir()) for one in ("function", "command")]
    assert parts[0] == parts[1]  # a part's name is the hash of its bytes
    assert read_manifest(tmp_path / "function") == read_manifest(tmp_path / "command")
    assert by_function.scores.keys() == hl.load(tmp_path / "command").scores.keys()


def _without_times(page, stamp):
    """The page without the sessions of its provenance, which hold times, process ids and folders."""
    text = page.replace(stamp, b"")
    start = text.index(b"&#34;sessions&#34;")
    return text[:start] + text[text.index(b"</pre>", start) :]


class Mine(PlantedSegmenter):
    """A model of a script."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "mine"
    hl.run("closed-miou", model=Mine(stranger=0.2), scenes=6, resamples=50, out=out, progress=False)
    return out


@pytest.fixture
def copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copied")
    return tmp_path / "copied"


def run_again(out, model, **more):
    return hl.run("closed-miou", model=model, scenes=6, resamples=50, out=out, progress=False, **more)


def test_a_model_given_as_an_object_has_the_scores_of_the_named_one(folder, tmp_path):
    named = run_again(tmp_path / "named", "planted-segmenter", model_args={"stranger": 0.2})
    given = hl.load(folder)
    assert {name: score.value for name, score in given.scores.items()} == {
        name: score.value for name, score in named.scores.items()
    }
    assert given.model == "Mine" and "hash of its source" in given.manifest["model"]["object"]


def test_the_same_object_resumes_and_another_one_is_refused(copied):
    assert run_again(copied, Mine(stranger=0.2)).progress.before == 6
    with pytest.raises(ChangedRun, match="model source"):
        run_again(copied, Mine(stranger=0.3))
    with pytest.raises(ChangedRun, match="new=True"):
        run_again(copied, Mine(stranger=0.3))
    assert run_again(copied, Mine(stranger=0.3), new=True).progress.answered == 6


def test_an_object_runs_in_processes(folder, tmp_path, forked_workers):
    """Also one of a class that a worker cannot import."""

    class Local(Mine):
        pass

    local = Local(stranger=0.2)
    in_processes = run_again(tmp_path / "processes", local, engine="processes")
    assert in_processes.records.drop("answers", strict=False).equals(hl.load(folder).records)


def test_an_object_runs_on_ray(folder, tmp_path, ray_cluster):
    """Also one of a class that an actor cannot import."""

    class Local(Mine):
        pass

    on_ray = run_again(tmp_path / "ray", Local(stranger=0.2), engine="ray", workers=1)
    assert on_ray.progress.failed == 0 and on_ray.records.equals(hl.load(folder).records)
    assert on_ray.scores["miou"].value == hl.load(folder).scores["miou"].value


def test_what_cannot_be_sent_to_a_worker_says_so(tmp_path):
    model = Mine()
    model.stream = (number for number in range(3))
    model.fingerprint = lambda: "one of its kind"
    with pytest.raises(ModelError, match="cannot be sent to other processes"):
        run_again(tmp_path / "run", model, engine="processes")


def test_arguments_and_classes_in_place_of_objects_are_refused(tmp_path):
    with pytest.raises(OptionError, match="takes no arguments: stranger"):
        run_again(tmp_path / "run", Mine(), model_args={"stranger": 0.2})
    with pytest.raises(OptionError, match=r"give an object of it: Mine\(...\)"):
        run_again(tmp_path / "run", Mine)


def test_without_a_folder_the_run_is_in_a_temporary_one():
    run = hl.run("closed-miou", scenes=2, resamples=0, progress=False, report=False)
    assert (run.folder / "scores.json").is_file() and not (run.folder / "report.html").exists()
    shutil.rmtree(run.folder.parent)


def test_a_shard_has_no_scores_until_all_are_done(tmp_path):
    first = hl.run("closed-miou", scenes=6, batch_size=2, shard=(1, 2), out=tmp_path / "run", progress=False)
    assert "left to other shards" in repr(first) and "left to other shards" in first._repr_html_()
    with pytest.raises(RunError, match="left to other shards"):
        _ = first.records
    second = hl.run("closed-miou", scenes=6, batch_size=2, shard=(2, 2), out=tmp_path / "run", progress=False)
    assert len(second.records) == 6


def test_joined_runs(tmp_path):
    parts = [
        hl.run("toss", model="whole-image", tiers="3", folds=str(fold), scenes=24, resamples=0, progress=False,
               out=tmp_path / f"fold{fold}", report=False)
        for fold in (0, 1)
    ]  # fmt: skip
    joined = hl.join(parts, tmp_path / "both")
    assert len(joined.records) == sum(len(part.records) for part in parts)
    assert (tmp_path / "both" / "report.html").is_file()


def test_a_function_is_wrapped(tmp_path):
    def darkness(images):
        """As networks take them: (N, 3, H, W) in [0, 1]."""
        return 1 - images.mean(1)

    own = hl.benchmark(
        "own-darkness",
        role="saliency",
        units={"dark": 10, "light": 250},
        scores={"mean": "lower"},
        slices=("kind",),
        evaluate=lambda value, model: {
            "mean": float(model.saliency([np.full((4, 5, 3), value, np.uint8)])[0].mean()),
            "kind": "night" if value < 128 else "day",
        },
    )
    run = hl.run(own, model=darkness, out=tmp_path / "run", progress=False)
    assert run.scores["mean"].value == pytest.approx(1 - 130 / 255, abs=1e-6)
    assert run.slices("kind").sort("kind")["value"].to_list() == pytest.approx([1 - 250 / 255, 1 - 10 / 255], abs=1e-6)


def test_a_notebook_benchmark_runs_in_processes_and_is_compared(tmp_path, forked_workers):
    numbers = list(range(12))

    @hl.benchmark("own-numbers", role="saliency", units=numbers, scores=("hit",), slices=("half",), cluster="pair")
    def evaluate(number, model):
        """Whether a number is hit."""
        value = float(model.saliency([np.full((2, 2, 3), number, np.uint8)])[0].mean() > 0)
        return {"hit": value, "half": "low" if number < 6 else "high", "pair": number // 2}

    class Always:
        def saliency(self, images):
            return [np.ones(image.shape[:2], np.float32) for image in images]

    class Sometimes(Always):
        def saliency(self, images):
            return [np.full(image.shape[:2], float(image.max() > 5), np.float32) for image in images]

    one = hl.run(evaluate, model=Always(), out=tmp_path / "one", engine="processes", progress=False)
    two = hl.run(evaluate, model=Sometimes(), out=tmp_path / "two", progress=False)
    assert (one.scores["hit"].value, two.scores["hit"].value) == (1.0, 0.5)
    assert two.scores["hit"].interval.resampled == "pair" and two.scores["hit"].interval.n == 6
    compared = hl.compare(one, two)
    assert compared.verdicts["difference"].to_list() == [0.5]
    assert hl.load(tmp_path / "one").scorecard == one.scorecard
    assert "own-numbers" in [card.name for card in hl.benchmarks()]
    assert "hl.run(own_numbers" in (tmp_path / "one" / "report.html").read_text()


def test_own_benchmarks_check_their_names():
    with pytest.raises(OptionError, match="built-in benchmark"):
        hl.benchmark("toss", role="saliency", units=[1], scores=("a",), evaluate=lambda unit, model: {"a": 1.0})
    with pytest.raises(OptionError, match="cannot use the names unit"):
        hl.benchmark("own", role="saliency", units=[1], scores=("unit",), evaluate=lambda unit, model: {})
    with pytest.raises(OptionError, match="higher or lower"):
        hl.benchmark("own", role="saliency", units=[1], scores={"a": "up"}, evaluate=lambda unit, model: {})


def test_the_version_of_an_own_benchmark_follows_its_source():
    def make(factor):
        return hl.benchmark(
            "own-version", role="saliency", units=[1], scores=("a",), evaluate=lambda unit, model: {"a": factor * 1.0}
        )

    assert make(1).card.version == make(1).card.version != make(2).card.version


def test_frames_of_a_run(folder):
    run = hl.load(folder)
    classes = run.slices("class")
    assert classes.columns == ["score", "class", "value", "low", "high", "n", "reading", "comparable"]
    assert classes.schema["value"] == pl.Float64 and classes["class"].n_unique() == len(classes)
    assert run.score("iou", **{"class": classes["class"][0]}).value == pytest.approx(classes["value"][0], nan_ok=True)
    with pytest.raises(OptionError, match="it has slices by: class; "):
        run.slices("weather")


def test_a_score_that_no_unit_defines_is_shown_as_undefined(tmp_path):
    own = hl.benchmark(
        "own-undefined", role="semantic-segmenter", units=[1, 2], scores=("a", "b"),
        evaluate=lambda unit, model: {"a": float("nan"), "b": 1.0},
    )  # fmt: skip
    run = hl.run(own, model=Mine(), out=tmp_path / "run", progress=False)
    assert run.scores["a"].n == 0 and run.scores["a"].reason == "no unit has a defined value"
    assert "a: undefined" in repr(run) and run.scores["b"].value == 1.0


def test_an_own_score_rests_on_the_clusters_that_define_it(tmp_path):
    values = [0.9, 0.9, 0.92, 0.95, math.inf, *[math.nan] * 25]
    own = hl.benchmark(
        "own-thin", role="semantic-segmenter", units=range(30), scores=("a",), cluster="pair",
        evaluate=lambda unit, model: {"a": values[unit], "pair": unit // 2},
    )  # fmt: skip
    run = hl.run(own, model=Mine(), out=tmp_path / "run", progress=False)
    score = run.scores["a"]
    assert (score.n, score.value) == (4, pytest.approx(0.9175))
    assert dict(score.rests_on) == {"pair": 2}  # of 15: units 0 and 1, units 2 and 3
    assert describe_run(run.scorecard) == [
        "The a is 0.918 on 2 pairs.",
        "These data cannot tell how it would be on others: a statement needs 10 pairs.",
    ]
    assert [(note.what, note.count, note.why.split()[0], note.examples[0]) for note in run.scorecard.left_out] == [
        ("units without a", 25, "NaN:", "own-thin-05"),
        ("units without a", 1, "infinite,", "own-thin-04"),
    ]


def test_a_device_for_a_benchmark_whose_encoder_is_not_the_models(tmp_path, monkeypatch):
    model = "torch_models:Net"
    (tmp_path / "torch_models.py").write_text(
        "import numpy as np\n"
        "class Net:\n"
        "    def __init__(self, device='cpu'):\n"
        "        self.device = device\n"
        "    def segment_queries(self, queries, supports):\n"
        "        return [np.ones(query.shape[:2], bool) for query in queries]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = hl.run("toss", model=model, device="cpu", scenes=24, resamples=50, out=tmp_path / "run", progress=False)
    assert run.scores["lca"].value > 0
