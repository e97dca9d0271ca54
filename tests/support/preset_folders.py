"""Tiny datasets in the layouts of the presets, and predictions as evaluators write them: two images of 6 x 4 pixels."""

import json

import numpy as np
from panoptic_files import Drawn, write_panoptic
from published_folders import SIZE, make_ade20k, make_ade20k_847, make_catseg_context, make_pairs, save_image

from hardlook.data import rle
from hardlook.similarity.label_sets import load_label_set

LEFT, RIGHT = np.zeros((SIZE[1], SIZE[0]), bool), np.zeros((SIZE[1], SIZE[0]), bool)
LEFT[:, :3] = RIGHT[:, 3:] = True

# Names of ADE20K's classes as the panoptic json of MaskFormer spells them, where they are not those of ade150.
MASKFORMER_NAMES = {"road": "road, route", "windowpane": "window ", "swimming pool": "pool", "ashcan": "trash can"}


def make_san_context(root, numbers, classes=59):
    base = root / ("pcontext_full" if classes == 459 else "pcontext")
    make_pairs(base, "val/image", "val/label", numbers, map_end=".tif" if classes == 459 else ".png")


def make_voc(root, numbers):
    """VOC2012's devkit; its list has one of the two images."""
    base = root / "VOCdevkit" / "VOC2012"
    make_pairs(base, "JPEGImages", "SegmentationClass", numbers, stems=("2007_000033", "2007_000042"))
    lists = base / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("2007_000033\n")


def make_san_voc(root, numbers):
    make_pairs(root / "VOC2012", "JPEGImages", "annotations_detectron2/val", numbers)


def make_odise_voc(root, numbers):
    make_pairs(root / "pascal_voc_d2", "images/validation", "annotations_pascal20/validation", numbers)


def make_semantic(root):
    """The five datasets of Table 4; the first pixel has one label, and all others another."""
    make_ade20k_847(root, [0, 846])
    make_catseg_context(root, [0, 458], 459)
    make_ade20k(root / "ADEChallengeData2016", [1, 150])
    make_catseg_context(root, [1, 57])  # the bag and the window; pc59 has them at 20 and 57
    make_san_voc(root, [0, 19])


def write_masks(path, maps):
    """`sem_seg_predictions.json`; `maps` is {stem: array of category ids}."""
    rows = [
        {"file_name": f"datasets/images/{stem}.jpg", "category_id": int(k), "segmentation": rle.encode(drawn == k)}
        for stem, drawn in maps.items()
        for k in np.unique(drawn)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows))


def make_instances(root, annotations, images, labels, ids, names):
    """Two images; a json with all `names` by category id, and one object of each of the first two in both images."""
    rows, objects = [], []
    for place, image in enumerate(ids):
        file_name = f"{image:012d}.jpg" if isinstance(image, int) else f"{image}.jpg"
        save_image(root / images / file_name, place)
        rows.append({"id": image, "file_name": file_name, "width": SIZE[0], "height": SIZE[1]})
        for category, mask in zip(labels, (LEFT, RIGHT), strict=True):
            encoded = rle.encode(mask)
            about = {"bbox": list(rle.to_box(encoded)), "area": int(mask.sum()), "segmentation": encoded, "iscrowd": 0}
            objects.append({"id": len(objects) + 1, "image_id": image, "category_id": category, **about})
    categories = [{"id": category, "name": name} for category, name in names.items()]
    path = root / annotations
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"images": rows, "categories": categories, "annotations": objects}))
    return path


def make_coco_instances(root):
    """A person (base) on the left and a cat (novel) on the right."""
    labels = load_label_set("coco80")
    names = dict(zip(labels.category_ids.tolist(), labels.names, strict=True))
    return make_instances(root, "annotations/instances_val2017.json", "val2017", (1, 17), (139, 285), names)


def make_ade_instances(root):
    """ADE20K's 100 things: a bed on the left and a flag on the right; ids of images are names."""
    names = {label.id: label.name for label in load_label_set("ade150") if label.isthing}
    ids = ("ADE_val_00000001", "ADE_val_00000002")
    base = root / "ADEChallengeData2016"
    return make_instances(base, "ade20k_instance_val.json", "images/validation", (7, 149), ids, names)


def write_results(path, truth, swapped=None):
    """`coco_instances_results.json`: the objects of a json, found exactly; `swapped` renames categories."""
    rows = [
        {
            "image_id": one["image_id"],
            "category_id": (swapped or {}).get(one["category_id"], one["category_id"]),
            "bbox": one["bbox"],
            "score": 0.9,
            "segmentation": one["segmentation"],
        }
        for one in json.loads(truth.read_text())["annotations"]
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows))


