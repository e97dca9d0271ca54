"""One small dataset of objects, made from scenes of the planted world, in every format that readers know.

The planted models answer to its images, so a run on one format can be compared with that on another.
"""

import io
import json
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import PIL.Image

from hardlook.open_vocabulary.ap.units import CATEGORIES, list_scene_objects
from hardlook.world.planted import PlantedWorld


def write_coco(folder, count=3):
    """`images/` and `instances.json`, with masks as run lengths."""
    world = PlantedWorld(count=count, size=(96, 72))
    (folder / "images").mkdir(parents=True)
    images, annotations = [], []
    for index in range(count):
        rendered = world[index]
        PIL.Image.fromarray(rendered.image).save(folder / "images" / f"{index:06d}.png")
        objects = list_scene_objects(rendered, index)
        images.append({"id": objects.id, "file_name": f"{index:06d}.png", "width": 96, "height": 72})
        rows = zip(objects.ids, objects.category_ids, objects.boxes, objects.area, objects.segmentations, strict=True)
        annotations += [
            {
                "id": int(i), "image_id": objects.id, "category_id": int(category), "bbox": box.tolist(),
                "area": float(area), "iscrowd": 0, "segmentation": mask,
            }
            for i, category, box, area, mask in rows
        ]  # fmt: skip
    categories = [{"id": int(number), "name": name} for number, name in CATEGORIES.items()]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "instances.json").write_text(json.dumps(content))
    return content


def list_rows(content):
    """Of each image its entry, and its objects with the names of their categories."""
    names = {one["id"]: one["name"] for one in content["categories"]}
    for image in content["images"]:
        objects = [one for one in content["annotations"] if one["image_id"] == image["id"]]
        yield image, [{**one, "category": names[one["category_id"]]} for one in objects]


def write_hf(folder, content, images, *, lists=False, masks=True):
    """A Parquet file as the hub has it: `objects` as a structure of lists, or with `lists` a list of structures."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = sorted(one["name"] for one in content["categories"])
    file = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    mask = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    fields = {"bbox": pa.list_(pa.float64()), "category": pa.int64(), "area": pa.float64()}
    fields |= {"segmentation": mask} if masks else {}
    columns = {"image": [], "objects": []}
    for image, objects in list_rows(content):
        columns["image"].append({"bytes": (images / image["file_name"]).read_bytes(), "path": image["file_name"]})
        rows = [
            {**{name: one.get(name) for name in fields}, "category": names.index(one["category"])} for one in objects
        ]
        columns["objects"].append(rows if lists else {name: [row[name] for row in rows] for name in fields})
    objects = (
        pa.list_(pa.struct(fields)) if lists else pa.struct({name: pa.list_(kind) for name, kind in fields.items()})
    )
    table = pa.table({"image": pa.array(columns["image"], file), "objects": pa.array(columns["objects"], objects)})
    label = {"names": names, "_type": "ClassLabel"}
    inner = {"category": label, "bbox": {"feature": {"dtype": "float64", "_type": "Value"}, "_type": "List"}}
    features = {"image": {"_type": "Image"}, "objects": {"feature": inner, "_type": "List"}}
    described = json.dumps({"info": {"features": features}})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "validation-00000-of-00001.parquet"
    pq.write_table(table.replace_schema_metadata({"huggingface": described}), path, row_group_size=2)
    return folder


def add_member(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def write_shard(path, content, images):
    """A shard of images and `json` with the objects, categories by name."""
    with tarfile.open(path, "w") as archive:
        for image, objects in list_rows(content):
            stem = Path(image["file_name"]).stem
            add_member(archive, f"{stem}.png", (images / image["file_name"]).read_bytes())
            kept = ("bbox", "category", "segmentation", "area", "iscrowd")
            rows = [{key: one[key] for key in kept} for one in objects]
            add_member(archive, f"{stem}.json", json.dumps({"objects": rows}).encode())
    return path


def write_fiftyone(folder, content, images):
    """FiftyOne's own format of boxes: relative, with names."""
    shutil.copytree(images, folder / "data")
    names = [one["name"] for one in content["categories"]]
    labels = {}
    for image, objects in list_rows(content):
        scale = np.array([image["width"], image["height"]] * 2)
        labels[Path(image["file_name"]).stem] = [
            {
                "label": names.index(one["category"]),
                "bounding_box": (np.array(one["bbox"]) / scale).tolist(),
                "attributes": {"iscrowd": 0},
            }
            for one in objects
        ] or None
    (folder / "labels.json").write_text(json.dumps({"classes": names, "labels": labels}))
    return folder


class CocoPairs:
    """As torchvision's CocoDetection: items are an image and COCO's annotations; `coco` is pycocotools' index."""

    def __init__(self, content, images):
        self.content, self.root = content, images
        self.ids = [one["id"] for one in content["images"]]

    @property
    def coco(self):
        by_id = {kind: {one["id"]: one for one in self.content[kind]} for kind in ("images", "categories")}
        return SimpleNamespace(imgs=by_id["images"], cats=by_id["categories"])

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        image = self.content["images"][index]
        rows = [one for one in self.content["annotations"] if one["image_id"] == image["id"]]
        return PIL.Image.open(self.root / image["file_name"]).convert("RGB"), rows
