"""Tables and pictures of the study, from the folders of its runs."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import kendalltau

import hardlook as hl
from hardlook.collect.results.rating_scores import score_likeness
from hardlook.data.images import find_image, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.voc import open_devkit
from hardlook.metrics.open_miou import open_miou
from hardlook.open_vocabulary.label_similarity import compute_label_similarity
from hardlook.open_vocabulary.miou.evaluation import sum_pairs
from hardlook.open_vocabulary.options import SimilarityOptions
from hardlook.open_vocabulary.record_columns import decode_label_map
from hardlook.randomness import generator
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import normalise_name
from hardlook.similarity.measures import compute_similarity
from open_vocabulary_study.plan import (
    BACKGROUND,
    MEASURES,
    SPLITS,
    TEXTS,
    Run,
    Training,
    list_runs,
    list_trainings,
    list_words,
)

SCORES = "open-vocabulary-scores.csv"
LISTS = ("own", "synonym", "narrower", "broader", "coco133")
COCO_NAMES = {
    "airplane": "aeroplane", "motorcycle": "motorbike", "couch": "sofa", "dining table": "diningtable",
    "potted plant": "pottedplant", "tv": "tvmonitor",
}  # fmt: skip
"""COCO's words for VOC's classes, where they differ."""

RATERS, NOISE = 3, 1.5
SHUFFLES = 20
PICTURED = ("2007_000063", "2007_005124", "2007_005273", "2008_003562")


def write_report(out: Path, docs: Path | None, *, test: Path, coco: Path | None) -> str:
    """The tables as Markdown, printed and returned; with `docs` also all scores as CSV and the pictures."""
    runs = find_runs(out)
    parts = [
        write_own_words(runs),
        write_other_words(runs),
        write_coco(runs),
        write_ratings(),
    ]
    text = "\n\n".join(part for part in parts if part)
    print(text)
    if docs is not None:
        write_scores(runs, docs / SCORES)
        draw_pictures(runs, docs / "images", test, coco)
    return text


def find_runs(out: Path) -> dict[Run, hl.Run]:
    """The planned runs that are finished."""
    planned = list_runs(list_trainings(9), ("conse-glove", "conse-minilm", "deeplabv3-voc"))
    folders = {one: out / "runs" / one.name for one in planned}
    return {one: hl.load(folder) for one, folder in folders.items() if (folder / "scores.json").is_file()}


def format_value(value: float) -> str:
    """Three digits without the zero before the point."""
    return "" if math.isnan(value) else f"{value:.3f}".replace("0.", ".", 1)


def format_score(score: Any) -> str:
    """A score with its interval."""
    return f"{format_value(score.value)} ({format_value(score.low)} to {format_value(score.high)})"


def make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def write_own_words(runs: Mapping[Run, hl.Run]) -> str:
    """VOC's images with VOC's words: seen and unseen classes, mean over seeds and, of seed 0, intervals."""
    rows = []
    for split in SPLITS:
        for encoder in ("efficientnet", "resnet50"):
            for text in TEXTS:
                seeds = [Run(Training(encoder, text, split, seed).name, "voc", "own") for seed in range(9)]
                found = [runs[one] for one in seeds if one in runs]
                if found:
                    rows.append([split, encoder, text, str(len(found)), *_describe_seeds(found, split)])
    head = ["classes that train", "encoder", "words", "seeds", "mIoU", "open mIoU", "spread over seeds"]
    head += ["seen: vanilla", "seen: open", "unseen: vanilla", "unseen: open"]
    return make_table(head, rows)


def _describe_seeds(found: Sequence[hl.Run], split: str) -> list[str]:
    values = np.array([one.scores["miou"].value for one in found])
    cells = [format_score(found[0].scores[name]) for name in ("miou", "open-miou")]
    cells.append(f"{format_value(values.min())} to {format_value(values.max())}" if len(values) > 1 else "")
    for part in ("seen", "unseen"):
        for name in ("miou", "open-miou"):
            if split == "all":
                cells.append("")
                continue
            own = [one.score(name, classes=part).value for one in found]
            first = format_score(found[0].score(name, classes=part))
            cells.append(f"{first}; mean {format_value(float(np.mean(own)))}" if len(own) > 1 else first)
    return cells


def write_other_words(runs: Mapping[Run, hl.Run]) -> str:
    """VOC's images with other words: vanilla, each word counted as what it was written for, and the six measures."""
    rows = []
    for text in TEXTS:
        model = Training("efficientnet", text, "all", 0).name
        for kind in LISTS:
            run = runs.get(Run(model, "voc", kind))
            if run is None:
                continue
            vanilla, meant = run.scores["miou"], score_meaning(run, kind)
            measured, gap = read_measures(run), meant - vanilla.value
            given = {name: measured[name] - vanilla.value for name in MEASURES}
            shares = {name: f" ({value / gap:.0%})" if gap > 0.02 else "" for name, value in given.items()}
            cells = [format_value(measured[name]) + shares[name] for name in MEASURES]
            true = run.rescore(reading={"mean-over": "gt-only"}).scores
            only = f"{format_value(true['miou'].value)}, {format_value(true['open-miou'].value)}"
            rows.append([text, kind, format_score(vanilla), format_value(meant), *cells, only])
            if text == TEXTS[0]:
                shuffled = shuffle_words(run)
                values = [format_value(shuffled[name]) for name in MEASURES]
                rows.append([text, f"{kind}, shuffled", "", "", *values, ""])
    head = ["model", "words", "vanilla", "by what was meant", *MEASURES, "mean over true classes: vanilla, path"]
    return make_table(head, rows) if rows else ""


