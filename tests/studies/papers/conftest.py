"""What tests of papers share."""

import pytest

from ranktune.studies.papers.reproduce import Dataset
from tests.support.small_papers import split


@pytest.fixture
def tiny() -> Dataset:
    """A data set of two folds."""
    return Dataset("tiny", (split(1), split(2)))
