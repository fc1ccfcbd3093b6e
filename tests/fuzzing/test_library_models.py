"""Damaged models of other libraries are refused, or score as their libraries say: those score in another process."""

from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing.library_models import KINDS, mutant, original, scores_of, scores_of_libraries


def check(kind: str, seeds: range, folder: Path, most_compared: int) -> None:
    """Assert that mutants are refused, or score as their library; if that refuses what is not read here, as before."""
    pytest.importorskip({"txt": "lightgbm", "catboost.json": "catboost"}.get(kind, "xgboost"))
    paths = [folder / f"{seed}.{kind}" for seed in seeds]
    for seed, path in zip(seeds, paths, strict=True):
        path.write_bytes(mutant(kind, seed))
    (folder / f"whole.{kind}").write_bytes(original(kind))
    results = [(path, scores_of(path)) for path in (folder / f"whole.{kind}", *paths)]
    read = [(path, scores) for path, scores in results if scores is not None]
    assert results[0][1] is not None and 1 + len(seeds) // 10 < len(read) < len(seeds) // 2
    compared = read[: 1 + most_compared]
    expected = scores_of_libraries([path for path, _ in compared], folder)
    assert expected[0] is not None and np.ptp(expected[0]) > 1.0
    assert sum(scores is not None for scores in expected) > len(expected) // 2
    for (path, scores), by_library in zip(compared, expected, strict=True):
        wanted = results[0][1] if by_library is None else by_library
        np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6, err_msg=str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_models_are_refused_or_score_as_their_library(kind: str, tmp_path: Path) -> None:
    check(kind, range(60), tmp_path, 6)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_models_are_refused_or_score_as_their_library(kind: str, tmp_path: Path) -> None:
    check(kind, range(1000, 3000), tmp_path, 400)