def _segments(*categories):
    return Drawn(np.where(LEFT, 1, 2), dict(enumerate(categories, 1)))


def make_coco_panoptic(root):
    """A person on the left and a car (unknown of Table 6) on the right, in both images."""
    labels = load_label_set("coco133")
    categories = {
        category: (label.name, label.isthing)
        for category, label in zip(labels.category_ids.tolist(), labels, strict=True)
    }
    images = {139: _segments(1, 3), 285: _segments(1, 3)}
    for number in images:
        save_image(root / "val2017" / f"{number:012d}.jpg", number)
    path = write_panoptic(root / "annotations", "panoptic_val2017", images, categories)
    content = json.loads(path.read_text())
    for image in content["images"]:
        image["file_name"] = f"{image['id']:012d}.jpg"
    path.write_text(json.dumps(content))
    return path


def make_ade_panoptic(root):
    """A wall on the left and a bed on the right, in both images; ids of images are names."""
    base = root / "ADEChallengeData2016"
    categories = {
        label.id: (MASKFORMER_NAMES.get(label.name, label.name), label.isthing) for label in load_label_set("ade150")
    }
    images = {name: _segments(0, 7) for name in ("ADE_val_00000001", "ADE_val_00000002")}
    for place, name in enumerate(images):
        save_image(base / "images" / "validation" / f"{name}.jpg", place)
    return write_panoptic(base, "ade20k_panoptic_val", images, categories)


def write_panoptic_output(folder, truth, swapped=None):
    """detectron2's panoptic output: `predictions.json` without categories and the PNGs; `swapped` renames them."""
    content = json.loads(truth.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    for row in content["annotations"]:
        (folder / row["file_name"]).write_bytes((truth.with_suffix("") / row["file_name"]).read_bytes())
        for segment in row["segments_info"]:
            segment["category_id"] = (swapped or {}).get(segment["category_id"], segment["category_id"])
    del content["categories"]
    (folder / "predictions.json").write_text(json.dumps(content))


def make_documented(root):
    """The datasets of docs/score-published-methods.md, and what the twelve methods' evaluators write for them."""
    datasets, outputs = root / "datasets", root / "outputs"
    make_semantic(datasets)
    stems = {"ade20k": ("ADE_val_00000001", "ADE_val_00000002")}
    last = {"ade20k-847": 846, "pascal-context-459": 458, "ade20k": 149, "pascal-context": 57, "pascal-voc-20": 19}
    for method in ("simseg", "pomp", "ovseg", "san", "cat-seg", "fc-clip"):
        for name, number in last.items():
            # FC-CLIP's registered ids of VOC count from 1.
            offset = int(method == "fc-clip" and name == "pascal-voc-20")
            drawn = np.full((SIZE[1], SIZE[0]), number + offset)
            drawn[0, 0] = offset or int(name == "pascal-context")
            folder = outputs / method / name / "inference"
            write_masks(folder / "sem_seg_predictions.json", dict.fromkeys(stems.get(name, ("a", "b")), drawn))
            (folder / "sem_seg_evaluation.pth").write_bytes(b"pickled, and never opened")
    coco, ade = make_coco_instances(datasets / "coco"), make_ade_instances(datasets)
    for method in ("fc-clip", "odise"):
        write_results(
            outputs / method / "ade20k-instances" / "inference" / "coco_instances_results.json", ade, {149: 7}
        )
    for method in ("regionclip", "rasheed"):
        write_results(outputs / method / "inference" / "coco_instances_results.json", coco, {17: 18})
    write_results(outputs / "cora" / "results.json", coco, {17: 18})
    for kind in ("bbox", "segm"):
        write_results(outputs / "cgg" / f"coco.{kind}.json", coco, {17: 18})
    coco, ade = make_coco_panoptic(datasets / "coco"), make_ade_panoptic(datasets)
    for method in ("fc-clip", "odise", "opsnet"):
        write_panoptic_output(outputs / method / "coco-panoptic" / "inference", coco, {3: 8})
        write_panoptic_output(outputs / method / "ade20k-panoptic" / "inference", ade, {7: 57})
    write_panoptic_output(outputs / "cgg" / "panoptic", coco, {3: 8})
    (outputs / "cgg" / "panoptic" / "predictions.json").rename(outputs / "cgg" / "coco.panoptic.json")
