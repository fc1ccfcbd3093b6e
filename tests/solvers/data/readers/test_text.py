"""Reading text: what lines mean, faults by line and column, options, and real files."""

import bz2
import functools
import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import dense as to_dense
from ranktune.solvers.core.arrays import stored_arrays, stored_values
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.readers import text as text_module
from ranktune.solvers.data.readers.parsing.streams import line_blocks
from ranktune.solvers.data.readers.text import read_text

GOOD = b"""2 qid:10 1:0.5 3:-2 #docid = GX-1 inc = 1 prob = 0.5
0 qid:10 2:1e2 #docid = GX-2 inc = 1 prob = 0.5
1 qid:12 1:1 2:2 3:3 #docid = GX-3 inc = 1 prob = 0.5
"""


def write(folder: Path, content: bytes, name: str = "data.txt") -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def test_text_becomes_queries(tmp_path: Path) -> None:
    queries = read_text(write(tmp_path, GOOD))
    assert queries.features.dtype == np.float32 and not queries.is_sparse
    assert queries.features.tolist() == [[0.5, 0, -2], [0, 100, 0], [1, 2, 3]]
    assert queries.grades.tolist() == [2, 0, 1]
    assert queries.starts.tolist() == [0, 2, 3]
    assert queries.query_ids.tolist() == [10, 12] and queries.query_ids.dtype == np.int64
    assert queries.document_ids is not None and queries.document_ids.tolist() == ["GX-1", "GX-2", "GX-3"]
    assert queries.rows is None


@pytest.mark.parametrize(
    "other",
    [
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b" ", b"\t"),
        GOOD.replace(b"\n", b"\n\n  \n"),
        GOOD.rstrip(b"\n"),
        b"# heading\n" + GOOD + b"#end",
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b" 1:", b"   1:").replace(b"#docid = ", b"# docid="),
        gzip.compress(GOOD, mtime=0),
        bz2.compress(GOOD),
        gzip.compress(GOOD[:60], mtime=0) + gzip.compress(GOOD[60:], mtime=0),
    ],
)
def test_spellings_of_the_same_data_are_the_same_data(tmp_path: Path, other: bytes) -> None:
    expected, queries = read_text(write(tmp_path, GOOD)), read_text(write(tmp_path, other, "other"))
    assert queries.fingerprint == expected.fingerprint
    assert queries.query_ids.tolist() == expected.query_ids.tolist()
    assert queries.document_ids is not None and expected.document_ids is not None
    assert queries.document_ids.tolist() == expected.document_ids.tolist()


