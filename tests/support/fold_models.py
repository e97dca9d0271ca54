"""A one-shot segmenter that is trained per fold: its weights file holds the fold, and its masks depend on it."""

from pathlib import Path

from hardlook.models.planted.few_shot import PlantedOneShot


class FoldNet:
    """Finds what the planted model with the faults of its weights file finds."""

    def __init__(self, weights: Path, seed: int = 0) -> None:
        self.fold = int(Path(weights).read_text())
        self.weights_files = [Path(weights)]
        self.planted = PlantedOneShot(saliency=0.2 * self.fold, support_blind=0.3 * self.fold, seed=seed)

    def segment_queries(self, queries, supports):
        return self.planted.segment_queries(queries, supports)


def write_weights(folder, folds=(0, 1)):
    """One file per fold; the path of all, with `{fold}`."""
    folder.mkdir(parents=True, exist_ok=True)
    for fold in folds:
        (folder / f"fold{fold}.pth").write_text(str(fold))
    return str(folder / "fold{fold}.pth")
