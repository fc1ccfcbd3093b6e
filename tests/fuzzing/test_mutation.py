"""Mutated inputs of every reader: each is read as a plain reader of the format reads it, or refused.

By hand, with a table of the outcomes: python -m tests.fuzzing.mutation COUNT SEED
"""

from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing import logical
from tests.fuzzing.mutation import FEW_BELOW, OTHERS, Input, Outcome, original, outcome, tried
from tests.fuzzing.plain_readers import READERS

FOUND = [
    ("csv", 21), ("tsv", 42), ("jsonl", 53), ("csv", 1129), ("parquet", 1253), ("csv", 10905), ("csv", 11038),
    ("csv", 11425), ("tsv", 10924), ("jsonl", 500034), ("study.toml", 701544), ("csv", 1001297), ("jsonl", 1200791),
    ("csv", 7000482), ("solr.jsonl", 7000227),
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
    result, bad = tried(kind, 100, FEW_BELOW, tmp_path)
    assert bad == [] and result.total() == 100


@pytest.mark.parametrize("name", logical.WRITERS)
def test_a_table_is_read_alike_from_every_format_or_refused(name: str, tmp_path: Path) -> None:
    result, bad = logical.tried(name, 60, 0, tmp_path)
    assert bad == [] and result[Outcome.EQUAL] > 10 and result[Outcome.REFUSED] > 5