@pytest.mark.parametrize("size", [1, 5, 37, 64, 200])
@pytest.mark.parametrize("layout", ["auto", "dense", "sparse"])
def test_the_size_of_blocks_changes_nothing(
    tmp_path: Path, size: int, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(size)
    lines = []
    for row in range(60):
        columns = np.sort(generator.choice(np.arange(1, 9), generator.integers(0, 8), replace=False))
        entries = " ".join(f"{column}:{generator.normal():.3f}" for column in columns)
        lines.append(f"{row % 3} qid:{row // 7} {entries} {'# x' + str(row) if row % 4 else ''}")
    file = write(tmp_path, "\n".join(lines).encode())
    expected = read_text(file, layout=layout)
    monkeypatch.setattr(text_module, "line_blocks", functools.partial(line_blocks, size=size))
    queries = read_text(file, layout=layout)
    assert queries.fingerprint == expected.fingerprint
    assert queries.query_ids.tolist() == list(range(9))
    assert queries.document_ids is not None and queries.document_ids.tolist()[:3] == ["", "x1", "x2"]


FAULTS = [
    ("0 qid:1 1:1\n0 1:1\n", "2:3", "no qid:"),
    ("0 1:1\n0 qid:1 1:1\n", "2:3", "none"),
    ("0 qid:1 1:1\n-1 qid:1 1:1\n", "2:1", "negative"),
    ("nan qid:1 1:1\n", "1:1", "not finite"),
    ("1e400 qid:1 1:1\n", "1:1", "not finite"),
    ("-1e-320 qid:1 1:1\n", "1:1", "negative"),
    ("0 qid:1 1:inf\n", "1:11", 'missing="zero"'),
    ("0 qid:1 1:-Infinity\n", "1:11", 'missing="zero"'),
    ("0 qid:1 1:1e400\n", "1:11", "too large"),
    ("0 qid:1 1:1e39\n", "1:11", "too large for float32. Divide"),
    ("0 qid:1 1:1 1:2\n", "1:13", "twice"),
    ("\n# x\n0 qid:1 1:1 3:1 2:1 1:2\n", "3:21", "twice"),
    ("0 qid:1 0:1\n", "1:9", "one_based=False"),
    ("0 qid:1 2000000000:1\n", "1:9", "1,000,000"),
    ("0 qid:1 1000000000000:1\n", "1:9", "max_features"),
    ("0 qid:1 1:0x10\n", "1:12", "decimal"),
    ("0 qid:1 1:\n", "1:11", "missing after the colon"),
    ("0 qid:1 1 :0.5\n", "1:10", "without spaces"),
    ("0 qid:1 1:0\0 2:1\n", "1:12", "decimal"),
    ("0 qid:1 1:0,5\n", "1:12", "decimal"),
    ("0 qid:1 1:1_000\n", "1:12", "decimal"),
    ("0 1:1 qid:1\n", "1:7", "right after the grade"),
    ("0 qid:1 qid:2 1:1\n", "1:9", "right after the grade"),
    ("0 qid: 1:1\n", "1:7", "followed by nothing"),
    ("good qid:1 1:1\n", "1:1", "not a number"),
    ("1:1 2:2\n", "1:2", "not a number"),
    ("0 qid:1 a:1\n", "1:9", "expected the number of a feature"),
    ("0 qid:1 -1:1\n", "1:9", "expected the number of a feature"),
    ("0 qid:1 1.5:1\n", "1:10", "expected the number of a feature"),
    ("0 qid:1\0 1:1\n", "1:8", "a control character"),
    ("0 qid:1 1:1 # \0\n", "1:15", "a control character"),
]


@pytest.mark.parametrize(("content", "place", "word"), FAULTS)
def test_bad_lines_are_named_with_file_line_column_and_remedy(
    tmp_path: Path, content: str, place: str, word: str
) -> None:
    file = write(tmp_path, content.encode())
    with pytest.raises(DataError, match=rf"^{re.escape(str(file))}:{place}: .*{re.escape(word)}.*Near "):
        read_text(file)


def test_the_column_and_what_stands_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data.txt:1:12: .* Near 'qid:1\\t1:0,5 2:1'") as caught:
        read_text(write(tmp_path, b"0 qid:1\t1:0,5 2:1\n"))
    assert "\t" not in str(caught.value)
    long = b"0 qid:1 " + b" ".join(b"%d:0.125" % k for k in range(1, 1000)) + b" 1000:x 1001:1\n"
    with pytest.raises(DataError, match="1000:x 1001:1") as caught:
        read_text(write(tmp_path, long))
    assert len(str(caught.value)) < 300
    with pytest.raises(DataError, match=r":1:13: "):  # characters, not bytes
        read_text(write(tmp_path, "0 qid:äöü 1:x\n".encode()))


REFUSED: list[tuple[bytes, dict[str, Any], str]] = [
    *[(content, {}, "no documents") for content in (b"", b"\n\n", b"# only\n# comments\n", b"\xef\xbb\xbf")],
    (b"0 qid:1\n1 qid:1\n", {}, "no line has a feature"),
    (b"0 qid:1 2:1 1:1 2:2\n0 qid:1 1:x\n", {}, ":1:.*twice"),  # the first fault
    (b"0 qid:1 1:1e400\n0 qid:1 1:x\n", {}, ":1:.*too large"),
    (b"0 qid:1 1:1e39\n", {"missing": "zero"}, "too large for float32"),
    (b"0 qid:1 1:NULL\n", {"missing": "error"}, 'missing="zero".*NULL'),
    (b"0 qid:1 1000:5\n", {"one_based": False, "max_features": 1000}, "max_features"),
    (GOOD, {"n_features": 1}, r"data.txt:1: features .* not have: 2 and 3\. It has 1"),
    (GOOD, {"qid": [1, 1, 1]}, "already"),
]


@pytest.mark.parametrize(("content", "options", "words"), REFUSED)
def test_what_is_refused_as_a_whole(tmp_path: Path, content: bytes, options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_text(write(tmp_path, content), **options)


def test_a_line_may_have_no_feature(tmp_path: Path) -> None:
    assert read_text(write(tmp_path, b"0 qid:1\n1 qid:1 1:5\n")).features.tolist() == [[0], [5]]
    assert read_text(write(tmp_path, b"0 qid:1\n"), n_features=2, layout="dense").features.tolist() == [[0, 0]]


def test_lines_of_a_query_that_are_apart_are_gathered(tmp_path: Path) -> None:
    file = write(tmp_path, b"0 qid:b 1:1 # p\n1 qid:a 1:2 # q\n\n2 qid:b 1:3 # r\n3 qid:a 1:4\n")
    with pytest.warns(RankTuneWarning, match=r"data.txt:4: query b appears again .*1 more"):
        queries = read_text(file)
    assert queries.query_ids.tolist() == ["b", "a"]
    assert queries.grades.tolist() == [0, 2, 1, 3]
    assert queries.features.ravel().tolist() == [1, 3, 2, 4]
    assert queries.document_ids is not None and queries.document_ids.tolist() == ["p", "r", "q", ""]
    assert queries.in_caller_order(queries.grades).tolist() == [0, 1, 2, 3]


def test_features_out_of_order_are_sorted(tmp_path: Path) -> None:
    file = write(tmp_path, b"0 qid:1 1:1\n0 qid:1 3:3 1:1 2:2\n")
    with pytest.warns(RankTuneWarning, match=r"data.txt:2: features are out of order"):
        queries = read_text(file)
    assert queries.features.tolist() == [[1, 0, 0], [1, 2, 3]]
    with pytest.warns(RankTuneWarning):
        assert stored_arrays(read_text(file, layout="sparse").features)[1].tolist() == [0, 0, 1, 2]


def test_query_ids_are_numbers_only_if_all_are(tmp_path: Path) -> None:
    ids = ["7", "007", "1.5", "9" * 30, "q/ü", "-3"]
    text = "".join(f"0 qid:{name} 1:1\n" for name in ids)
    assert read_text(write(tmp_path, text.encode())).query_ids.tolist() == ids
    long = "x" * 1000
    assert read_text(write(tmp_path, f"0 qid:{long} 1:1\n0 qid:2 1:1".encode())).query_ids.tolist() == [long, "2"]


def test_layout_follows_what_is_written(tmp_path: Path) -> None:
    wide = write(tmp_path, b"".join(b"1 qid:1 %d:1 %d:0\n" % (k, k + 1) for k in range(1, 40)))
    sparse, dense = read_text(wide), read_text(wide, layout="dense")
    assert sparse.is_sparse and not dense.is_sparse
    assert to_dense(sparse.features).tolist() == dense.features.tolist()
    assert stored_values(sparse.features).size == 39  # written zeros are not kept
    assert [array.dtype for array in stored_arrays(sparse.features)[1:]] == [np.int32, np.int32]
    assert to_dense(read_text(write(tmp_path, GOOD), layout="sparse").features).tolist() == (
        read_text(write(tmp_path, GOOD)).features.tolist()
    )


def test_a_late_wide_line_does_not_make_a_wide_dense_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "line_blocks", functools.partial(line_blocks, size=100))
    lines = [b"1 qid:1 1:1 2:2 3:3\n"] * 1000 + [b"1 qid:1 1000000:5\n"]
    queries = read_text(write(tmp_path, b"".join(lines)))
    assert queries.is_sparse and queries.n_features == 1_000_000
    assert stored_values(queries.features).size == 3001
    assert queries.features[[1000], [999_999]].tolist() == [5.0]


WORDS = {"bad": 0.0, "-1": 0.0, "E": 3.0, "+1": 1.0, "très_bon": 0.25, "2": 4.0}


@pytest.mark.parametrize("size", [30, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_words_for_grades_are_read_as_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, end: bytes
) -> None:
    monkeypatch.setattr(text_module, "line_blocks", functools.partial(line_blocks, size=size))
    generator = np.random.default_rng(0)
    drawn = generator.choice([*WORDS, "0", "1.5"], 60)
    features = [f" qid:{k // 7} 1:{k} 3:2 # bad {word}" for k, word in enumerate(drawn)]
    start = b"# bad"
    words = write(tmp_path, end.join([start, *(f" {w}{f}".encode() for w, f in zip(drawn, features, strict=True))]))
    numbers = [WORDS.get(word, word) for word in drawn]
    lines = [start, *(f" {number}{f}".encode() for number, f in zip(numbers, features, strict=True))]
    expected = read_text(write(tmp_path, end.join(lines), "numbers.txt"))
    for grades in (WORDS, ",".join(f"{word}={number}" for word, number in WORDS.items())):
        queries = read_text(words, grades=grades)
        for name in ("features", "grades", "starts", "query_ids", "document_ids"):
            np.testing.assert_array_equal(getattr(queries, name), getattr(expected, name))
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(words.read_bytes()))
    assert read_text(packed, grades=WORDS).grades.tolist() == expected.grades.tolist()
    with pytest.raises(DataError, match=r"data.txt:\d+:2: the grade is (not a number|negative)\. .* grades='"):
        read_text(words, grades="bad=0,E=3")


def test_float32_and_float64_hold_the_nearest_number(tmp_path: Path) -> None:
    file = write(tmp_path, b"0.1 qid:1 1:0.1 2:1.00000005960464477539062500000000000000001 3:1e-320\n")
    double = read_text(file, dtype=np.float64)
    assert double.features.tolist() == [[0.1, 1.0 + 2.0**-24, 1e-320]]
    assert read_text(file).features.tolist() == [[float(np.float32(0.1)), 1.0 + 2.0**-23, 0.0]]
    assert double.grades.tolist() == [0.1] == read_text(file).grades.tolist()


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_missing_values_stay_missing(tmp_path: Path, layout: Any, dtype: Any) -> None:
    file = write(tmp_path, b"0 qid:1 1:NULL 2:0.5 3:nan\n1 qid:1 3:1\n2 qid:2 1:0\n")
    queries = read_text(file, layout=layout, dtype=dtype)
    assert queries.has_missing and not read_text(write(tmp_path, b"0 qid:1 1:2\n")).has_missing
    np.testing.assert_array_equal(to_dense(queries.features), [[np.nan, 0.5, np.nan], [0, 0, 1], [0, 0, 0]])


def test_missing_values_can_be_read_as_zero(tmp_path: Path) -> None:
    file = write(tmp_path, b"0 qid:1 1:NULL 2:nan 3:1e400 4:-inf 5:2\n")
    assert read_text(file, missing="zero").features.tolist() == [[0, 0, 0, 0, 2]]


def test_counting_from_zero_must_be_said(tmp_path: Path) -> None:
    file = write(tmp_path, b"0 qid:1 0:1 2:3\n")
    assert read_text(file, one_based=False).features.tolist() == [[1, 0, 3]]


@pytest.mark.parametrize("name", ["data.txt.query", "data.txt.group", "data.txt.query.gz"])
def test_group_sizes_lie_beside_text_without_qid(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, b"0 1:1\n1 1:2\n2 1:3\n")
    assert read_text(file, qid=["a", "b", "a"]).rows is not None
    assert read_text(file, group=[2, 1]).starts.tolist() == [0, 2, 3]
    sizes = b"1\n2\n"
    write(tmp_path, gzip.compress(sizes, mtime=0) if name.endswith(".gz") else sizes, name)
    assert read_text(file).starts.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (b"1\n2\n", "sums to 3"),
        (b"1\nmany\n", ":2:1: 'many'"),
        (b"999999999999999999\n" * 18 + b"446744073709551640\n", f"sums to {2**64 + 6}, but there are 2 rows"),
    ],
    ids=["more", "text", "overflow"],
)
def test_group_sizes_must_fit(tmp_path: Path, sizes: bytes, words: str) -> None:
    file = write(tmp_path, gzip.compress(b"0 1:1\n1 1:2\n", mtime=0), "data.txt.gz")
    write(tmp_path, sizes, "data.txt.query")
    with pytest.raises(DataError, match=rf"data\.txt\.query.*{words}"):
        read_text(file)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[("dtype", np.int32), ("dtype", "double!"), ("missing", "mean")],
        *[("layout", "csc"), ("n_features", "a"), ("max_features", "a")],
    ],
)
def test_unknown_values_of_options_are_refused(tmp_path: Path, option: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=option):
        read_text(write(tmp_path, GOOD), **{option: value})
