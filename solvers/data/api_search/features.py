"""Features of a pair of documented objects, a query and a candidate, from their texts without See Also.

n          documented objects            m          candidates of each query
base       (b, m, n_base) measures of each pair of a block of b queries
features   (b, m, n_features) base, then two views of its continuous columns: divided by the largest in the query,
           and the position in the query. Linear models need both, because they compare documents within a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.data.api_search.bm25 import Counts, Terms, bm25_weights, ngrams, presence, products, tfidf, words
from ranktune.solvers.data.api_search.docstrings import Page
from ranktune.solvers.data.api_search.documentation import Documented
from ranktune.solvers.data.api_search.names import PublicNames, last_part

_CODE = re.compile(r"[`.]([A-Za-z_]\w*)|\b([A-Za-z_]\w*)(?=\()")  # `name`, module.name, name(
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+)+")
_PARAMETERS = re.compile(r"^ *(\w+(?: ?, ?\w+)*) ?:", re.MULTILINE)  # "a, b : array_like"

CONTINUOUS = (
    "bm25",  # the query's name and summary, in the candidate's name, summary and body
    "bm25_name",  # the same in one of them
    "bm25_summary",
    "bm25_body",
    "bm25_reversed",  # the candidate's name and summary, in the query's name, summary and body
    "tfidf",  # cosine of name, summary and body
    "tfidf_summary",
    "tfidf_name",  # of the parts of the names, as in random_forest
    "tfidf_bigrams",  # of pairs of neighbouring words of summary and body
    "tfidf_parameters",  # of the names of the parameters
    "tfidf_mentions",  # of what the two mention
    "name_ngrams",  # cosine of the character n-grams of the names
    "name_prefix",  # length of the common start of the names, over the longer length
    "name_suffix",
    "mentions",  # the query's text has the candidate's name among its words; rare names count more
    "mentioned",  # the candidate's text has the query's
    "mentions_code",  # the same, where it is written as code
    "mentioned_code",
    "mentions_path",  # the same, where it is written in full, as in numpy.linalg.norm
    "mentioned_path",
    "length_ratio",  # of the shorter text to the longer
)
OTHER = ("same_module", "same_package", "same_source", "same_kind", "log_length")
FEATURE_NAMES = (*CONTINUOUS, *OTHER, *(f"{c}_of_best" for c in CONTINUOUS), *(f"{c}_rank" for c in CONTINUOUS))


@dataclass(frozen=True)
class PairFeatures:
    """The measures of all pairs, as products of sparse matrices and comparisons of labels.

    bm25        (left, right): left @ right.T ranks the candidates
    matrices    continuous column -> (left, right)
    labels      OTHER column -> (n,) values compared for equality
    names       (n) last parts of the public names, in lower case
    log_length  (n,) log(1 + words)
    """

    bm25: tuple[Counts, Counts]
    matrices: dict[str, tuple[Counts, Counts]]
    labels: dict[str, Array]
    names: tuple[str, ...]
    log_length: Floats

    @classmethod
    def of(cls, documents: Sequence[Documented], pages: Sequence[Page], known: PublicNames) -> Self:
        """Return the measures of the documents, whose parsed docstrings are pages."""
        names = tuple(last_part(each.name) for each in documents)
        name_words = [words(name) for name in names]
        summaries = [words(page.summary) for page in pages]
        bodies = [words(page.body) for page in pages]
        matrices = _text_matrices(name_words, summaries, bodies)
        matrices |= _name_matrices(names, name_words, summaries, bodies, pages)
        matrices |= _mention_matrices(names, documents, pages, known)
        length = np.array([len(a) + len(b) for a, b in zip(summaries, bodies, strict=True)], dtype=np.float64)
        labels = {
            "same_module": np.array([each.name.rpartition(".")[0] for each in documents]),
            "same_package": np.array([each.name.partition(".")[0] for each in documents]),
            "same_source": np.array([each.home for each in documents]),
            "same_kind": np.array([each.is_class for each in documents]),
        }
        lower = tuple(name.lower() for name in names)
        return cls(matrices["bm25"], matrices, labels, lower, np.log1p(length))

    def candidates(self, rows: slice, count: int) -> Ints:
        """Return the numbers of the count others that BM25 ranks first for each query of rows, (b, count).

        All others where there are no more than count. Equal scores keep the order of the names.
        """
        count = min(count, len(self.names) - 1)
        scores = products(*self.bm25, rows)
        own = np.arange(rows.start, rows.start + len(scores))
        scores[np.arange(len(scores)), own] = -np.inf
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]

    def features(self, rows: slice, candidates: Ints) -> NDArray[np.float32]:
        """Return the features of the queries of rows with their candidates, (b, m, n_features) float32."""
        own = np.arange(rows.start, rows.start + len(candidates))[:, None]
        columns = {
            name: np.take_along_axis(products(left, right, rows), candidates, axis=1)
            for name, (left, right) in self.matrices.items()
        }
        columns["name_prefix"] = self._shared(own, candidates, 1)
        columns["name_suffix"] = self._shared(own, candidates, -1)
        mine, theirs = self.log_length[own], self.log_length[candidates]
        columns["length_ratio"] = np.exp(-np.abs(mine - theirs))
        columns["log_length"] = theirs
        columns |= {name: (label[own] == label[candidates]).astype(float) for name, label in self.labels.items()}
        base = np.stack([columns[name] for name in (*CONTINUOUS, *OTHER)], axis=2)
        continuous = base[:, :, : len(CONTINUOUS)]
        return np.concatenate([base, _of_best(continuous), _positions(continuous)], axis=2).astype(np.float32)

    def _shared(self, own: Ints, candidates: Ints, step: int) -> Floats:
        """Return the length of the common start (step 1) or end (step -1) of the names, over the longer length."""
        names = [name[::step] for name in self.names]
        shared = [
            _common_start(names[i], names[j]) / max(len(names[i]), len(names[j]))
            for i, others in zip(own[:, 0], candidates, strict=True)
            for j in others
        ]
        return np.array(shared, dtype=np.float64).reshape(candidates.shape)


def _common_start(a: str, b: str) -> int:
    """Return how many first characters a and b share."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _of_best(values: Floats) -> Floats:
    """Return values, (b, m, k), none negative, divided by the largest of their query; 0 where that is 0."""
    best = values.max(axis=1, keepdims=True)
    ratio: Floats = values / np.where(best > 0.0, best, 1.0)
    return ratio


