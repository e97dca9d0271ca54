"""Every reader of files from elsewhere: how to write a small valid file of each format, and how to read it to the end.

Each `read` does what a command does with the file: listing, decoding, joining, scoring. What a reader leaves for
later (masks, records, pictures) is asked for here. Nothing is cached between two inputs.
"""

import json
import struct

import numpy as np
import PIL.Image
import polars as pl
from fuzz_engine import Reader
from fuzz_services import SERVICE_READERS

from hardlook.data import coco_detection, coco_panoptic, concept_context, label_maps, rle, toss_pairs, voc
from hardlook.data.class_masks import coco as coco_masks
from hardlook.data.class_masks import open_class_mask_folders, open_coco, open_fss
from hardlook.data.class_masks import source as class_mask_source
from hardlook.data.click_file import check_clicks, read_clicks, write_clicks
from hardlook.data.images import decode_image, read_image
from hardlook.data.object_instances import list_instances
from hardlook.data.previous_masks import PreviousMasks
from hardlook.errors import DataError, HardlookError

SIZE = (20, 15)  # width, height


def pixels(seed=0, size=SIZE):
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)


def labels(top=3):
    made = np.zeros((SIZE[1], SIZE[0]), np.uint8)
    for number in range(1, top + 1):
        made[number * 3 : number * 3 + 3, 2:12] = number
    return made


# Images and label maps


def make_image(suffix, mode="RGB", **options):
    def make(folder):
        PIL.Image.fromarray(pixels()).convert(mode).save(folder / f"a{suffix}", **options)

    return make


def read_one_image(suffix):
    def read(folder):
        path = folder / f"a{suffix}"
        size = class_mask_source.read_image_size(path)
        image = read_image(path)
        assert image.shape[1::-1] == size
        assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
        assert image.flags.writeable

    return read


def images():
    formats = {
        ".png": {}, ".jpg": {"quality": 80}, ".bmp": {}, ".gif": {"mode": "P"}, ".tif": {"compression": "tiff_lzw"},
        ".webp": {"quality": 80}, ".ppm": {},
    }  # fmt: skip
    for suffix, options in formats.items():
        share = {".png": 2.0, ".jpg": 0.7}.get(suffix, 0.7)
        yield Reader(f"image{suffix}", make_image(suffix, **options), (f"a{suffix}",), read_one_image(suffix), share)
    for mode in ("P", "I;16", "1", "RGBA"):
        yield Reader(f"image-{mode}.png", make_image(".png", mode), ("a.png",), read_one_image(".png"), 0.5)
    progressive = make_image(".jpg", progressive=True)
    yield Reader("image-progressive.jpg", progressive, ("a.jpg",), read_one_image(".jpg"), 0.25)


def make_label_maps(folder):
    PIL.Image.fromarray(labels()).save(folder / "grey.png")
    palette = PIL.Image.fromarray(labels()).convert("P")
    palette.putpalette(list(range(256)) * 3)
    palette.save(folder / "palette.png")
    PIL.Image.fromarray(np.repeat(labels()[..., None], 3, 2)).save(folder / "three.png")
    PIL.Image.fromarray(labels().astype(np.uint16)).save(folder / "wide.tif")
    np.save(folder / "a.npy", labels().astype(np.int64))
    np.savez_compressed(folder / "a.npz", labels())


def read_label_maps(names):
    def read(folder):
        for name in names:
            found = label_maps.read_label_map(folder / name)
            assert found.dtype == np.int32 and found.ndim == 2

    return read


LABEL_FILES = ("grey.png", "palette.png", "three.png", "wide.tif", "a.npy", "a.npz")


# COCO, LVIS, panoptic


