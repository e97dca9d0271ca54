"""Published facts about 18 few-shot datasets: their sizes, and how alike images and concept names are.

From "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation" (ICLR 2024), Table 1. A dash in print
is None. `similarity` is the mean cosine of image and concept text (the paper's M_ce, by CLIP); the paper calls it a
distance. MetaCoCo's own splits sum to 864 images less than its total: the size of the class toilet.

>>> [row.similarity for row in DATASETS if row.name in ("miniImageNet", "MetaCoCo")]
[0.211, 0.142]
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """How many in all and in each split, as printed; None where a dash stands."""

    all: int
    train: int | None
    val: int | None
    test: int | None


@dataclass(frozen=True)
class PublishedDataset:
    """A dataset of the table: classes, images, contexts (0 where it has none) and similarity in [-1, 1]."""

    name: str
    classes: Counts
    images: Counts
    contexts: int
    similarity: float


# fmt: off
DATASETS = (
    PublishedDataset("miniImageNet", Counts(100, 64, 16, 20), Counts(60_000, 38_400, 9600, 12_000), 0, 0.211),
    PublishedDataset("CIFAR-FS", Counts(100, 64, 16, 20), Counts(60_000, 38_400, 9600, 12_000), 0, 0.181),
    PublishedDataset("Stanford Dogs", Counts(120, 70, 20, 30), Counts(20_580, 12_165, 3312, 5103), 0, 0.244),
    PublishedDataset("Stanford Cars", Counts(196, 130, 17, 49), Counts(16_185, 10_766, 1394, 4025), 0, 0.164),
    PublishedDataset("Aircraft", Counts(100, 70, 15, 15), Counts(10_000, 5000, 2500, 2500), 0, 0.228),
    PublishedDataset("CUB-200-2011", Counts(200, 140, 30, 30), Counts(11_788, 7648, 1182, 2958), 0, 0.266),
    PublishedDataset("Describable Textures", Counts(47, 33, 7, 7), Counts(5640, 3960, 840, 840), 0, 0.194),
    PublishedDataset("Traffic Signs", Counts(43, None, None, 43), Counts(50_000, None, None, 50_000), 0, 0.193),
    PublishedDataset("Omniglot", Counts(50, 25, 5, 20), Counts(32_460, 17_660, 1620, 13_180), 0, 0.212),
    PublishedDataset("Fungi", Counts(1394, 994, 200, 200), Counts(89_760, 64_449, 12_195, 13_116), 0, 0.191),
    PublishedDataset("VGG Flower", Counts(102, 71, 15, 16), Counts(8189, 5655, 1109, 1425), 0, 0.177),
    PublishedDataset("MSCOCO", Counts(80, None, 40, 40), Counts(860_001, None, 513_021, 346_980), 0, 0.173),
    PublishedDataset("Quick Draw", Counts(345, 241, 52, 52), Counts(50426266, 34776331, 7939640, 7710295), 0, 0.168),
    PublishedDataset("CropDiseases", Counts(38, None, None, 38), Counts(43_456, None, None, 43_456), 0, 0.213),
    PublishedDataset("ChestX", Counts(8, None, None, 8), Counts(25_848, None, None, 25_848), 0, 0.183),
    PublishedDataset("EuroSAT", Counts(10, None, None, 10), Counts(27_000, None, None, 27_000), 0, 0.173),
    PublishedDataset("ISIC2018", Counts(7, None, None, 7), Counts(10_015, None, None, 10_015), 0, 0.186),
    PublishedDataset("MetaCoCo", Counts(100, 64, 16, 20), Counts(175_637, 156_666, 5839, 12_268), 155, 0.142),
)
# fmt: on
