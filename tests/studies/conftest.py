"""Tests of what is in a clone and in no wheel are left out where a wheel is tested."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("ranktune.studies.benchmarks")
    else ["benchmarks", "laboratory", "papers/test_counting.py", "papers/test_figures.py"]
)