def make_coco(folder):
    (folder / "images").mkdir()
    masks = [labels() == number for number in (1, 2, 3)]
    annotations = []
    for number, mask in enumerate(masks, 1):
        encoded = rle.encode(mask)
        x, y, width, height = rle.to_box(encoded)
        polygon = [[x, y, x + width, y, x + width, y + height, x, y + height]]
        runs = {"size": [SIZE[1], SIZE[0]], "counts": _runs(mask)}
        segmentation = (polygon, encoded, runs)[number - 1]
        annotations.append(
            {"id": number, "image_id": 7 + number % 2, "category_id": 16 + number % 2, "bbox": [x, y, width, height],
             "area": int(mask.sum()), "iscrowd": int(number == 3), "segmentation": segmentation}
        )  # fmt: skip
    document = {
        "images": [
            {"id": i, "file_name": f"{i:012d}.png", "width": SIZE[0], "height": SIZE[1], "license": 1} for i in (7, 8)
        ],
        "categories": [
            {"id": 16, "name": "dog", "synset": "dog.n.01", "synonyms": ["dog"], "frequency": "c"},
            {"id": 17, "name": "cat", "synset": "cat.n.01", "synonyms": ["cat"], "frequency": "r"},
        ],
        "annotations": annotations,
    }  # fmt: skip
    for i in (7, 8):
        PIL.Image.fromarray(pixels(i)).save(folder / "images" / f"{i:012d}.png")
    (folder / "instances.json").write_text(json.dumps(document))
    found = [
        {"image_id": 7, "category_id": 16, "score": 0.5, "bbox": [1, 2, 3, 4], "segmentation": rle.encode(masks[0])},
        {"image_id": 8, "category_id": 17, "score": 0.25, "bbox": [1, 2, 3, 4.5], "segmentation": [[1, 1, 5, 1, 5, 5]]},
    ]
    (folder / "results.json").write_text(json.dumps(found))


def make_lvis(folder):
    make_coco(folder)
    document = json.loads((folder / "instances.json").read_text())
    for image in document["images"]:
        image["coco_url"] = f"http://images.cocodataset.org/val2017/{image.pop('file_name')}"
        image |= {"neg_category_ids": [16], "not_exhaustive_category_ids": [17]}
    (folder / "instances.json").write_text(json.dumps(document))
    from hardlook.similarity.matrix_files import write_matrix

    names = [category["name"] for category in document["categories"]]
    write_matrix(folder / "similarity.csv", np.eye(len(names)), names)


def _runs(mask):
    flat, counts, value = mask.T.ravel(), [0], False
    for one in flat:
        if one != value:
            counts.append(0)
            value = one
        counts[-1] += 1
    return counts


def read_coco(folder):
    truth = coco_detection.read_instances(folder / "instances.json")
    for image in truth.images:
        image.masks()
    list_instances({"instances": folder / "instances.json", "images": folder / "images"}, min_area=1)


def read_coco_class_masks(folder):
    coco_masks._read_annotations.cache_clear()
    coco_masks._list_images.cache_clear()
    class_mask_source._list_folder.cache_clear()
    source = open_coco({"images": folder / "images", "instances": folder / "instances.json"})
    for token in source.tokens():
        source.read_mask(token)
        source.read_classes(source.image_of(token))


def read_results(folder):
    truth = coco_detection.read_instances(folder / "instances.json")
    for kind in ("bbox", "segm"):
        found = coco_detection.read_results(folder / "results.json", truth, kind)
        for image in truth.images:
            found[image.id].area(kind)
            if kind == "segm":
                found[image.id].mask_overlap(image)


def read_open_ap(folder):
    from hardlook.harness.options import parse_options
    from hardlook.open_vocabulary.ap import options, units

    given = {"gt": folder / "instances.json", "pred": folder / "results.json", "iou": "segm", "labels": "lvis"}
    given = {
        key: value for key, value in given.items() if key in options.OpenApOptions.model_fields and key != "labels"
    }
    for unit in units.list_units(parse_options(options.OpenApOptions, given)):
        units.prepare_unit(unit)


def read_lvis(folder):
    from hardlook.harness.options import parse_options
    from hardlook.open_vocabulary.ap import evaluation, matches, options, units

    # With a matrix of one's own no sense is looked for.
    given = {"gt": folder / "instances.json", "pred": folder / "results.json", "similarity": folder / "similarity.csv"}
    listed = units.list_units(parse_options(options.OpenApOptions, given))
    records = evaluation.SCHEMA.frame(evaluation.evaluate_units([units.prepare_unit(unit) for unit in listed], None))
    if len(records):
        matches.match_records(records, federated=True).tables()


def make_detectron2(folder):
    (folder / "gt").mkdir()
    rows = []
    for number, made in enumerate((labels(), labels(2))):
        PIL.Image.fromarray(made).save(folder / "gt" / f"{number}.png")
        for label in np.unique(made).tolist():
            mask = rle.encode(made == label)
            rows.append({"file_name": f"val/{number}.jpg", "category_id": label, "segmentation": mask})
    (folder / "sem_seg_predictions.json").write_text(json.dumps(rows))
    (folder / "names.csv").write_text(
        "id,name,synset\n0,cat,cat.n.01\n1,dog,dog.n.01\n2,car,car.n.01\n3,bus,bus.n.01\n"
    )


