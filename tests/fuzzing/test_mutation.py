"""Mutated inputs of every reader: each is read as a plain reader of the format reads it, or refused.

By hand, with a table of the outcomes: python -m tests.fuzzing.mutation COUNT SEED
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing.mutation import OTHERS, Input, Outcome, original, outcome, tried
from tests.fuzzing.plain_readers import READERS

FOUND = [
    ("csv", 21), ("tsv", 42), ("jsonl", 53), ("csv", 1129), ("parquet", 1253), ("csv", 10905), ("csv", 11038),
    ("csv", 11425), ("tsv", 10924), ("jsonl", 500034), ("study.toml", 701544),
]  # fmt: skip
"""Seeds of inputs that were once read otherwise."""

FORMATS = (*READERS, *OTHERS)


@pytest.mark.parametrize("kind", READERS)
def test_an_original_is_read_alike(kind: str, tmp_path: Path) -> None:
    for seed in range(3):
        content = original(kind, np.random.default_rng([seed, *kind.encode()]))
        assert outcome(Input(kind, seed, content), tmp_path) == (Outcome.EQUAL, "")


@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_an_input_that_was_read_otherwise_no_longer_is(kind: str, seed: int, tmp_path: Path) -> None:
    result, bad = tried(kind, 1, seed, tmp_path)
    assert bad == [] and result.total() == 1


@pytest.mark.parametrize("kind", FORMATS)
def test_mutated_inputs_are_read_alike_or_refused(kind: str, tmp_path: Path) -> None:
    result, bad = tried(kind, 60, 0, tmp_path)
    assert bad == [] and result.total() == 60


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_many_mutated_inputs_are_read_alike_or_refused(kind: str, tmp_path: Path) -> None:
    result, bad = tried(kind, 2_000, 10_000, tmp_path)
    print(kind, dict(result))
    assert bad == []
