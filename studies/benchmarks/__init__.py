"""Comparisons with other libraries and tools: python -m ranktune.studies.benchmarks --help."""
