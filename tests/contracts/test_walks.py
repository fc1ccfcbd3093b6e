"""How many files a reader goes through on two walks; `python -m tests.support.walks` prints them."""

from collections.abc import Callable

import pytest

from tests.support.walks import from_a_file_to_scores, from_a_suggestion_to_the_record


@pytest.mark.parametrize(
    ("walk", "most", "passed"),
    [
        (from_a_file_to_scores, 26, {"solvers/models/linear.py", "solvers/data/queries.py"}),
        (from_a_suggestion_to_the_record, 84, {"tuner/storage/record.py", "solvers/metrics/metrics.py"}),
    ],
)
def test_walks_stay_short(walk: Callable[[], list[str]], most: int, passed: set[str]) -> None:
    """Most is the number of files at the time of the last change to it: it may only fall."""
    files = walk()
    assert passed <= set(files)
    assert len(files) <= most, "\n".join([f"{len(files)} files, at most {most}:", *files])