def read_detectron2(folder):
    from hardlook.harness.options import parse_options
    from hardlook.open_vocabulary.miou import options, units

    given = {"gt": folder / "gt", "pred": folder, "labels": str(folder / "names.csv")}
    for unit in units.list_units(parse_options(options.SemanticOptions, given)):
        units.prepare_unit(unit)


def make_detectron2_panoptic(folder):
    make_panoptic(folder)
    (folder / "inference").mkdir()
    for path in (folder / "panoptic").iterdir():
        (folder / "inference" / path.name).write_bytes(path.read_bytes())
    (folder / "inference" / "predictions.json").write_bytes((folder / "panoptic.json").read_bytes())


def read_detectron2_panoptic(folder):
    from hardlook.harness.options import parse_options
    from hardlook.open_vocabulary.pq import options, units

    given = {"gt": folder / "panoptic.json", "pred": folder / "inference"}
    for unit in units.list_units(parse_options(options.OpenPqOptions, given)):
        units.prepare_unit(unit)


def make_panoptic(folder):
    from hardlook.world.layouts import write_world

    write_world(folder / "world", "coco-panoptic", seed=0, count=2, size=(64, 64))
    for path in (folder / "world").iterdir():
        path.rename(folder / path.name)
    (folder / "world").rmdir()
    first = sorted((folder / "panoptic").iterdir())[0]
    first.rename(folder / "panoptic" / "first.png")
    text = (folder / "panoptic.json").read_text().replace(f'"{first.name}"', '"first.png"', 1)
    document = json.loads((folder / "panoptic.json").read_text())
    for row in document["annotations"]:
        row["file_name"] = "first.png" if row["file_name"] == first.name else row["file_name"]
    assert text
    (folder / "panoptic.json").write_text(json.dumps(document))


def read_panoptic(folder):
    listed = list_instances(
        {"panoptic": folder / "panoptic.json", "segments": folder / "panoptic", "images": folder / "images"}
    )
    for one in listed.instances[:3]:
        one.read_target()
    coco_panoptic.read_panoptic(folder / "panoptic.json", folder / "panoptic", folder / "images")


def read_open_pq(folder):
    from hardlook.harness.options import parse_options
    from hardlook.open_vocabulary.pq import options, units

    given = {"gt": folder / "panoptic.json", "pred": folder / "panoptic.json"}
    for unit in units.list_units(parse_options(options.OpenPqOptions, given)):
        units.prepare_unit(unit)


def read_encoded(folder):
    """Run-length encodings as models and records hold them."""
    try:
        one = json.loads((folder / "rle.json").read_text(errors="replace"))
    except (ValueError, RecursionError):
        return
    for read in (rle.decode, rle.area, rle.to_box, lambda one: rle.iou([one], [one]),
                 lambda one: rle.from_segmentation(one, 15, 20)):  # fmt: skip
        try:
            read(one)
        except DataError as error:
            if isinstance(error.__cause__, MemoryError):
                raise


def make_encoded(folder):
    (folder / "rle.json").write_text(json.dumps(rle.encode(labels() == 1)))


# Files inside of other files: shards, tables of Hugging Face datasets; lists of published datasets


def make_shards(folder):
    from hardlook.data.stored_files.shards import write_shards

    write_shards([(pixels(seed), labels()) for seed in (0, 1)], folder / "shards")


def read_all_shards(folder):
    from hardlook.data.stored_files.shards import read_shards

    for sample in read_shards(folder / "shards").values():
        image, mask = sample.find_image(), sample.find_mask()
        decode_image(image.read_bytes(), image.path)
        label_maps.decode_label_map(mask.read_bytes(), mask.path)


def make_hf_dataset(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    make_label_maps(folder)
    make_image(".png")(folder)
    image, mask = ({"bytes": (folder / name).read_bytes(), "path": name} for name in ("a.png", "grey.png"))
    table = pa.table({"image": pa.array([image] * 2, kind), "mask": pa.array([mask] * 2, kind)})
    (folder / "saved").mkdir()
    with pa.OSFile(str(folder / "saved" / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (folder / "saved" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}]}))
    pq.write_table(table, folder / "a.parquet", row_group_size=1)


def read_hf_dataset(name):
    def read(folder):
        from hardlook.data.stored_files import hf_datasets

        forget_tables()
        for sample in hf_datasets.read_samples(folder / name, "val"):
            decode_image(sample.image.read_bytes(), sample.image.path)
            label_maps.decode_label_map(sample.mask.read_bytes(), sample.mask.path)

    return read


