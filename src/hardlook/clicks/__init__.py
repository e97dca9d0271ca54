"""Clicks on objects: where the next one falls, who makes it, and what a segmenter makes of a course of them."""
