"""Training one-shot segmentation networks on folds of labelled images."""