OBJECT_TABLE = "hf/validation-00000-of-00001.parquet"


def make_object_formats(folder):
    """Objects and labels in tables, shards and exports, from one COCO json."""
    import stored_datasets as stored

    content = stored.write_coco(folder, count=2)
    images = folder / "images"
    stored.write_hf(folder / "hf", content, images)
    stored.write_shard(folder / "objects.tar", content, images)
    stored.write_fiftyone(folder / "boxes", content, images)
    (folder / "xml" / "labels").mkdir(parents=True)
    (folder / "xml" / "data").symlink_to(images)
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox>"
    xml = f"<annotation><object><name>owl</name>{box}</object></annotation>"
    (folder / "xml" / "labels" / "000000.xml").write_text(xml)
    write_labelled(folder, images)


def write_labelled(folder, images):
    import tarfile

    import pyarrow as pa
    import pyarrow.parquet as pq
    import stored_datasets as stored

    data = (images / "000000.png").read_bytes()
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    table = pa.table({"image": pa.array([{"bytes": data, "path": "a.png"}], kind), "label": [1], "domain": ["snow"]})
    described = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(described), folder / "labelled.parquet")
    with tarfile.open(folder / "labelled.tar", "w") as archive:
        members = {"png": data, "cls": b"dog", "json": b'{"context": "snow"}'}
        for end, content in members.items():
            stored.add_member(archive, f"0001.{end}", content)


def read_objects_of(source, path):
    def read(folder):
        from hardlook.data.stored_files import read_stored_image
        from hardlook.data.stored_files.sources import read_object_samples

        forget_tables()
        samples = read_object_samples(source, folder / path, None)
        for image in samples.truth.images:
            if image.segmentations and None not in image.segmentations:
                image.masks()
            read_stored_image(samples.files[image.id])

    return read


def read_labelled_of(source, path):
    def read(folder):
        from hardlook.data.stored_files import hash_stored, read_stored_image
        from hardlook.data.stored_files.sources import read_labelled_samples

        forget_tables()
        samples = read_labelled_samples(source, folder / path)
        dataset = concept_context.open_samples(folder / path, samples)
        for row in dataset.rows:
            hash_stored(row.file)
            read_stored_image(row.file)

    return read


def forget_tables():
    from hardlook.data.stored_files import hf_datasets

    for opened in (hf_datasets._open_arrow, hf_datasets._read_metadata, hf_datasets._read_group):
        opened.cache_clear()


def make_published(folder):
    import published_folders

    published_folders.make_mmseg_context(folder, [0, 1, 59])


CONTEXT_LIST = "VOCdevkit/VOC2010/ImageSets/SegmentationContext/val.txt"


def read_published(folder):
    from hardlook.harness.options import parse_options
    from hardlook.open_vocabulary.miou import options, units

    for unit in units.list_units(parse_options(options.SemanticOptions, {"data": {"pascal-context": folder}})):
        units.prepare_unit(unit)


# VOC, folders of masks, FSS-1000, interactive layouts, previous masks


def make_world(layout, count=4):
    def make(folder):
        from hardlook.world.layouts import write_world

        write_world(folder / "data", layout, seed=0, count=count, size=(64, 64))

    return make


VOC_FILES = (
    "data/ImageSets/Segmentation/train.txt", "data/classes.txt", "data/SegmentationClass/2026_000001.png",
    "data/SegmentationObject/2026_000001.png", "data/JPEGImages/2026_000001.png",
)  # fmt: skip


def read_voc(folder):
    class_mask_source._list_folder.cache_clear()
    devkit = voc.open_devkit(folder / "data")
    for image in devkit.images("train"):
        image.read_classes()
    for one in list_instances({"voc": folder / "data"}, split="train", min_area=1).instances[:3]:
        one.read()
        one.read_target()
    source = open_class_mask_folders({"voc": folder / "data"})
    for token in source.tokens()[:4]:
        source.read_mask(token)
        source.read_image(token)


FSS_FILES = ("data/owl/1.bmp", "data/owl/1.png")


def read_fss(folder):
    class_mask_source._list_folder.cache_clear()
    source = open_fss(folder / "data")
    for token in source.tokens()[:3]:
        source.read_mask(token)
        source.read_image(token)


ISEGM_FILES = ("data/data_GT/000001.png", "data/boundary_GT/000001.png")


