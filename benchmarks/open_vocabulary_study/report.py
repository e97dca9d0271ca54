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
from hardlook.open_vocabulary.record_columns import decode_label_map
from hardlook.randomness import generator
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.matrix_files import write_matrix
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
PICTURED = ("2007_000063", "2007_005124", "2007_005273", "2008_003562")


def write_report(out: Path, docs: Path | None, *, test: Path, coco: Path | None) -> str:
    """The tables as Markdown, printed and returned; with `docs` also all scores as CSV and the pictures."""
    runs = find_runs(out)
    parts = [
        write_own_words(runs),
        write_other_words(runs, out),
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


def write_other_words(runs: Mapping[Run, hl.Run], out: Path) -> str:
    """VOC's images with other words: vanilla, each word counted as what it was written for, and the six measures."""
    rows = []
    for text in TEXTS:
        model = Training("efficientnet", text, "all", 0).name
        for kind in LISTS:
            run = runs.get(Run(model, "voc", kind))
            if run is None:
                continue
            vanilla = run.scores["miou"]
            matrix = write_oracle(kind, run.records["names"][0].split("\n"), out / "words")
            oracle = run.rescore(similarity=matrix, compare=("identity",)).scores["open-miou"]
            measured = read_measures(run)
            cells = []
            for name in MEASURES:
                gap = oracle.value - vanilla.value
                share = f" ({(measured[name] - vanilla.value) / gap:.0%})" if gap > 0.02 else ""
                cells.append(format_value(measured[name]) + share)
            rows.append([text, kind, format_score(vanilla), format_score(oracle), *cells])
    return make_table(["model", "words", "vanilla", "by what they were written for", *MEASURES], rows) if rows else ""


def read_measures(run: hl.Run) -> dict[str, float]:
    """Open mIoU by measure."""
    frame = run.slices("measure")
    return dict(zip(frame["measure"].to_list(), frame["value"].to_list(), strict=True))


def write_oracle(kind: str, labels: Sequence[str], folder: Path) -> Path:
    """A matrix in which a word has similarity 1 to the class that it was written for and 0 to all others.

    `labels` are those of the run, true and predicted ones.
    """
    classes = [name for name, _ in list_words("own")]
    if kind == "coco133":
        words = list(load_label_set("coco133").names)
        meant = [COCO_NAMES.get(word, word) for word in words]
        meant = [name if name in classes else BACKGROUND for name in meant]
    else:
        words, meant = [name for name, _ in list_words(kind)], classes
    means = {**dict(zip(words, meant, strict=True)), **{name: name for name in classes}}
    same = np.array([[float(means.get(one, one) == means.get(other, other)) for other in labels] for one in labels])
    path = folder / f"oracle-{kind}.csv"
    write_matrix(path, same, labels)
    return path


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


def write_verdicts(found: Sequence[hl.Run], names: Sequence[str]) -> str:
    """What `hl.compare` says of each pair under vanilla and open mIoU, where the two verdicts differ."""
    compared = hl.compare(*found, names=list(names))
    verdicts = {(one.name, one.first, one.second): one for one in compared.comparison.headline}
    return "\n".join(f"- {sentence}" for sentence in compared.sentences) if verdicts else ""


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
    best = Training("efficientnet", "minilm", "all", 0).name
    unseen = Training("efficientnet", "glove", "fold1", 0).name
    rows = [(Run(best, "voc", "own"), "VOC's words"), (Run(best, "voc", "narrower"), "narrower words")]
    rows.append((Run(unseen, "voc", "own"), "bus, car, cat, chair, cow did not train"))
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
    chosen = [(runs[one], "COCO's 133 words") for one in (Run(best, "coco", "coco133"),) if one in runs]
    if chosen and coco is not None:
        labels = load_label_set("coco133")
        numbers = {int(number): place for place, number in enumerate(labels.category_ids.tolist())}
        strips = []
        for path in sorted((coco / "semantic").iterdir())[3:60:15]:
            image = read_image(find_image(coco / "images", path.stem))
            truth = read_label_map(path)
            places = np.vectorize(lambda number: numbers.get(int(number), -1))(truth)
            panels = [draw_panel(image, None, (), "image"), draw_panel(image, places, labels.names, "truth")]
            panels += [draw_panel(image, *read_prediction(run, path.stem), words) for run, words in chosen]
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
    shown = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    if places is not None:
        small = cv2.resize(places.astype(np.float32), size, interpolation=cv2.INTER_NEAREST).astype(np.int32)
        rng = np.random.default_rng(7)
        colours = rng.integers(60, 256, (len(names) + 1, 3))
        for number in np.unique(small):
            if number < 0 or names[number] == BACKGROUND:
                continue
            mask = small == number
            shown[mask] = (0.45 * shown[mask] + 0.55 * colours[number]).astype(np.uint8)
            if mask.sum() < 0.01 * mask.size:
                continue
            _, parts, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
            largest = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
            y, x = (int(np.median(axis)) for axis in np.nonzero(parts == largest))
            put_text(shown, names[number], (max(0, min(x - 20, width - 70)), y))
    framed = np.full((height + 22, width + 4, 3), 255, np.uint8)
    framed[20 : 20 + height, 2 : 2 + width] = shown
    put_text(framed, title, (4, 14), plain=True)
    return framed


def put_text(image: NDArray[np.uint8], text: str, where: tuple[int, int], *, plain: bool = False) -> None:
    """White letters with a dark edge, or dark ones on paper."""
    if not plain:
        cv2.putText(image, text, where, cv2.FONT_HERSHEY_SIMPLEX, 0.42, (0, 0, 0), 3, cv2.LINE_AA)
    colour = (20, 20, 20) if plain else (255, 255, 255)
    cv2.putText(image, text, where, cv2.FONT_HERSHEY_SIMPLEX, 0.42, colour, 1, cv2.LINE_AA)


def write_picture(path: Path, strips: Sequence[NDArray[np.uint8]]) -> None:
    """Strips below each other as a JPEG of less than 200 kB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = cv2.cvtColor(np.concatenate(strips, axis=0), cv2.COLOR_RGB2BGR)
    for quality in (85, 75, 65, 50):
        done, data = cv2.imencode(".jpg", whole, [cv2.IMWRITE_JPEG_QUALITY, quality])
        if done and len(data) < 195_000:
            break
    path.write_bytes(data.tobytes())
