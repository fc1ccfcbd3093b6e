"""Text measures against the formulas written out by hand and against scikit-learn."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from ranktune.solvers.data.api_search.bm25 import Terms, bm25_weights, ngrams, presence, products, tfidf, words

TEXTS = [
    ["sort", "an", "array", "sort"],
    ["sum", "of", "an", "array"],
    ["sort", "by", "key", "key", "key", "of", "an", "other", "array", "of", "keys"],
    [],
]


def test_bm25_equals_the_formula() -> None:
    terms = Terms.of(TEXTS)
    asked = [["sort", "key"], ["array"], ["unknown"], ["sum", "sum", "of"]]
    ours = products(presence(terms.counts(asked)), bm25_weights(terms.counts(TEXTS), k1=1.5, b=0.6), slice(0, 4))
    mean = sum(map(len, TEXTS)) / len(TEXTS)
    for q, query in enumerate(asked):
        for d, text in enumerate(TEXTS):
            expected = 0.0
            for term in set(query):
                df = sum(term in other for other in TEXTS)
                tf = text.count(term)
                idf = log(1 + (len(TEXTS) - df + 0.5) / (df + 0.5))
                expected += idf * tf * (1.5 + 1) / (tf + 1.5 * (1 - 0.6 + 0.6 * len(text) / mean))
            assert ours[q, d] == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_bm25_grows_with_a_rarer_term_and_falls_with_length() -> None:
    terms = Terms.of(TEXTS)
    weights = bm25_weights(terms.counts(TEXTS)).toarray()
    assert weights[1, terms.number["sum"]] > weights[1, terms.number["array"]]
    assert weights[1, terms.number["array"]] > weights[2, terms.number["array"]]


def test_tfidf_equals_scikit_learn() -> None:
    ours = tfidf(Terms.of(TEXTS).counts(TEXTS)).toarray()
    theirs = TfidfVectorizer(analyzer=lambda text: text, sublinear_tf=True).fit_transform(TEXTS).toarray()
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_cosine_of_a_text_with_itself_is_one_and_of_an_empty_text_zero() -> None:
    rows = tfidf(Terms.of(TEXTS).counts(TEXTS))
    cosine = products(rows, rows, slice(0, 4))
    np.testing.assert_allclose(np.diag(cosine), [1, 1, 1, 0], atol=1e-14)
    np.testing.assert_allclose(cosine, cosine.T, atol=1e-14)


def test_products_of_some_rows_are_rows_of_all_products() -> None:
    rows = tfidf(Terms.of(TEXTS).counts(TEXTS))
    np.testing.assert_array_equal(products(rows, rows, slice(1, 3)), products(rows, rows, slice(0, 4))[1:3])


def test_terms_do_not_depend_on_the_order_of_the_texts() -> None:
    assert Terms.of(TEXTS).number == Terms.of(TEXTS[::-1]).number
    assert list(Terms.of(TEXTS).number) == sorted({term for text in TEXTS for term in text})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RandomForestClassifier", ["randomforestclassifier", "random", "forest", "classifier"]),
        ("nan_to_num", ["nan_to_num", "nan", "to", "num"]),
        ("The arrays' class.", ["the", "array", "class"]),
        ("SVDSolver", ["svdsolver", "svd", "solver"]),
        ("_private names", ["private", "name"]),
        ("0.123 1.5e-05 -2E+10 0x7f3abc 42", []),  # printed numbers and addresses differ from run to run
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_ngrams_mark_the_ends() -> None:
    assert ngrams("Ab", 2, 3) == ["<a", "ab", "b>", "<ab", "ab>"]
