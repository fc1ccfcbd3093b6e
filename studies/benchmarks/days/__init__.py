"""Benchmarks over days: what happens to a study whose data go on."""
