"""Comparisons with other libraries and tools, for developers: python -m ranktune.studies.benchmarks --help.

Nothing else imports this package. Some benchmarks need the extra: pip install "ranktune[bench]".
"""
