"""Texts as sparse term matrices, and similarities of texts: BM25, the cosine of TF-IDF, character n-grams.

n  texts          v  terms, in the order of the alphabet
counts   (n, v) CSR, how often each term occurs in each text
Matrices are float64 and products are sparse and serial, so that equal texts give equal bytes everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Floats

Counts: TypeAlias = sparse.csr_array
"""Of float64, (n, v): counts of terms, or weights made of them."""

K1 = 1.2
B = 0.75

# the letters in 1e-05 and 0x7f are not words: printed numbers may differ between runs
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words(text: str) -> list[str]:
    """Return the words of text in lower case; an identifier gives its parts, and itself where it has several.

    `RandomForestClassifier` gives random, forest, classifier and randomforestclassifier. A final s is dropped
    from longer words, so that a plural meets its singular.
    """
    found: list[str] = []
    for identifier in _IDENTIFIER.findall(text):
        parts = [part.lower() for part in _PART.findall(identifier)]
        if len(parts) > 1:
            found.append(identifier.lower())
        found += [_singular(part) for part in parts]
    return found


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def ngrams(name: str, shortest: int = 2, longest: int = 4) -> list[str]:
    """Return the character n-grams of name in lower case, between < and >."""
    marked = f"<{name.lower()}>"
    return [marked[at : at + n] for n in range(shortest, longest + 1) for at in range(len(marked) - n + 1)]


@dataclass(frozen=True)
class Terms:
    """The terms of a collection: their numbers, in the order of the alphabet."""

    number: dict[str, int]

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Terms:
        """Return the terms that occur in texts, each a list of terms."""
        return cls({term: at for at, term in enumerate(sorted({term for text in texts for term in text}))})

    def counts(self, texts: Sequence[Sequence[str]]) -> Counts:
        """Return how often each term occurs in each text, (n, v); unknown terms are ignored."""
        numbers, values, starts = [], [], [0]
        for text in texts:
            present = Counter(self.number[term] for term in text if term in self.number)
            for at in sorted(present):
                numbers.append(at)
                values.append(present[at])
            starts.append(len(numbers))
        indices = np.array(numbers, dtype=np.int32)
        parts = (np.array(values, dtype=np.float64), indices, np.array(starts, dtype=np.int32))
        return sparse.csr_array(parts, shape=(len(texts), len(self.number)))


def bm25_weights(counts: Counts, k1: float = K1, b: float = B) -> Counts:
    """Return W, (n, v), such that the BM25 of a query in text i is the sum of W[i, t] over the query's terms t.

    W[i, t] = idf[t] * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length[i] / mean length)), tf = counts[i, t],
    idf[t] = log(1 + (n - df[t] + 0.5) / (df[t] + 0.5)), which is never negative.
    Source: Robertson & Zaragoza 2009, "The Probabilistic Relevance Framework", section 3.4; the idf is Lucene's.
    """
    n, n_terms = counts.shape
    frequency = np.bincount(counts.indices, minlength=n_terms)
    idf = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
    length = np.asarray(counts.sum(axis=1)).ravel()
    mean = length.mean() if length.any() else 1.0
    saturation = k1 * (1.0 - b + b * length / mean)
    tf = counts.data
    data = idf[counts.indices] * tf * (k1 + 1.0) / (tf + np.repeat(saturation, np.diff(counts.indptr)))
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def tfidf(counts: Counts) -> Counts:
    """Return rows of (1 + log tf) * (1 + log((1 + n) / (1 + df))) scaled to length 1: their products are cosines."""
    from sklearn.feature_extraction.text import TfidfTransformer  # half a second to import, needed only to build

    if not counts.nnz:  # scikit-learn needs at least one term
        return counts
    return sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))


def presence(counts: Counts) -> Counts:
    """Return 1 where a term occurs: a query counts each of its terms once."""
    return sparse.csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)


def products(left: Counts, right: Counts, rows: slice) -> Floats:
    """Return left[rows] @ right.T, dense (number of rows, n)."""
    return np.asarray((left[rows] @ right.T).toarray(), dtype=np.float64)
