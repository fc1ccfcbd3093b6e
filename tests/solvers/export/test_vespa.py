"""What the features of Vespa's rank profiles stand for."""

import numpy as np
import pytest

from ranktune.solvers.export import export
from ranktune.solvers.models.linear import LinearModel
from tests.support.export_samples import linear


def or_zero(attribute: str) -> str:
    """An attribute that is 0 where a document has no value."""
    return f"if (isNan({attribute}) == 1, 0.0, {attribute})"


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("bm25(title)", "bm25(title)"),
        ("fieldMatch(title).completeness", "fieldMatch(title).completeness"),
        ("nativeRank(a, b)", "nativeRank(a, b)"),
        ("bm25(title) * 2", or_zero("attribute(bm25_x28_title_x29__x20__x2a__x20_2)")),
        ("bm25()", or_zero("attribute(bm25_x28__x29_)")),
        ("now", or_zero("attribute(now)")),
    ],
)
def test_rank_features_stand_for_themselves_and_others_for_attributes(name: str, meaning: str) -> None:
    made = str(export(LinearModel(np.ones(1), "RankSVM", feature_names=(name,)), "vespa"))
    assert f"        expression: {meaning}\n" in made


def test_an_attribute_is_0_unless_training_documents_lacked_it() -> None:
    model = LinearModel(np.ones(2), "RankSVM", feature_names=("price", "age"), missing=np.array([0.5, 0.0]))
    made = str(export(model, "vespa"))
    assert "        expression: attribute(price)\n" in made
    assert f"        expression: {or_zero('attribute(age)')}\n" in made


def test_the_profile_has_the_name() -> None:
    assert "rank-profile my_x2d_model inherits default {" in str(export(linear(), "vespa", name="my-model"))
