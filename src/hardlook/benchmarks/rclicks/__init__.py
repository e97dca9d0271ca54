"""RClicks: clicks as people make them."""
