"""Display modes of previews compared: what people click after each way of showing the object, against words alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hardlook.clicks.device_comparison import ClickSets, Comparison, compare_crowds
from hardlook.commands.clicks.clicked_sources import StoredSource
from hardlook.commands.clicks.joined_clicks import text_mode
from hardlook.data.object_instances import scaled_points
from hardlook.errors import DataError
from hardlook.metrics.click_distances import WassersteinReading
from hardlook.regions.boxes import box_of


def compare_modes(
    sources: Sequence[StoredSource], *, file: Path, reading: WassersteinReading = "released"
) -> dict[str, Comparison]:
    """Each display mode against the text mode, on the stems that both have."""
    modes = sorted({source.display_mode for source in sources})
    words = text_mode(modes, file=file)
    by_stem: dict[str, list[StoredSource]] = {}
    for source in sources:
        by_stem.setdefault(f"{source.instance.dataset}/{source.clicks.full_stem}", []).append(source)
    sets = [_click_sets(together) for together in by_stem.values()]
    return {
        mode: compare_crowds((one for one in sets if mode in one.clicks), mode, words, reading=reading)
        for mode in modes
        if mode != words
    }


def _click_sets(together: Sequence[StoredSource]) -> ClickSets:
    instance = together[0].instance
    box = box_of(instance.read_target().mask)
    if box is None:
        raise DataError("the object's mask is empty", unit=instance.full_stem, remedy="leave the stem out")
    size = instance.size()
    points = {
        one.display_mode: scaled_points(one.clicks.points, one.clicks.size, size, unit=one.key) for one in together
    }
    return ClickSets(
        instance.dataset, instance.full_stem, (box.width, box.height), points, image_key=instance.image_key
    )