def read_isegm(folder):
    for one in list_instances({"grabcut": folder / "data"}, min_area=1).instances[:2]:
        one.read()
        one.read_target()


def make_tetris(folder):
    for name in ("img", "masks"):
        (folder / "tetris" / name).mkdir(parents=True)
        (folder / "davis" / ("gt" if name == "masks" else name)).mkdir(parents=True)
    for stem in ("a", "b"):
        PIL.Image.fromarray(pixels()).save(folder / "tetris" / "img" / f"{stem}.jpg")
        PIL.Image.fromarray(labels()).save(folder / "tetris" / "masks" / f"{stem}.png")
        PIL.Image.fromarray(pixels()).save(folder / "davis" / "img" / f"{stem}.jpg")
        PIL.Image.fromarray((labels() > 1).astype(np.uint8) * 255).save(folder / "davis" / "gt" / f"{stem}.png")


TETRIS_FILES = ("tetris/img/a.jpg", "tetris/masks/a.png", "davis/img/a.jpg", "davis/gt/a.png")


def read_tetris(folder):
    for name in ("tetris", "davis"):
        for one in list_instances({name: folder / name}, min_area=1).instances[:4]:
            one.read()
            one.read_target()


# Clicks


def make_clicks(folder):
    make_world("isegm")(folder)
    names = ["000001"] * 3 + ["000002"] * 3
    later = [name + "_mivos_fn" for name in names]
    rows = {
        "dataset": ["GrabCut"] * 12, "image_stem": names * 2, "object_stem": [""] * 12,
        "model_type": [""] * 6 + ["mivos"] * 6, "click_type": ["first"] * 6 + ["fn"] * 6, "full_stem": names + later,
        "device": ["pc", "mobile"] * 6, "x": [3.0, 5.5, 8.0] * 4, "y": [4.0, 9.25, 2.0] * 4,
        "w": [64] * 12, "h": [64] * 12,
    }  # fmt: skip
    write_clicks(folder / "clicks.csv", check_clicks(pl.DataFrame(rows)))
    shown = {**{name: values[:6] * 2 for name, values in rows.items()}, "dataset": ["text"] * 6 + ["cut-out"] * 6}
    write_clicks(folder / "previews.csv", check_clicks(pl.DataFrame(shown)))
    (folder / "previous").mkdir()
    empty = np.zeros((64, 64), np.uint8)
    for stem in sorted(set(later)):
        PIL.Image.fromarray(empty).save(folder / "previous" / f"{stem}.png")


CLICKED_FILES = ("clicks.csv", "previews.csv", "previous/000001_mivos_fn.png")


def read_click_table(folder):
    table = read_clicks(folder / "clicks.csv")
    for name in table.datasets():
        table.for_dataset(name).first().by_full_stem()
        table.for_dataset(name).by_full_stem()


def read_clicked_data(folder):
    from hardlook.rclicks.user_clicks.loading import load_clicked_data

    given = {"grabcut": folder / "data"}
    found = load_clicked_data(
        folder / "clicks.csv", given, folder / "previous", folder / "previews.csv", scenes=0, seed=0
    )
    for source in found.sources:
        try:
            source.read()
        except HardlookError as error:
            if isinstance(error.__cause__, MemoryError):
                raise
    PreviousMasks(folder / "previous").read("000001_mivos_fn", (64, 64))


# Manifests, splits, pair lists, tables of attributes


def make_contexts(folder):
    make_world("concept-context", 6)(folder)
    table = pl.read_csv(folder / "data" / "manifest.csv")
    table.with_columns(("data/" + pl.col("path")).alias("path")).write_parquet(folder / "manifest.parquet")
    concepts = sorted(set(table["concept"]))
    rows = [f"{name},{'train' if place % 2 else 'test'}" for place, name in enumerate(concepts)]
    (folder / "splits.csv").write_text("\n".join(["concept,split", *rows]) + "\n")


CONTEXT_FILES = ("data/manifest.csv", "manifest.parquet", "splits.csv")


def read_contexts(folder):
    for source in (folder / "data", folder / "manifest.parquet"):
        for rule in (None, folder / "splits.csv", "size"):
            dataset = concept_context.open_dataset(source, rule=rule)
            dataset.shared_concepts()
            dataset.cells()
    dataset.image_table()
    for row in dataset.rows[:2]:
        row.read()


