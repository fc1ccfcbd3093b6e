"""Features of pairs: each means what its name says, and none knows what See Also says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ranktune.solvers.data.api_search.docstrings import parse
from ranktune.solvers.data.api_search.documentation import Documented
from ranktune.solvers.data.api_search.features import CONTINUOUS, FEATURE_NAMES, PairFeatures
from ranktune.solvers.data.api_search.names import PublicNames

DOCUMENTS = [
    Documented(
        "p.a.Sorter",
        (),
        True,
        "p.a._impl",
        "Sort many arrays fast.\n\nNot for the mean. See `sort_values`.\n\nParameters\n----------\nkind, axis : str\n",
    ),
    Documented("p.a.sort", (), False, "p.a._impl", "Sort an array.\n\nUse `argsort` for the order.\n"),
    Documented(
        "p.argsort", (), False, "p._c", "Return the order of an array, as p.a.sort would.\n\nText with sort in it."
    ),
    Documented("q.mean", (), False, "q", "Return the mean.\n\nParameters\n----------\naxis : int\nkind : str\n"),
    Documented("q.sort_values", (), False, "q", "Sort values.\n\nNothing else."),
]


def features(documents: list[Documented], count: int = 4) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Candidates and features of all documents."""
    known = PublicNames.of_documents(documents)
    pairs = PairFeatures.of(documents, [parse(each.docstring) for each in documents], known)
    candidates = pairs.candidates(slice(0, len(documents)), count)
    return candidates, pairs.features(slice(0, len(documents)), candidates)


CANDIDATES, FEATURES = features(DOCUMENTS)


def value(feature: str, query: str, candidate: str) -> float:
    """One feature of one pair."""
    names = [each.name for each in DOCUMENTS]
    q = names.index(query)
    place = CANDIDATES[q].tolist().index(names.index(candidate))
    return float(FEATURES[q, place, FEATURE_NAMES.index(feature)])


def test_candidates_are_the_others_by_falling_bm25() -> None:
    bm25 = FEATURES[:, :, FEATURE_NAMES.index("bm25")]
    assert (np.diff(bm25, axis=1) <= 0).all()
    assert all(q not in others and len(set(others)) == 4 for q, others in enumerate(CANDIDATES.tolist()))


def test_labels() -> None:
    assert value("same_module", "p.a.sort", "p.a.Sorter") == 1 and value("same_module", "p.a.sort", "p.argsort") == 0
    assert value("same_package", "p.a.sort", "p.argsort") == 1 and value("same_package", "p.a.sort", "q.mean") == 0
    assert value("same_source", "p.a.sort", "p.a.Sorter") == 1 and value("same_source", "p.a.sort", "p.argsort") == 0
    assert value("same_kind", "p.a.sort", "q.mean") == 1 and value("same_kind", "p.a.sort", "p.a.Sorter") == 0


def test_mentions_have_a_direction() -> None:
    assert value("mentions", "p.a.sort", "p.argsort") == value("mentioned", "p.argsort", "p.a.sort") > 0
    assert value("mentions_code", "p.a.sort", "p.argsort") > 0
    assert value("mentions_path", "p.a.sort", "p.argsort") == 0  # written without its module
    assert value("mentions_path", "p.argsort", "p.a.sort") == value("mentioned_path", "p.a.sort", "p.argsort") > 0
    for feature, page in (("mentions", "q.mean"), ("mentions", "q.sort_values"), ("mentions_code", "q.sort_values")):
        assert value(feature, "p.a.Sorter", page) > 0 == value(feature, page, "p.a.Sorter")
    assert value("mentions_code", "p.a.Sorter", "q.mean") == 0  # an English word, not code
    assert value("mentions", "q.mean", "p.a.sort") == 0 == value("mentioned", "p.a.sort", "q.mean")