def score_meaning(run: hl.Run, kind: str) -> float:
    """The vanilla mIoU of a run in which each word counts as the class of VOC that it was written for."""
    names = run.records["names"][0].split("\n")
    counts = sum_pairs(run.records).table()
    means = find_meanings(kind)
    merged = np.zeros_like(counts)
    for place, name in enumerate(names):
        merged[:, names.index(means.get(name, name)) if means.get(name, name) in names else place] += counts[:, place]
    merged[:, -1] += counts[:, -1]
    return open_miou(merged, np.eye(len(names))).vanilla.miou


def find_meanings(kind: str) -> dict[str, str]:
    """The class of VOC that each word of a list was written for; of COCO's other words it is the background.

    >>> find_meanings("narrower")["kitten"], find_meanings("coco133")["couch"], find_meanings("coco133")["cake"]
    ('cat', 'sofa', 'background')
    """
    classes = [name for name, _ in list_words("own")]
    if kind != "coco133":
        return dict(zip((name for name, _ in list_words(kind)), classes, strict=True))
    meant = {word: COCO_NAMES.get(word, word) for word in load_label_set("coco133").names}
    return {word: name if name in classes else BACKGROUND for word, name in meant.items()}


def read_measures(run: hl.Run) -> dict[str, float]:
    """Open mIoU by measure."""
    frame = run.slices("measure")
    return dict(zip(frame["measure"].to_list(), frame["value"].to_list(), strict=True))


def write_coco(runs: Mapping[Run, hl.Run]) -> str:
    """COCO's images: vanilla and open scores of all models, their ranks, and pairs that the two judge differently."""
    found = {one: run for one, run in runs.items() if one.test == "coco"}
    if len(found) < 2:
        return ""
    names = [name_run(one) for one in found]
    vanilla = np.array([run.scores["miou"].value for run in found.values()])
    rows = []
    for one, run in found.items():
        measured = read_measures(run)
        rows.append([name_run(one), one.words, format_score(run.scores["miou"]), format_score(run.scores["open-miou"])])
        rows[-1] += [format_value(measured[name]) for name in MEASURES[1:]]
        if one.words == "coco133":
            shuffled = shuffle_words(run)
            values = [format_value(shuffled[name]) for name in MEASURES]
            rows.append([f"{name_run(one)}, its words shuffled", one.words, "", *values])
    table = make_table(["model", "words", "vanilla mIoU", "open mIoU (path)", *MEASURES[1:]], rows)
    lines = []
    for name in MEASURES:
        opened = np.array([read_measures(run)[name] for run in found.values()])
        tau = kendalltau(vanilla, opened).statistic
        turned = [
            (names[a], names[b])
            for a, b in combinations(range(len(names)), 2)
            if (vanilla[a] - vanilla[b]) * (opened[a] - opened[b]) < 0
        ]
        lines.append([name, f"{tau:.2f}", str(len(turned)), names[int(opened.argmax())]])
    ranks = make_table(["measure", "Kendall's tau with vanilla", "pairs in the other order", "best model"], lines)
    return "\n\n".join([table, ranks, write_verdicts(list(found.values()), names)])


def shuffle_words(run: hl.Run) -> dict[str, float]:
    """Open mIoU by measure of a run whose predicted words are exchanged at random, but the background: the mean of 20.

    The masks stay; what a word says about them is lost. What is left is what a measure gives to any word.
    """
    options = run.scored.options
    assert isinstance(options, SimilarityOptions) and options.pred_labels is not None
    counts = sum_pairs(run.records).table()
    names = run.records["names"][0].split("\n")
    wanted = {normalise_name(name) for name in load_label_set(options.pred_labels).names} - {BACKGROUND}
    places = np.array([place for place, name in enumerate(names) if normalise_name(name) in wanted])
    rng = generator(0, "shuffled words")
    tables = []
    for _ in range(SHUFFLES):
        order = np.arange(counts.shape[1])
        order[places] = rng.permutation(places)
        tables.append(counts[:, order])
    found = {}
    for measure in MEASURES:
        matrix = compute_label_similarity(names, options.model_copy(update={"measure": measure})).matrix
        found[measure] = float(np.mean([open_miou(table, matrix).open.miou for table in tables]))
    return found


