"""Small tables of images for the tests of tasks."""

import numpy as np
from hypothesis import strategies as st

from hardlook.data.concept_context import ImageTable, build_image_table


def full_table(concepts, contexts, images):
    """Every concept in every context, `images` different images each."""
    rows = [(f"c{k:02}", f"x{x:02}") for k in range(concepts) for x in range(contexts) for _ in range(images)]
    return build_image_table(*zip(*rows, strict=True), [str(number) for number in range(len(rows))])


def counted_table(counts):
    """As many different images of each concept and context as {concept: {context: count}} says."""
    rows = [(k, x) for k, cells in counts.items() for x, count in cells.items() for _ in range(count)]
    return build_image_table(*zip(*rows, strict=True), [str(number) for number in range(len(rows))])


@st.composite
def tables(draw, most_doubled=0.3):
    """Random tables, some of whose files are doubles: in one cell, in two contexts or under two concepts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    concepts, contexts = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    count = draw(st.integers(20, 250))
    content = rng.permutation(count * 3)[:count]
    doubled = rng.random(count) < draw(st.sampled_from([0.0, 0.02, most_doubled]))
    content[doubled] = rng.choice(content, doubled.sum())
    names = tuple(f"c{k}" for k in range(concepts)), tuple(f"x{x}" for x in range(contexts))
    return ImageTable(*names, rng.integers(0, concepts, count), rng.integers(0, contexts, count), content)
