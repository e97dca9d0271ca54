import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from hardlook.errors import DataError, ModelError
from hardlook.models.feature_tables import GPU_BATCH, ROWS_PER_FLUSH, build_feature_table, open_feature_table
from hardlook.models.registry import register
from hardlook.models.roles import Features

COUNT = 2 * ROWS_PER_FLUSH + 22

SCRIPT = textwrap.dedent(
    f"""
    import os, signal, sys
    from pathlib import Path
    import numpy as np
    from hardlook.models.feature_tables import build_feature_table
    from hardlook.models.registry import register
    from hardlook.models.roles import Features

    folder, log, kill_after = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

    @register("logging-encoder", role="encoder")
    class Logging:
        dimension = 2
        def fingerprint(self):
            return "logging"
        def encode(self, images):
            with log.open("ab") as stream:
                stream.write(b"x")
            if log.stat().st_size == kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return Features(np.stack([image[0, 0, :2] for image in images]).astype(np.float32))

    def read(path):
        return np.full((4, 4, 3), int(path.stem), np.uint8)

    paths = [Path(f"{{number}}.png") for number in range({COUNT})]
    names = [path.stem for path in paths]
    table = build_feature_table("logging-encoder", {{}}, paths, names, maps=False, read=read, folder=folder)
    assert table.vectors[:, 0].tolist() == list(range({COUNT}))
    """
)


def run_script(tmp_path, log, kill_after=0):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), str(log), str(kill_after)])


def test_a_killed_process_is_continued_by_the_next(tmp_path):
    log = tmp_path / "log"
    assert run_script(tmp_path, log, 2 * ROWS_PER_FLUSH + 10).wait(60) == -signal.SIGKILL
    assert run_script(tmp_path, log).wait(60) == 0
    # The ten images after the last flush, the killed one among them, are encoded twice.
    assert log.stat().st_size == COUNT + 10