def write_verdicts(found: Sequence[hl.Run], names: Sequence[str]) -> str:
    """Pairs of models that `hl.compare` judges differently by vanilla and by open mIoU (path), and how many it does."""
    frame = hl.compare(*found, names=list(names)).verdicts
    rows, same = [], 0
    for first, second in combinations(names, 2):
        own = frame.filter((pl.col("first") == first) & (pl.col("second") == second))
        cells = {row["score"]: row for row in own.iter_rows(named=True) if row["score"] in ("miou", "open-miou")}
        if len(cells) < 2:
            continue
        if cells["miou"]["verdict"] == cells["open-miou"]["verdict"]:
            same += 1
            continue
        told = [f"{one['verdict']}: {one['difference']:+.3f} (p {one['adjusted p']:.3f})" for one in cells.values()]
        rows.append([first, second, *told])
    text = f"{same} of {same + len(rows)} pairs of models have the same verdict by both."
    return "\n\n".join([text, make_table(["first", "second", "vanilla", "open"], rows)] if rows else [text])


def name_run(one: Run) -> str:
    """A short name of a model with its words."""
    return f"{one.model.replace('-all', '')}{'' if one.words == 'coco133' else ', VOC words'}"


def write_ratings() -> str:
    """Whether simulated ratings find the measure that they follow: VOC's 190 pairs, each rated three times."""
    labels = load_label_set("voc20")
    matrices = {name: np.asarray(compute_similarity(labels, name).matrix) for name in MEASURES}
    pairs = list(combinations(range(len(labels.names)), 2))
    subjects = [f"{labels.names[a]}/{labels.names[b]}" for a, b in pairs]
    given = {name: np.array([matrix[a, b] for a, b in pairs]) for name, matrix in matrices.items()}
    values = {subject: {name: float(given[name][k]) for name in MEASURES} for k, subject in enumerate(subjects)}
    rows = []
    for followed in MEASURES:
        ranks = np.argsort(np.argsort(given[followed])) / (len(pairs) - 1)
        rng = generator(0, "simulated raters", followed)
        noisy = 1 + 9 * ranks[:, None] + NOISE * rng.standard_normal((len(pairs), RATERS))
        ratings = np.clip(np.rint(noisy), 1, 10).astype(int)
        frame = pl.DataFrame(
            [
                (f"simulated {rater}", f"t{k}", subject, "", int(ratings[k, rater]))
                for k, subject in enumerate(subjects)
                for rater in range(RATERS)
            ],
            ["participant", "item", "subject", "measure", "rating"],
            orient="row",
        )
        scores = score_likeness(frame, MEASURES, values)
        cells = [
            f"{one.score.value:.2f} ({one.score.interval.low:.2f} to {one.score.interval.high:.2f})"
            for one in scores.measures
        ]
        rows.append([followed, *cells])
    return make_table(["simulated raters follow", *MEASURES], rows)