def make_pairs(folder):
    pairs = {
        (1, "easy_sal"): [toss_pairs.Pair("1_2008_1", "1_2008_2", 1, 0, "easy_sal"),
                          toss_pairs.Pair("1_2008_3", "1_2008_1", 1, 0, "easy_sal")],
        (2, ""): [toss_pairs.Pair("1_a", "1_a", 2, 0, "L0"), toss_pairs.Pair("1_a", "1_a", 2, 0, "L1", transform=5),
                  toss_pairs.Pair("1_a", "1_b", 2, 0, "L2"), toss_pairs.Pair("1_a", "2_b", 2, 0, "L4"),
                  toss_pairs.Pair("1_a", "1_b", 2, 0, "L6")],
        (3, ""): [toss_pairs.Pair("1_owl_1", "2_owl_2", 3, -1), toss_pairs.Pair("3_cat_1", "1_cat_2", 3, -1)],
    }  # fmt: skip
    for (tier, split), rows in pairs.items():
        toss_pairs.write_pairs(toss_pairs.locate_tier_list(folder, tier, max(rows[0].fold, -1), split).path, rows)
    fixed = toss_pairs.locate_fixed_list(folder, "pascal5i", 0)
    toss_pairs.write_pairs(fixed.path, [toss_pairs.Pair("1_a", "1_b", 0, 0)])
    from hardlook.file_hashes import hash_file
    from hardlook.toss.tiers.attributes import AttributeRow, write_attributes

    files = {path.relative_to(folder).as_posix(): hash_file(path) for path in folder.rglob("*.txt")}
    from hardlook.toss.tiers.folder import SCHEMA

    (folder / "manifest.json").write_text(json.dumps({"schema": SCHEMA, "seed": 0, "files": files}))
    (folder / "analysis").mkdir()
    numbers = {
        name: 0.5
        for name in AttributeRow.__dataclass_fields__
        if name not in ("filename", "blob_count", "class_name", "image")
    }
    rows = [AttributeRow(f"{k}_a", **numbers, blob_count=2, class_name="dog", image="a") for k in range(1, 4)]
    write_attributes(folder / "analysis" / "test_stats.csv", rows)


PAIR_FILES = (
    "tiers/attribute/split0_q_easy_sal.txt", "tiers/suppcog/split0_tier2.txt", "tiers/general/general_tier.txt",
    "fixedsplits/pascal5i/split0_test.txt", "manifest.json", "analysis/test_stats.csv",
)  # fmt: skip


def read_pair_lists(folder):
    from hardlook.toss.tiers.attributes import assign_partitions, is_measured_table, read_attributes
    from hardlook.toss.tiers.folder import list_changed_files, read_memberships

    for file in toss_pairs.list_pair_files(folder):
        toss_pairs.read_pairs(file)
    read_memberships(folder)
    assign_partitions(read_attributes(folder / "analysis" / "test_stats.csv"))
    is_measured_table(folder / "analysis" / "test_stats.csv")
    list_changed_files(folder)


# Labels, matrices, word vectors, class sets


def make_labels(folder):
    (folder / "a.csv").write_text("id,name,aliases,isthing,synset\n0,dog,hound|puppy,1,dog.n.01\n1,wall,,0,wall.n.01\n")
    (folder / "a.tsv").write_text("name\tcategory_id\ndog\t3\nwall\t5\n")
    (folder / "a.json").write_text(
        json.dumps({"categories": [{"id": 3, "name": "dog", "isthing": 1}, {"id": 5, "name": "sky"}]})
    )
    (folder / "lvis.json").write_text(
        json.dumps({"categories": [{"id": 2, "name": "dog", "synset": "dog.n.01", "synonyms": ["dog", "hound"]},
                                   {"id": 1, "name": "cat", "synset": "cat.n.01", "synonyms": []}]})
    )  # fmt: skip
    (folder / "a.txt").write_text("7: door, double door\n9: wall\n")
    (folder / "sets.json").write_text(json.dumps({"seen": ["dog"], "unseen": ["wall", "sky"]}))


LABEL_TABLES = ("a.csv", "a.tsv", "a.json", "lvis.json", "a.txt")


def read_labels(folder):
    from hardlook.open_vocabulary.class_sets import load_class_sets
    from hardlook.similarity.label_files import read_label_file, read_lvis_labels

    for name in LABEL_TABLES:
        read_label_file(folder / name)
    read_lvis_labels(folder / "lvis.json")
    load_class_sets(folder / "sets.json", ["dog", "wall", "sky"])


