"""Draws what benchmarks describe: charts as inline SVG and one self-contained page."""