def write_scores(runs: Mapping[Run, hl.Run], path: Path) -> None:
    """Every score over all images and every measure of every run, as CSV."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["model", "test", "words", "score", "value", "low", "high", "images"])
        for one, run in runs.items():
            for name, score in run.scores.items():
                numbers = [f"{value:.4f}" for value in (score.value, score.low, score.high)]
                writer.writerow([one.model, one.test, one.words, name, *numbers, score.n])
            for measure, value in read_measures(run).items():
                writer.writerow([one.model, one.test, one.words, f"open-miou by {measure}", f"{value:.4f}", "", "", ""])


def draw_pictures(runs: Mapping[Run, hl.Run], folder: Path, test: Path, coco: Path | None) -> None:
    """Images, truth and predicted words of some images of VOC and of COCO."""
    devkit = open_devkit(test)
    seen, sentences = (Training("efficientnet", text, "all", 0).name for text in TEXTS)
    unseen = Training("efficientnet", "glove", "fold1", 0).name
    rows = [(Run(seen, "voc", "own"), "VOC's words"), (Run(seen, "voc", "narrower"), "narrower words")]
    rows.append((Run(unseen, "voc", "own"), "without bus, car, cat, chair, cow"))
    chosen = [(runs[one], words) for one, words in rows if one in runs]
    known = set(devkit.ids("train"))
    if chosen:
        strips = []
        for name in [one for one in PICTURED if one in known] or devkit.ids("train")[:2]:
            image = devkit.image(name)
            truth = image.read_classes()
            names = [BACKGROUND, *devkit.classes]
            panels = [draw_panel(image.read(), None, (), "image")]
            panels.append(draw_panel(image.read(), np.where(truth == 255, -1, truth), names, "truth"))
            for run, words in chosen:
                panels.append(draw_panel(image.read(), *read_prediction(run, name), words))
            strips.append(np.concatenate(panels, axis=1))
        write_picture(folder / "open-vocabulary-voc.jpg", strips)
    rows = [(Run(seen, "coco", "coco133"), "GloVe"), (Run(sentences, "coco", "coco133"), "MiniLM")]
    chosen = [(runs[one], title) for one, title in rows if one in runs]
    if chosen and coco is not None:
        labels = load_label_set("coco133")
        numbers = {int(number): place for place, number in enumerate(labels.category_ids.tolist())}
        strips = []
        for path in sorted((coco / "semantic").iterdir())[3:60:15]:
            photo = read_image(find_image(coco / "images", path.stem))
            truth = read_label_map(path)
            places = np.vectorize(lambda number: numbers.get(int(number), -1))(truth)
            panels = [draw_panel(photo, None, (), "image"), draw_panel(photo, places, labels.names, "truth")]
            panels += [draw_panel(photo, *read_prediction(run, path.stem), words) for run, words in chosen]
            strips.append(np.concatenate(panels, axis=1))
        write_picture(folder / "open-vocabulary-coco.jpg", strips)


def read_prediction(run: hl.Run, unit: str) -> tuple[NDArray[np.int32], list[str]]:
    """The predicted map of a unit and the names of its numbers."""
    table = pl.scan_parquet(run.folder / "records" / "*.parquet").filter(pl.col("unit") == unit)
    record = table.select("prediction", "names").collect().row(0, named=True)
    return decode_label_map(record["prediction"]), record["names"].split("\n")


def draw_panel(
    image: NDArray[np.uint8],
    places: NDArray[Any] | None,
    names: Sequence[str],
    title: str,
    size: tuple[int, int] = (240, 180),
) -> NDArray[np.uint8]:
    """An image with its classes in colour, each named in its largest part."""
    width, height = size
    shown = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    if places is not None:
        small = cv2.resize(places.astype(np.float32), size, interpolation=cv2.INTER_NEAREST).astype(np.int32)
        rng = np.random.default_rng(7)
        colours = rng.integers(60, 256, (len(names) + 1, 3))
        for number in np.unique(small):
            if number < 0 or names[number] == BACKGROUND:
                continue
            mask = small == number
            shown[mask] = (0.45 * shown[mask] + 0.55 * colours[number]).astype(np.uint8)
            if mask.sum() < 0.02 * mask.size:
                continue
            _, parts, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
            largest = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
            y, x = (int(np.median(axis)) for axis in np.nonzero(parts == largest))
            put_text(shown, names[number], (x - 20, y))
    framed = np.full((height + 22, width + 4, 3), 255, np.uint8)
    framed[20 : 20 + height, 2 : 2 + width] = shown
    put_text(framed, title, (4, 14), plain=True)
    return framed


def put_text(image: NDArray[np.uint8], text: str, where: tuple[int, int], *, plain: bool = False) -> None:
    """White letters on a dark ground, or dark ones on paper; COCO's names of stuff without what follows the word."""
    shown = text.removesuffix("-merged").removesuffix("-other").removesuffix("-stuff")
    (width, height), below = cv2.getTextSize(shown, cv2.FONT_HERSHEY_SIMPLEX, 0.4, 1)
    x, y = max(0, min(where[0], image.shape[1] - width - 2)), max(height + 1, where[1])
    if not plain:
        cv2.rectangle(image, (x - 1, y - height - 1), (x + width + 1, y + below), (40, 40, 40), -1)
    colour = (20, 20, 20) if plain else (255, 255, 255)
    cv2.putText(image, shown, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.4, colour, 1, cv2.LINE_AA)


def write_picture(path: Path, strips: Sequence[NDArray[np.uint8]]) -> None:
    """Strips below each other as a JPEG of less than 200 kB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = cv2.cvtColor(np.concatenate(strips, axis=0), cv2.COLOR_RGB2BGR)
    for quality in (85, 75, 65, 50):
        done, data = cv2.imencode(".jpg", whole, [cv2.IMWRITE_JPEG_QUALITY, quality])
        if done and len(data) < 195_000:
            break
    path.write_bytes(data.tobytes())