def make_matrices(folder):
    from hardlook.similarity.matrix_files import write_matrix

    values = np.array([[1.0, 0.25, 0.5], [0.25, 1.0, 0.125], [0.5, 0.125, 1.0]])
    for name in ("a.csv", "b.npy", "c.parquet", "d.npy"):
        write_matrix(folder / name, values, ["dog", "cat", "wall"])
    (folder / "d.txt").unlink()
    (folder / "d.json").write_text(json.dumps(["dog", "cat", "wall"]))


MATRIX_FILES = ("a.csv", "b.npy", "b.txt", "c.parquet", "d.npy", "d.json")


def read_matrices(folder):
    from hardlook.similarity.matrix_files import read_matrix

    for name in ("a.csv", "b.npy", "c.parquet", "d.npy"):
        read_matrix(folder / name)


def make_vectors(folder):
    from safetensors.numpy import save_file

    words = ("cat", "dog", "ice cream", "naïve")
    values = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, values.tolist(), strict=True)]
    (folder / "glove.txt").write_text("\n".join(lines) + "\n")
    (folder / "w2v.vec").write_text("\n".join(["4 3", *lines]) + "\n")
    packed = b"".join(
        word.replace(" ", "_").encode() + b" " + row.tobytes() + b"\n" for word, row in zip(words, values, strict=True)
    )
    (folder / "w2v.bin").write_bytes(b"4 3\n" + packed)
    arguments = struct.pack("<12id", 3, 5, 5, 1, 5, 1, 2, 2, 10, 2, 3, 100, 1e-4)
    counts = struct.pack("<3i2q", 2, 2, 0, 99, -1)
    entries = b"".join(word.encode() + b"\0" + struct.pack("<qb", 7, 0) for word in ("cat", "dog"))
    matrix = np.ones((12, 3), np.float32).tobytes()
    magic = struct.pack("<2i", 793_712_314, 12)
    (folder / "fast.bin").write_bytes(magic + arguments + counts + entries + struct.pack("<?2q", False, 12, 3) + matrix)
    for name in ("one", "two", "three"):
        (folder / name).mkdir()
        np.save(folder / name / "v.npy", values)
    (folder / "one" / "v.txt").write_text("\n".join(words) + "\n")
    (folder / "two" / "v.json").write_text(json.dumps(words))
    pl.DataFrame({"word": words, "count": [1, 2, 3, 4]}).write_parquet(folder / "three" / "v.parquet")
    save_file({"v": values}, folder / "table.safetensors", {"words": json.dumps(words)})
    save_file({word: row.copy() for word, row in zip(words, values, strict=True)}, folder / "each.safetensors")


VECTOR_FILES = (
    "glove.txt", "w2v.vec", "w2v.bin", "fast.bin", "one/v.npy", "one/v.txt", "two/v.json", "three/v.parquet",
    "table.safetensors", "each.safetensors",
)  # fmt: skip


def read_vectors(folder):
    from hardlook.similarity.word_vectors import read_word_vectors

    for name in (
        "glove.txt",
        "w2v.vec",
        "w2v.bin",
        "fast.bin",
        "one",
        "two",
        "three",
        "table.safetensors",
        "each.safetensors",
    ):
        found = read_word_vectors(folder / name, {"cat", "dog", "gnu", "ice cream"})
        assert all(vector.shape == (found.dimension,) for vector in found.vectors.values())


# Weights


