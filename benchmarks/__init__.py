"""Timings, as ratios measured in one run. `make bench` runs them all, `python -m benchmarks hub` some."""