def test_names() -> None:
    assert value("name_prefix", "p.a.sort", "q.sort_values") == pytest.approx(4 / 11)
    assert value("name_prefix", "p.a.sort", "p.a.Sorter") == pytest.approx(4 / 6)
    assert value("name_suffix", "p.argsort", "p.a.sort") == pytest.approx(4 / 7)
    assert value("name_ngrams", "p.a.sort", "p.argsort") > value("name_ngrams", "p.a.sort", "q.mean") == 0


def test_parameters_are_compared_by_name_in_any_order() -> None:
    assert value("tfidf_parameters", "p.a.Sorter", "q.mean") == pytest.approx(1.0)
    assert value("tfidf_parameters", "p.a.Sorter", "p.a.sort") == 0


def test_bm25_reversed_is_bm25_of_the_reversed_pair() -> None:
    for one in ("p.a.sort", "q.mean"):
        for other in ("p.argsort", "q.sort_values"):
            assert value("bm25_reversed", one, other) == value("bm25", other, one)


def test_views_within_the_query() -> None:
    k = len(CONTINUOUS)
    plain, best, rank = FEATURES[:, :, :k], FEATURES[:, :, -2 * k : -k], FEATURES[:, :, -k:]
    assert FEATURE_NAMES[-2 * k] == "bm25_of_best" and FEATURE_NAMES[-k] == "bm25_rank"
    top = plain.max(axis=1, keepdims=True)
    np.testing.assert_allclose(best * top, plain, rtol=1e-6)
    for q in range(len(DOCUMENTS)):
        for f in range(k):
            v = plain[q, :, f].astype(np.float64)
            place = np.array([1 + (v > x).sum() + ((v == x).sum() - 1) / 2 for x in v])  # ties share their mean place
            np.testing.assert_allclose(rank[q, :, f], 1 - np.log2(place) / np.log2(len(v)), atol=1e-6)


def test_features_are_finite_and_not_negative() -> None:
    assert FEATURES.dtype == np.float32 and FEATURES.shape[2] == len(FEATURE_NAMES) == len(set(FEATURE_NAMES))
    assert np.isfinite(FEATURES).all() and (FEATURES >= 0).all()


def test_see_also_changes_nothing() -> None:
    """The same documents with other judgments have the same candidates and the same features, to the bit."""
    section = "\n\nSee Also\n--------\nargsort, q.mean : Words that no text has.\n    p.argsort(xyzzy)\n"
    block = "\n\n.. seealso:: :func:`p.argsort` xyzzy\n\n    `q.mean`\n"
    judged = [
        Documented(
            each.name, each.aliases, each.is_class, each.home, each.docstring.rstrip() + (section if at % 2 else block)
        )
        for at, each in enumerate(DOCUMENTS)
    ]
    candidates, others = features(judged)
    np.testing.assert_array_equal(candidates, CANDIDATES)
    assert others.tobytes() == FEATURES.tobytes()


def test_blocks_of_queries_do_not_matter() -> None:
    known = PublicNames.of_documents(DOCUMENTS)
    pairs = PairFeatures.of(DOCUMENTS, [parse(each.docstring) for each in DOCUMENTS], known)
    rows = slice(2, 4)
    candidates = pairs.candidates(rows, 4)
    np.testing.assert_array_equal(candidates, CANDIDATES[rows])
    assert pairs.features(rows, candidates).tobytes() == FEATURES[rows].tobytes()


def test_objects_without_words() -> None:
    empty = [Documented(f"p.f{i}", (), False, "p", "") for i in range(3)]
    candidates, values = features(empty, 2)
    assert candidates.tolist() == [[1, 2], [0, 2], [0, 1]]  # equal scores keep the order of the names
    assert np.isfinite(values).all()


def test_one_candidate() -> None:
    _, values = features(DOCUMENTS[:2], 1)
    assert np.isfinite(values).all() and (values[:, :, FEATURE_NAMES.index("bm25_rank")] == 1).all()
