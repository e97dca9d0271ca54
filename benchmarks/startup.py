"""Seconds until `import hardlook` is done and `hardlook --help` has answered, in fresh processes.

Run `python benchmarks/startup.py`. The peer is the same interpreter doing nothing, and importing numpy.
"""

import subprocess
import sys
import time

REPEATS = 7
ROWS = (
    ("python -c pass", ["-c", "pass"], None),
    ("python -c 'import numpy'", ["-c", "import numpy"], None),
    ("python -c 'import hardlook'", ["-c", "import hardlook"], 0.25),
    ("hardlook --help", ["-m", "hardlook", "--help"], 0.6),
    ("hardlook run closed-miou --help", ["-m", "hardlook", "run", "closed-miou", "--help"], None),
)


def seconds(words: list[str]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return sorted(times)[REPEATS // 2]


def main() -> None:
    for name, words, target in ROWS:
        took = seconds(words)
        verdict = "" if target is None else f"  target {target:.2f} s: {'met' if took <= target else 'MISSED'}"
        print(f"{name:34} {took:6.3f} s{verdict}")


if __name__ == "__main__":
    main()
