"""The data structures that the paper on RankSVM compares count right."""

import numpy as np
import pytest

from ranktune.solvers.losses.window_sums import offsets, sum_many
from ranktune.studies.papers.figures import ranksvm


@pytest.mark.parametrize(("length", "n_grades"), [(50, 3), (200, 40), (300, 300)])
def test_the_rivals_sum_what_the_tree_sums(length: int, n_grades: int) -> None:
    v, codes, low, high = ranksvm.problem(length, n_grades)
    room = np.empty(max(offsets(n_grades)[-1], n_grades + 1))
    results = []
    for kernel in (sum_many, ranksvm.fenwick, ranksvm.direct):
        out = np.empty(length)
        kernel(v, codes, n_grades, low, high, room, out)
        results.append(out)
    np.testing.assert_allclose(results[1], results[0], atol=1e-9)
    np.testing.assert_allclose(results[2], results[0], atol=1e-9)
