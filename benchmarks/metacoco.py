"""MetaCoCo's speed: drawing tasks, and learners on cached features, each beside a plain loop, in one run.

Run `python benchmarks/metacoco.py`. One thread, processor time; the parts are `metacoco_sampling` and
`metacoco_learners`, which say what their peers do.
"""

import metacoco_learners
import metacoco_sampling


def main() -> None:
    metacoco_sampling.main()
    metacoco_learners.main()


if __name__ == "__main__":
    main()