def make_weights(folder):
    import torch
    from tiny_clickability import TINY

    from hardlook.networks.clickability import build_network, save_checkpoint, save_parts

    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    torch.save({"state_dict": layer.state_dict()}, folder / "a.pt")
    torch.save(layer.state_dict(), folder / "old.pth", _use_new_zipfile_serialization=False)
    from safetensors.torch import save_file

    save_file(layer.state_dict(), folder / "a.safetensors", {"made": "here"})
    network = build_network(TINY)
    save_checkpoint(network, folder / "clickability.safetensors", TINY, size=64)
    save_parts(network, folder / "parts", TINY, size=64, limit=1 << 30)
    (folder / "hf").mkdir()
    (folder / "hf" / "config.json").write_text(json.dumps({"model_type": "bert"}))
    index = {"metadata": {}, "weight_map": {"a": "a.safetensors"}}
    (folder / "hf" / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file(layer.state_dict(), folder / "hf" / "a.safetensors")


WEIGHT_FILES = ("a.pt", "old.pth", "a.safetensors", "hf/config.json", "hf/model.safetensors.index.json")


def read_weights(folder):
    import torch

    from hardlook.models.transformers_folder import check_folder
    from hardlook.networks.loading import load_into, load_state_dict

    torch.set_num_threads(1)
    for name in WEIGHT_FILES[:3]:
        load_into(torch.nn.Linear(3, 2), load_state_dict(folder / name))
    check_folder(folder / "hf", ("bert",), remedy="download it")


def read_clickability(folder):
    import torch

    from hardlook.networks.clickability import load_network

    torch.set_num_threads(1)
    load_network(folder / "clickability.safetensors")


READERS = (
    *images(),
    *(Reader(f"labels-{name}", make_label_maps, (name,), read_label_maps([name]), 0.7) for name in LABEL_FILES),
    Reader("coco", make_coco, ("instances.json",), read_coco, 3),
    Reader("coco-class-masks", make_coco, ("instances.json",), read_coco_class_masks),
    Reader("coco-results", make_coco, ("instances.json", "results.json", "results.json"), read_results, 2),
    Reader("open-ap", make_coco, ("instances.json", "results.json"), read_open_ap, 0.5),
    Reader("lvis", make_lvis, ("instances.json", "results.json"), read_lvis),
    Reader("detectron2-semantic", make_detectron2, ("sem_seg_predictions.json",), read_detectron2),
    Reader(
        "detectron2-panoptic", make_detectron2_panoptic, ("inference/predictions.json", "inference/first.png"),
        read_detectron2_panoptic, 0.4,
    ),
    Reader("panoptic", make_panoptic, ("panoptic.json", "panoptic.json", "panoptic/first.png"), read_panoptic, 1.5),
    Reader("open-pq", make_panoptic, ("panoptic.json", "panoptic.json", "panoptic/first.png"), read_open_pq, 0.4),
    Reader("rle", make_encoded, ("rle.json",), read_encoded, 3),
    Reader("shards", make_shards, ("shards/shard-000000.tar",), read_all_shards, 1.5),
    Reader("hf-arrow", make_hf_dataset, ("saved/a.arrow", "saved/state.json"), read_hf_dataset("saved"), 1.5),
    Reader("hf-parquet", make_hf_dataset, ("a.parquet",), read_hf_dataset("a.parquet")),
    Reader("hf-objects", make_object_formats, (OBJECT_TABLE,), read_objects_of("hf-dataset", "hf")),
    Reader("hf-labels", make_object_formats, ("labelled.parquet",), read_labelled_of("hf-dataset", "labelled.parquet")),
    Reader("shard-objects", make_object_formats, ("objects.tar",), read_objects_of("webdataset", "objects.tar")),
    Reader("shard-labels", make_object_formats, ("labelled.tar",), read_labelled_of("webdataset", "labelled.tar"), 0.5),
    Reader("fiftyone-boxes", make_object_formats, ("boxes/labels.json",), read_objects_of("fiftyone", "boxes")),
    Reader("fiftyone-xml", make_object_formats, ("xml/labels/000000.xml",), read_objects_of("fiftyone", "xml")),
    Reader("published-dataset", make_published, (CONTEXT_LIST,), read_published, 0.5),
    Reader("voc", make_world("voc"), VOC_FILES, read_voc),
    Reader("fss", make_world("fss", 12), FSS_FILES, read_fss, 0.5),
    Reader("isegm", make_world("isegm"), ISEGM_FILES, read_isegm),
    Reader("tetris-davis", make_tetris, TETRIS_FILES, read_tetris, 0.5),
    Reader("clicks", make_clicks, ("clicks.csv",), read_click_table, 1.5),
    Reader("clicked-data", make_clicks, CLICKED_FILES, read_clicked_data, 0.2),
    Reader("contexts", make_contexts, CONTEXT_FILES, read_contexts, 0.6),
    Reader("toss", make_pairs, PAIR_FILES, read_pair_lists, 1.5),
    Reader("label-tables", make_labels, (*LABEL_TABLES, "sets.json"), read_labels, 1.5),
    Reader("matrices", make_matrices, MATRIX_FILES, read_matrices, 1.5),
    Reader("word-vectors", make_vectors, VECTOR_FILES, read_vectors, 0.8),
    Reader("weights", make_weights, WEIGHT_FILES, read_weights, 0.5),
    Reader("clickability", make_weights, ("clickability.safetensors",), read_clickability, 0.05),
    *SERVICE_READERS,
)  # fmt: skip