def _positions(values: Floats) -> Floats:
    """Return 1 for the first of its query down to 0 for the last, in the logarithm of the rank, ties averaged."""
    from scipy.stats import rankdata  # half a second to import, needed only to build

    last = values.shape[1]
    if last < 2:
        return np.ones_like(values)
    position: Floats = 1.0 - np.log2(rankdata(-values, axis=1)) / np.log2(last)
    return position


def _text_matrices(
    names: list[list[str]], summaries: list[list[str]], bodies: list[list[str]]
) -> dict[str, tuple[Counts, Counts]]:
    terms = Terms.of([*names, *summaries, *bodies])
    name, summary, body = terms.counts(names), terms.counts(summaries), terms.counts(bodies)
    everything = sparse.csr_array(name + summary + body)
    query = presence(sparse.csr_array(name + summary))
    weights = bm25_weights(everything)
    cosine, summary_cosine, name_cosine = tfidf(everything), tfidf(summary), tfidf(name)
    return {
        "bm25": (query, weights),
        "bm25_name": (query, bm25_weights(name)),
        "bm25_summary": (query, bm25_weights(summary)),
        "bm25_body": (query, bm25_weights(body)),
        "bm25_reversed": (weights, query),
        "tfidf": (cosine, cosine),
        "tfidf_summary": (summary_cosine, summary_cosine),
        "tfidf_name": (name_cosine, name_cosine),
    }


def _name_matrices(
    names: Sequence[str],
    name_words: list[list[str]],
    summaries: list[list[str]],
    bodies: list[list[str]],
    pages: Sequence[Page],
) -> dict[str, tuple[Counts, Counts]]:
    texts = {
        "tfidf_bigrams": [_bigrams(a) + _bigrams(b) for a, b in zip(summaries, bodies, strict=True)],
        "tfidf_parameters": [
            [p for line in _PARAMETERS.findall(page.body) for p in _WORD.findall(line)] for page in pages
        ],
        "name_ngrams": [ngrams(name) for name in names],
    }
    cosines = {name: tfidf(Terms.of(text).counts(text)) for name, text in texts.items()}
    return {name: (cosine, cosine) for name, cosine in cosines.items()}


def _bigrams(text: list[str]) -> list[str]:
    return [f"{first} {second}" for first, second in pairwise(text)]


def _mention_matrices(
    names: Sequence[str], documents: Sequence[Documented], pages: Sequence[Page], known: PublicNames
) -> dict[str, tuple[Counts, Counts]]:
    texts = [f"{page.summary}\n{page.body}" for page in pages]
    parts = Terms.of([[name] for name in names])
    who = parts.counts([[name] for name in names])
    code_counts = parts.counts([[a or b for a, b in _CODE.findall(text)] for text in texts])
    word, code = _rarity(parts.counts([_WORD.findall(text) for text in texts])), _rarity(code_counts)
    full = Terms.of([[each.name] for each in documents])
    who_in_full = full.counts([[each.name] for each in documents])
    meant = [[known.exactly(name) for name in _DOTTED.findall(text)] for text in texts]
    path = _rarity(full.counts([[documents[at].name for at in numbers if at is not None] for numbers in meant]))
    mentions = tfidf(code_counts)
    return {
        "tfidf_mentions": (mentions, mentions),
        "mentions": (word, who),
        "mentioned": (who, word),
        "mentions_code": (code, who),
        "mentioned_code": (who, code),
        "mentions_path": (path, who_in_full),
        "mentioned_path": (who_in_full, path),
    }


def _rarity(counts: Counts) -> Counts:
    """Return (1 + log tf) * log(1 + n / (1 + df)): names that are also English words occur in many texts."""
    n, n_terms = counts.shape
    rarity = np.log1p(n / (1.0 + np.bincount(counts.indices, minlength=n_terms)))
    data = (1.0 + np.log(counts.data)) * rarity[counts.indices]
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
