"""Generated tasks: a function of kind and seed, with the shares that they promise."""

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks.tasks import KINDS, SHARES, sizes, task, task_of


@pytest.mark.parametrize("kind", ["missing", "rare", "deep"])
def test_grades_and_missing_values_have_their_shares(kind: str) -> None:
    train, expected = task(kind, 5).train, KINDS[kind]
    shares = (1.0 - expected.rare, expected.rare) if expected.rare else SHARES
    result = np.bincount(train.grades.astype(int)) / train.n_documents
    np.testing.assert_allclose(result, shares, atol=2e-3)
    absent = np.isnan(np.asarray(train.features)).mean()
    assert absent == 0.0 if not expected.missing else 0.5 * expected.missing < absent < 2.0 * expected.missing


def test_a_name_is_a_kind_and_a_seed() -> None:
    assert task_of("few-3").train.fingerprint == task("few", 3).train.fingerprint
    for wrong in ("few", "few-x", "-3"):
        with pytest.raises(ParameterError):
            task_of(wrong)


@pytest.mark.parametrize("name", ["few-3", "drawn-3", "drawn-40"])
def test_sizes_are_those_of_the_task(name: str) -> None:
    kind, _, seed = name.partition("-")
    lengths, features = sizes(kind, int(seed))
    made = task_of(name)
    for part, expected in zip((made.train, made.vali, made.test), lengths, strict=True):
        assert part is not None
        np.testing.assert_array_equal(part.lengths, expected)
        assert part.n_features == features
