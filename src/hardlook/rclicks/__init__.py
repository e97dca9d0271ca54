"""RClicks: interactive segmentation under clicks as people make them."""
