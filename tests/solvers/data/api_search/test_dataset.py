"""api-search: the judgments are those of See Also, the split is fixed, the bytes are the same everywhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import ranktune.solvers.data.api_search.dataset as api_search
from ranktune.solvers.core.arrays import Matrix
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.api_search.dataset import PACKAGES, Table, build, load_split, load_table
from ranktune.solvers.data.api_search.docstrings import parse
from ranktune.solvers.data.api_search.documentation import Documented, installed
from ranktune.solvers.data.api_search.features import FEATURE_NAMES
from ranktune.solvers.data.queries import Queries

pytestmark = pytest.mark.thorough


def document(name: str, see_also: str = "", *aliases: str) -> Documented:
    text = f"Make a {name.rpartition('.')[2]} of things."
    return Documented(name, aliases, False, "p", f"{text}\n\nSee Also\n--------\n{see_also}" if see_also else text)


SMALL = [
    document("p.a", "b, c : two", "p.first"),
    document("p.b", "first : an alias of a"),
    document("p.c"),
    document("p.d", "p.d : itself\nq.elsewhere\nb"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def messages() -> list[str]:
    return []


@pytest.fixture(scope="module")
def table(cache: Path, messages: list[str]) -> Table:
    """The whole of api-search, built once."""
    return load_table(cache, messages.append)


def ndcg_at_10(scores: Matrix, queries: Queries) -> float:
    """The mean over queries; documents of equal score share the mean of their discounts."""
    values = []
    for low, high in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        gain = 2.0 ** queries.grades[low:high] - 1
        discount = np.where(np.arange(high - low) < 10, 1 / np.log2(np.arange(high - low) + 2.0), 0.0)
        _, group = np.unique(-scores[low:high], return_inverse=True)
        order = np.argsort(group, kind="stable")
        shared = np.bincount(group[order], weights=discount) / np.bincount(group)
        values.append(gain @ shared[group] / (np.sort(gain)[::-1] @ discount))
    return float(np.mean(values))


def grade(table: Table, query: str, candidate: str) -> int:
    q = table.names.index(query)
    return int(table.grades[q, table.candidates[q].tolist().index(table.names.index(candidate))])


def test_grades() -> None:
    small = build(SMALL)
    assert grade(small, "p.a", "p.b") == grade(small, "p.b", "p.a") == 2  # each lists the other, once by an alias
    assert grade(small, "p.a", "p.c") == 1 and grade(small, "p.c", "p.a") == 0  # only one lists the other
    assert grade(small, "p.d", "p.b") == 1 and grade(small, "p.d", "p.a") == 0
    assert (small.candidates != np.arange(4)[:, None]).all()  # what lists itself is still not its own candidate


def test_queries_are_those_with_a_judged_candidate() -> None:
    small = build(SMALL)
    chosen = sorted(small.names[q] for numbers in small.parts.values() for q in numbers)
    assert chosen == ["p.a", "p.b", "p.d"]


def test_too_little_documentation_is_an_error() -> None:
    with pytest.raises(DataError, match="1 documented objects"):
        build(SMALL[:1])


def test_arrays_and_back() -> None:
    small = build(SMALL)
    back = Table.from_arrays(small.to_arrays())
    assert (back.names, back.summaries, back.aliases) == (small.names, small.summaries, small.aliases)
    for name in ("candidates", "grades", "features"):
        np.testing.assert_array_equal(getattr(back, name), getattr(small, name))
    bare = build(SMALL[1:])
    assert Table.from_arrays(bare.to_arrays()).aliases == bare.aliases == ()


@pytest.mark.parametrize(
    "change",
    [
        {"features": np.zeros((4, 3, 1), dtype=np.float32)},
        {"grades": np.zeros((4, 3))},
        {"candidates": np.full((4, 3), 4, dtype=np.int32)},
        {"candidates": np.zeros(4, dtype=np.int32)},
        {"alias_of": np.array([9], dtype=np.int32)},
        {"alias_of": np.array([0, 0], dtype=np.int32)},
        {"names": np.array("p.a")},
    ],
    ids=lambda change: str(next(iter(change))),
)
def test_arrays_that_are_no_table(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(DataError):
        Table.from_arrays(build(SMALL).to_arrays() | change)


class TestSplit:
    def test_parts_are_disjoint_complete_and_sized(self, table: Table) -> None:
        parts = table.parts
        everyone = np.concatenate(list(parts.values()))
        judged = np.flatnonzero(table.grades.max(axis=1) > 0)
        assert sorted(everyone) == judged.tolist() and list(parts) == ["train", "vali", "test"]
        shares = [len(numbers) / len(judged) for numbers in parts.values()]
        np.testing.assert_allclose(shares, [0.6, 0.2, 0.2], atol=1 / len(judged))

    def test_other_names_of_an_object_are_in_no_other_part(self, table: Table) -> None:
        names = set(table.names)
        assert len(names) == len(table.names) and not names & {alias for alias, _ in table.aliases}

    def test_new_objects_leave_nearly_all_queries_where_they_are(self, table: Table) -> None:
        fewer = np.arange(len(table.names)) % 10 != 0
        less = replace(table, grades=np.where(fewer[:, None], table.grades, 0).astype(np.int8))
        for part in ("train", "vali", "test"):
            stay = [q for q in table.parts[part] if fewer[q]]
            assert len(set(stay) & set(less.parts[part].tolist())) > 0.9 * len(stay)

    def test_queries(self, table: Table) -> None:
        train = table.queries(table.parts["train"])
        assert train.feature_names == FEATURE_NAMES and train.features.dtype == np.float32
        assert train.features.flags.c_contiguous and (train.lengths == 50).all()
        assert set(train.query_ids) <= set(table.names)
        assert train.document_ids is not None and set(train.document_ids) <= set(table.names)
        assert (np.maximum.reduceat(train.grades, train.starts[:-1]) > 0).all()


class TestContent:
    def test_size_and_judgments(self, table: Table) -> None:
        assert len(table.names) > 2000 and {name.partition(".")[0] for name in table.names} == set(PACKAGES)
        assert sum(map(len, table.parts.values())) > 1000
        assert grade(table, "numpy.argsort", "numpy.lexsort") == 2

    def test_grades_agree_with_the_docstrings(self, table: Table) -> None:
        """Of a hundred judged pairs of two functions of numpy, each is in the words of the See Also sections."""
        root = [q for q in np.concatenate(list(table.parts.values())) if table.names[q].count(".") == 1]
        checked = 0
        for q in root[:200]:
            for place in np.flatnonzero(table.grades[q]):
                c = table.candidates[q, place]
                if {name.rpartition(".")[0] for name in (table.names[q], table.names[c])} != {"numpy"}:
                    continue
                listed = [parse(getattr(np, table.names[i].rpartition(".")[2]).__doc__).see_also for i in (q, c)]
                there = self._lists(table, listed[0], c), self._lists(table, listed[1], q)
                assert there[0] and int(table.grades[q, place]) == 1 + there[1]
                checked += 1
        assert checked > 100

    @staticmethod
    def _lists(table: Table, listed: tuple[str, ...], number: int) -> bool:
        names = {table.names[number], *(alias for alias, at in table.aliases if at == number)}
        return bool({name.removeprefix("numpy.") for name in names} & {name.removeprefix("numpy.") for name in listed})

    def test_there_is_something_to_learn(self, table: Table) -> None:
        """A linear model beats BM25 and every single feature by far, on queries that it has not seen."""
        train, test = (table.queries(table.parts[part]) for part in ("train", "test"))
        bm25 = ndcg_at_10(test.features[:, FEATURE_NAMES.index("bm25")], test)
        best = max(ndcg_at_10(test.features[:, f], test) for f in range(test.n_features))
        scale = StandardScaler().fit(train.features)
        model = LogisticRegression(C=0.03, max_iter=1000).fit(scale.transform(train.features), train.grades > 0)
        learned = ndcg_at_10(model.decision_function(scale.transform(test.features)), test)
        assert 0.5 < bm25 < 0.7 and learned > 0.80 and learned > best + 0.04


class TestCache:
    def test_second_load_reads_the_file(
        self, table: Table, cache: Path, messages: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert len(messages) == 2 and "numpy" in messages[0] and "comparing" in messages[1]
        monkeypatch.setattr(api_search, "installed", None)  # building would fail
        again = load_table(cache, messages.append)
        assert len(messages) == 2
        assert again.features.tobytes() == table.features.tobytes() and again.names == table.names

    def test_load_split(self, table: Table, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RANKTUNE_CACHE", str(cache))
        split = load_split()
        assert split.name == "api-search" and split.vali is not None and split.test is not None
        for part, queries in (("train", split.train), ("vali", split.vali), ("test", split.test)):
            assert queries.query_ids.tolist() == [table.names[q] for q in table.parts[part]]

    @pytest.fixture
    def small(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
        """Four documents in place of the installed ones; counts how often they are asked for."""
        asked: list[int] = []

        def installed(packages: Sequence[str]) -> object:
            asked.append(len(packages))
            return SMALL

        monkeypatch.setattr(api_search, "installed", installed)
        yield asked

    def test_a_damaged_file_is_built_again(self, small: list[int], tmp_path: Path) -> None:
        first = load_table(tmp_path)
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:-100])
        assert load_table(tmp_path).features.tobytes() == first.features.tobytes() and len(small) == 2
        np.savez(file, names=np.zeros(3))  # a sound file of something else
        assert load_table(tmp_path).names == first.names and len(small) == 3
        assert load_table(tmp_path).names == first.names and len(small) == 3

    def test_without_a_place_to_write_it_still_works(self, small: list[int], tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.warns(RankTuneWarning, match="cannot be written"):
            assert load_table(tmp_path / "file").names == tuple(each.name for each in SMALL)

    def test_another_version_of_a_package_is_another_file(
        self, small: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        load_table(tmp_path)
        monkeypatch.setattr("ranktune.solvers.data.api_search.dataset.metadata.version", lambda name: "999")
        load_table(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2 and len(small) == 2


@pytest.mark.thorough
def test_bytes_do_not_depend_on_the_hash_seed_or_the_threads() -> None:
    code = (
        "import hashlib\nfrom ranktune.solvers.data.api_search.dataset import build\n"
        "from ranktune.solvers.data.api_search.documentation import find\n"
        "arrays = build(find(['joblib', 'optuna'])).to_arrays()\n"
        "print(hashlib.sha256(b''.join(array.tobytes() for array in arrays.values())).hexdigest())"
    )
    environments = [{"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "2"}]
    digests = {
        subprocess.run([sys.executable, "-c", code], env=e, capture_output=True, check=True).stdout
        for e in environments
    }
    assert len(digests) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays = build(installed(["joblib", "optuna"])).to_arrays()
    ours = hashlib.sha256(b"".join(array.tobytes() for array in arrays.values())).hexdigest()
    assert digests == {f"{ours}\n".encode()}