def test_of_two_processes_one_encodes_and_the_other_waits(tmp_path):
    log = tmp_path / "log"
    both = [run_script(tmp_path, log) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert log.stat().st_size == COUNT


ASKED: list[int] = []


@register("test-table-encoder", role="encoder")
class TableEncoder:
    """Means of the colours; counts the images of every call, and fails in the way it is told."""

    dimension = 3

    def __init__(self, fault: str = "", scale: float = 1.0) -> None:
        self.fault, self.scale = fault, scale

    def encode(self, images):
        ASKED.append(len(images))
        vectors = np.stack([image.reshape(-1, 3).mean(0) for image in images]).astype(np.float32) * self.scale
        maps = [np.ascontiguousarray(np.moveaxis(image[:2, :2], -1, 0)).astype(np.float32) for image in images]
        if self.fault == "grows":
            maps = [np.zeros((3, len(ASKED), 2), np.float32) for _ in images]
        if self.fault == "infinite maps":
            maps[0][:] = np.nan
        if self.fault == "refuses":
            raise ModelError("too dark")
        if self.fault == "breaks":
            raise RuntimeError("out of paint")
        if self.fault == "infinite":
            vectors[0, 0] = np.inf
        if self.fault == "long":
            vectors = np.concatenate([vectors, vectors], axis=1)
        return Features(vectors, None if self.fault == "no maps" else maps)


def read(path):
    """An image that is a function of the path's number."""
    return np.random.default_rng(int(path.stem)).integers(0, 256, (8, 6, 3), dtype=np.uint8)


PATHS = [Path(f"{number}.png") for number in (4, 2, 9, 2, 7, 4)]

CONTENT = [path.stem for path in PATHS]


def table(folder, *, maps=True, args=None, paths=PATHS, **more):
    content = [path.stem for path in paths]
    return build_feature_table(
        "test-table-encoder", args or {}, paths, content, maps=maps, read=read, folder=folder, **more
    )


@pytest.fixture(autouse=True)
def forget():
    ASKED.clear()


@pytest.mark.parametrize("maps", [True, False])
def test_rows_are_those_of_the_encoder_one_image_a_call_and_a_content_once(tmp_path, maps):
    found = table(tmp_path, maps=maps)
    assert ASKED == [1, 1, 1, 1]
    for row, path in enumerate(PATHS):
        alone = TableEncoder().encode([read(path)])
        assert np.array_equal(found.vectors[row], alone.vectors[0])
        assert not maps or np.array_equal(found.maps[row], alone.maps[0])
    assert found.vectors.dtype == np.float32
    assert (found.maps is not None) == maps
    assert isinstance(found.vectors, np.memmap)
    assert not found.vectors.flags.writeable


def test_a_second_call_and_another_order_ask_nothing_and_another_encoder_asks_again(tmp_path):
    first = table(tmp_path, maps=False)
    assert len(ASKED) == 4
    assert np.array_equal(table(tmp_path, maps=False).vectors, first.vectors)
    assert len(ASKED) == 4
    doubled = table(tmp_path, maps=False, args={"scale": 2.0})
    assert np.array_equal(doubled.vectors, first.vectors * 2)
    assert len(ASKED) == 8
    turned = table(tmp_path, maps=False, paths=PATHS[::-1])
    assert np.array_equal(turned.vectors, first.vectors[::-1])
    assert len(ASKED) == 8


def test_a_table_with_maps_serves_vectors(tmp_path):
    whole = table(tmp_path, maps=True)
    vectors = table(tmp_path, maps=False)
    assert len(ASKED) == 4
    assert vectors.maps is None
    assert np.array_equal(vectors.vectors, whole.vectors)


@pytest.mark.parametrize("maps", [(False, True), (True, False), (True, True), (False, False)])
def test_what_a_table_holds_no_other_table_asks_for(tmp_path, maps):
    lists = [[Path(f"{number}.png") for number in numbers] for numbers in ((1, 2, 3), (5, 3, 2, 5), (5, 1), (9, 1, 2))]
    with_vectors, with_maps, asked = set(), set(), 0
    for number, paths in enumerate(lists):
        wants_maps = maps[number % 2]
        found = table(tmp_path, maps=wants_maps, paths=paths)
        asked += len({*paths} - (with_maps if wants_maps else with_vectors))
        with_vectors |= {*paths}
        with_maps |= {*paths} if wants_maps else set()
        assert len(ASKED) == asked
        expected = [TableEncoder().encode([read(path)]) for path in paths]
        del ASKED[-len(paths) :]
        assert np.array_equal(found.vectors, [one.vectors[0] for one in expected])
        assert not wants_maps or np.array_equal(found.maps, [one.maps[0] for one in expected])


@pytest.mark.parametrize("fault", ["", "no maps", "grows", "infinite maps"])
def test_only_what_was_asked_for_is_kept(tmp_path, fault):
    found = table(tmp_path, maps=False, args={"fault": fault})
    assert len(ASKED) == 4
    assert np.array_equal(found.vectors, [TableEncoder().encode([read(path)]).vectors[0] for path in PATHS])
    assert not list(tmp_path.glob("*/*/maps.npy"))


@register("test-gpu-encoder", role="encoder")
class GpuEncoder(TableEncoder):
    """Says that it is on a GPU, and refuses images whose first pixel is in `refused`, or batches above `most`."""

    device = "cuda"

    def __init__(self, most: int = 1000, refused: str = "") -> None:
        super().__init__()
        self.most, self.refused = most, refused

    def encode(self, images):
        features = super().encode(images)
        if len(images) > self.most:
            raise MemoryError("too many at once")
        if self.refused and any(str(image[0, 0, 0]) == self.refused for image in images):
            raise RuntimeError("out of paint")
        return features


def gpu_table(folder, count, **args):
    paths = [Path(f"{number}.png") for number in range(count)]
    names = [path.stem for path in paths]
    return build_feature_table("test-gpu-encoder", args, paths, names, maps=True, read=read, folder=folder)


def test_on_a_gpu_images_pass_in_batches_of_one_size(tmp_path):
    found = gpu_table(tmp_path, 2 * GPU_BATCH + 5)
    assert ASKED == [GPU_BATCH] * 3
    alone = [TableEncoder().encode([read(Path(f"{number}.png"))]) for number in range(len(found.vectors))]
    assert np.array_equal(found.vectors, [one.vectors[0] for one in alone])
    assert np.array_equal(found.maps, [one.maps[0] for one in alone])


def test_a_batch_that_does_not_fit_is_encoded_image_by_image(tmp_path):
    found = gpu_table(tmp_path, 3, most=1)
    assert np.array_equal(found.vectors[2], TableEncoder().encode([read(Path("2.png"))]).vectors[0])


def test_of_a_batch_that_fails_the_image_is_named_and_those_before_are_kept(tmp_path):
    refused = str(read(Path("70.png"))[0, 0, 0])
    first = next(number for number in range(100) if str(read(Path(f"{number}.png"))[0, 0, 0]) == refused)
    with pytest.raises(ModelError, match="RuntimeError: out of paint") as caught:
        gpu_table(tmp_path, 100, refused=refused)
    assert caught.value.file == f"{first}.png"


@pytest.mark.parametrize(("fault", "words"), [("refuses", "too dark"), ("breaks", "RuntimeError: out of paint")])
def test_an_error_of_the_encoder_names_the_file(tmp_path, fault, words):
    with pytest.raises(ModelError, match=words) as caught:
        table(tmp_path, args={"fault": fault})
    assert caught.value.file == "4.png"


def test_an_error_keeps_what_was_encoded(tmp_path):
    def failing(path):
        if path.stem == "7":
            raise DataError("cut off", file=path)
        return read(path)

    with pytest.raises(DataError, match="cut off"):
        build_feature_table("test-table-encoder", {}, PATHS, CONTENT, maps=True, read=failing, folder=tmp_path)
    assert len(ASKED) == 3
    found = table(tmp_path)
    assert len(ASKED) == 4
    assert np.array_equal(found.vectors[4], TableEncoder().encode([read(Path("7.png"))]).vectors[0])


@pytest.mark.parametrize("name", ["vectors.npy", "maps.npy", "complete.json", "checksums.npy"])
def test_a_damaged_file_is_healed(tmp_path, name):
    first = table(tmp_path)
    wanted = [np.array(first.vectors), np.array(first.maps)]
    path = first.folder / name
    path.write_bytes(path.read_bytes()[:9])
    healed = table(tmp_path)
    assert np.array_equal(healed.vectors, wanted[0])
    assert np.array_equal(healed.maps, wanted[1])


@pytest.mark.parametrize("name", ["vectors.npy", "maps.npy"])
def test_a_row_that_changed_on_the_disk_is_encoded_again_and_no_other(tmp_path, name):
    first = table(tmp_path)
    wanted = np.array(first.vectors), np.array(first.maps)
    path = first.folder / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # of the last row, whose content the first row has, too
    content[-1 - len(content[128:]) // 3] ^= 64  # of the fourth, whose content the second has
    content[len(content[128:]) // 6 * 2 + 130] ^= 1  # of the third, the only one with its content
    path.write_bytes(content)
    del ASKED[:]
    healed = table(tmp_path)
    assert ASKED == [1]
    assert np.array_equal(healed.vectors, wanted[0])
    assert np.array_equal(healed.maps, wanted[1])


def test_no_damaged_row_is_copied_to_another_table(tmp_path):
    path = table(tmp_path, maps=False).folder / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[128 + 12 * 2] ^= 1
    path.write_bytes(content)
    del ASKED[:]
    found = table(tmp_path, maps=False, paths=PATHS[1:5])
    assert ASKED == [1]
    assert np.array_equal(found.vectors, [TableEncoder().encode([read(path)]).vectors[0] for path in PATHS[1:5]])


def test_no_damaged_header_makes_other_features(tmp_path):
    """Among the bits is the one between the two orders of bytes, `<f4` and `>f4`."""
    path = table(tmp_path, maps=False).folder / "vectors.npy"
    whole = path.read_bytes()
    wanted = np.array(table(tmp_path, maps=False).vectors)
    for place in range(8, whole.index(b"}")):
        damaged = bytearray(whole)
        damaged[place] ^= 2
        path.write_bytes(damaged)
        assert np.array_equal(table(tmp_path, maps=False).vectors, wanted), place


def test_rows_are_written_where_the_header_says_also_in_a_file_that_is_longer(tmp_path):
    def failing(path):
        if path.stem == "7":
            raise DataError("cut off", file=path)
        return read(path)

    with pytest.raises(DataError, match="cut off"):
        build_feature_table("test-table-encoder", {}, PATHS, CONTENT, maps=False, read=failing, folder=tmp_path)
    [path] = tmp_path.glob("*/*/vectors.npy")
    path.write_bytes(path.read_bytes() + bytes(12))
    found = table(tmp_path, maps=False)
    assert np.array_equal(found.vectors, [TableEncoder().encode([read(path)]).vectors[0] for path in PATHS])


def test_a_table_is_opened_again_in_another_process_not_copied(tmp_path):
    found = table(tmp_path)
    sent = pickle.dumps(found)
    assert len(sent) < 1000
    opened = pickle.loads(sent)
    assert np.array_equal(opened.maps, found.maps)
    with pytest.raises(DataError, match="no complete table"):
        open_feature_table(tmp_path / "nowhere", maps=False)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no maps", "the encoder gives no feature maps"),
        ("grows", r"maps differ in shape: \(3, 1, 2\) before, \(3, 2, 2\) here"),
        ("infinite", "vector: expected finite values, got inf"),
        ("long", r"vectors: expected shape \(N, D\) = \(1, 3\) for 1 images, got \(1, 6\)"),
    ],
)
def test_an_encoder_that_does_not_fit_is_told(tmp_path, fault, words):
    with pytest.raises(ModelError, match=words) as caught:
        table(tmp_path, args={"fault": fault})
    assert caught.value.file == ("2.png" if fault == "grows" else "4.png")


def test_images_and_contents_must_match(tmp_path):
    for paths, content in ((PATHS, CONTENT[:2]), ([], [])):
        with pytest.raises(DataError, match="expected images with one content each"):
            build_feature_table("test-table-encoder", {}, paths, content, maps=False, read=read, folder=tmp_path)


def test_progress_counts_contents(tmp_path):
    told = []

    class Told:
        def __init__(self, total, done):
            told.append((total, done))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def advance(self, units, failed):
            told.append((units, failed))

    table(tmp_path, show_progress=Told)
    assert told == [(4, 0), (1, 0), (1, 0), (1, 0), (1, 0)]


def test_the_default_folder_is_beside_the_single_features(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    assert table(None).folder.parent.parent == tmp_path / "feature_tables"


@pytest.mark.real
def test_real_features_of_real_images_equal_the_encoder_alone(shared_data, tmp_path):
    pytest.importorskip("torch").set_num_threads(1)
    from hardlook.data.images import read_image
    from hardlook.models.registry import build
    from hardlook.models.weights.install import get_weights_status

    if get_weights_status("efficientnet-lite0") != "installed":
        pytest.skip("efficientnet-lite0 is not installed; hardlook weights install efficientnet-lite0")
    images = sorted((shared_data / "data" / "pacs" / "dog").glob("*/*"))[::40]
    names = [str(path) for path in images]
    args = {"size": 96}
    found = build_feature_table("efficientnet-lite0", args, images, names, maps=True, read=read_image, folder=tmp_path)
    encoder = build("efficientnet-lite0", "encoder", args)
    for row, path in enumerate(images):
        alone = encoder.encode([read_image(path)])
        assert np.array_equal(found.vectors[row], alone.vectors[0])
        assert np.array_equal(found.maps[row], alone.maps[0])
    assert found.maps.shape == (4, 1280, 3, 3)
