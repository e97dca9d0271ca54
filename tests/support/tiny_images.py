"""A folder of tiny images, split/concept/context/image: every concept is a shape of pixels, every context a colour."""

import numpy as np
import PIL.Image

CONTEXTS = {"snow": (230, 235, 240), "dusk": (90, 50, 110)}


def write_images(root, splits, each=4, side=20, seed=0):
    """Write `each` images per concept and context; `splits` has the number of concepts of each split."""
    rng = np.random.default_rng(seed)
    for split, count in splits.items():
        for concept in range(count):
            pattern = rng.integers(0, 2, (4, 4)).repeat(side // 4, 0).repeat(side // 4, 1)
            for context, colour in CONTEXTS.items():
                folder = root / split / f"{split}-{concept}" / context
                folder.mkdir(parents=True)
                for number in range(each):
                    image = np.where(pattern[..., None] > 0, colour, np.array(colour) // 3)
                    image = np.clip(image + rng.integers(-12, 13, image.shape), 0, 255).astype(np.uint8)
                    PIL.Image.fromarray(image).save(folder / f"{number}.png")
    return root
