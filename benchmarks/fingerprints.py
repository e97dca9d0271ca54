"""What it costs to hash every byte of a data folder, the first time and again.

Run `python benchmarks/fingerprints.py` (10,000 files of 100 KiB in a temporary folder; --files, --kib). The peer is
`sha256sum` on the same files. Everything is in the page cache: a slower disk sets the time of the first call.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hardlook import file_hashes
from hardlook.fingerprints import hash_data


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--kib", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["HARDLOOK_CACHE"] = f"{name}/cache"
        data = Path(name) / "data"
        for number in range(given.files):
            path = data / f"{number // 500}" / f"{number}.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(np.random.default_rng(number).bytes(given.kib * 1024))
        gib = given.files * given.kib / (1 << 20)
        time.sleep(2.1)  # files changed within two seconds are not cached
        peer = seconds(
            lambda: subprocess.run(f"find {data} -type f | xargs sha256sum > /dev/null", shell=True, check=True)
        )
        first = seconds(lambda: hash_data(data))
        again = seconds(lambda: hash_data(data))
        print(f"{given.files:,} files, {gib:.2f} GiB, {os.cpu_count()} cores")
        print(f"sha256sum            {peer:7.3f} s")
        print(f"hash_data, first     {first:7.3f} s  {gib / first:.2f} GiB/s  {peer / first:.1f}x sha256sum")
        print(f"hash_data, again     {again:7.3f} s  {again / given.files * 1e6:.0f} us per file")
        print(f"cache                {file_hashes.default_cache_file().stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
