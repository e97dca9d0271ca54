"""Python reads this when it starts, where this folder is on its path."""

import torchvision_operators

torchvision_operators.install()
