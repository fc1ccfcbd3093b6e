"""Comparisons with other libraries and tools, for developers: python -m ranktune.studies.benchmarks --help.

Nothing else imports this package, and no wheel holds it. Some benchmarks need more: pip install --group bench.
"""
