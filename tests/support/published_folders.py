"""Tiny folders in the layouts in which datasets are published or usually converted: two images of 6 x 4 pixels."""

import json

import numpy as np
import PIL.Image

SIZE = (6, 4)  # width, height


def save_image(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(path)


def save_map(path, numbers):
    """A label map whose first pixels are `numbers`, the others the last of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wide = path.suffix == ".tif"
    drawn = np.full(SIZE[0] * SIZE[1], numbers[-1], np.uint16 if wide else np.uint8)
    drawn[: len(numbers)] = numbers
    PIL.Image.fromarray(drawn.reshape(SIZE[1], SIZE[0])).save(path)


def make_pairs(root, images, maps, numbers, *, stems=("a", "b"), image_end=".jpg", map_end=".png"):
    for seed, stem in enumerate(stems):
        save_image(root / images / f"{stem}{image_end}", seed)
        save_map(root / maps / f"{stem}{map_end}", numbers)


def make_ade20k(root, numbers, maps="annotations"):
    stems = ("ADE_val_00000001", "ADE_val_00000002")
    make_pairs(root, "images/validation", f"{maps}/validation", numbers, stems=stems)
    make_pairs(root, "images/training", f"{maps}/training", numbers, stems=("ADE_train_00000001",))


def make_ade20k_847(root, numbers):
    base = root / "ADE20K_2021_17_01"
    make_pairs(base, "images_detectron2/validation", "annotations_detectron2/validation", numbers, map_end=".tif")


def make_mmseg_context(root, numbers):
    base = root / "VOCdevkit" / "VOC2010"
    make_pairs(base, "JPEGImages", "SegmentationClassContext", numbers, stems=("2008_000002", "2008_000003"))
    lists = base / "ImageSets" / "SegmentationContext"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("2008_000002\n")
    (lists / "train.txt").write_text("2008_000003\n")


def make_catseg_context(root, numbers, classes=59):
    base = root / "VOCdevkit" / "VOC2010"
    map_end = ".tif" if classes == 459 else ".png"
    make_pairs(base, "JPEGImages", f"annotations_detectron2/pc{classes}_val", numbers, map_end=map_end)


def make_odise_context(root, numbers, classes=59):
    base = root / "pascal_ctx_d2"
    map_end = ".tif" if classes == 459 else ".png"
    make_pairs(base, "images/validation", f"annotations_ctx{classes}/validation", numbers, map_end=map_end)


def make_cityscapes(root, numbers, kind="labelIds"):
    for seed, (city, frame) in enumerate([("frankfurt", "000000_000294"), ("lindau", "000001_000019")]):
        name = f"{city}_{frame}"
        save_image(root / "leftImg8bit" / "val" / city / f"{name}_leftImg8bit.png", seed)
        save_map(root / "gtFine" / "val" / city / f"{name}_gtFine_{kind}.png", numbers)
        save_map(root / "gtFine" / "val" / city / f"{name}_gtFine_instanceIds.png", [200])


def make_coco_stuff(root, numbers, images="val2017", maps="stuffthingmaps/val2017", map_end=".png"):
    stems = ("000000000139", "000000000285")
    make_pairs(root, images, maps, numbers, stems=stems, map_end=map_end)


def make_lvis(root, annotations="lvis_v1_val.json", images="."):
    """Two images, one of COCO's train2017; the dog is annotated in one, the cat known to be absent."""
    rows = []
    for number, split in ((139, "val2017"), (285, "train2017")):
        save_image(root / images / split / f"{number:012d}.jpg", number)
        url = f"http://images.cocodataset.org/{split}/{number:012d}.jpg"
        lists = {"neg_category_ids": [1], "not_exhaustive_category_ids": []}
        rows.append({"id": number, "coco_url": url, "width": SIZE[0], "height": SIZE[1], **lists})
    categories = [
        {"id": 1, "name": "cat", "synset": "cat.n.01", "synonyms": ["cat"], "frequency": "f"},
        {"id": 2, "name": "dog", "synset": "dog.n.01", "synonyms": ["dog"], "frequency": "c"},
    ]
    box = [[0, 0, 4, 0, 4, 3, 0, 3]]
    objects = [{"id": 1, "image_id": 139, "category_id": 2, "bbox": [0, 0, 4, 3], "area": 12, "segmentation": box}]
    path = root / annotations
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"images": rows, "categories": categories, "annotations": objects}))


def make_documented(root):
    """The folders and predictions of docs/datasets.md, each prediction half right."""
    make_ade20k(root / "ADEChallengeData2016", [1, 2, 150, 0])
    make_mmseg_context(root, [1, 2, 59, 0])
    make_cityscapes(root / "cityscapes", [7, 33, 24, 0])
    make_coco_stuff(root / "coco", [0, 12, 91, 255])
    make_lvis(root / "lvis")
    predictions = {
        "ade20k": (["ADE_val_00000001", "ADE_val_00000002"], [0, 1, 2, 3]),
        "context": (["2008_000002"], [0, 20, 1, 1]),
        "cityscapes": (["frankfurt_000000_000294", "lindau_000001_000019"], [0, 18, 12, 0]),
        "coco-stuff": (["000000000139", "000000000285"], [0, 11, 81, 0]),
    }
    for name, (stems, numbers) in predictions.items():
        for stem in stems:
            save_map(root / "predictions" / name / f"{stem}.png", numbers)
    found = [{"image_id": 139, "category_id": 2, "score": 0.9, "bbox": [0, 0, 4, 3]}]
    (root / "predictions" / "lvis.json").write_text(json.dumps(found))
