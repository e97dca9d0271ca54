"""Published open-vocabulary networks as segmenters of free words."""
