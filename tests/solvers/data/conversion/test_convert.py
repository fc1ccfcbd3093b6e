"""A converted folder holds what reading the source gives, whatever the blocks are, or nothing is left of it."""

import bz2
import gzip
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.readers import text as text_reader
from ranktune.solvers.data.readers.parsing.streams import line_blocks
from tests.support.query_samples import assert_same


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "line_blocks", partial(line_blocks, size=300))
    monkeypatch.setattr("ranktune.solvers.data.conversion.segments.JOINED", 20)


def line(query: object, entries: dict[int, float], comment: str = "") -> str:
    return f"{query and 1} qid:{query} {' '.join(f'{k}:{v}' for k, v in entries.items())}{comment}\n"


def random_lines(seed: int, n_queries: int, longest: int, n_features: int, share: float) -> Iterator[str]:
    generator = np.random.default_rng(seed)
    for query in range(1, n_queries + 1):
        for row in range(generator.integers(1, longest + 1)):
            kept = np.flatnonzero(generator.random(n_features) < share)
            entries = {int(k) + 1: round(float(generator.normal()), 3) for k in kept}
            yield line(query, entries or {1: 0}, f" # docid = D{row} inc = 1" if seed % 2 else "")


CASES: dict[str, Callable[[], Iterable[str]]] = {
    "dense": lambda: random_lines(0, 30, 6, 5, 1.0),
    "dense-documents": lambda: random_lines(1, 30, 6, 5, 0.9),
    "sparse": lambda: random_lines(2, 30, 6, 200, 0.02),
    "one-query-of-many-blocks": lambda: random_lines(1, 2, 300, 4, 1.0),
    "dense-then-sparse": lambda: [line(q, {1: 1, 2: 2.5}) for q in range(1, 80)] + [line(80, {500: 1.0})],
    "sparse-then-dense": lambda: (
        [line(q, {50: 1}) for q in range(1, 20)] + [line(q, {k: k / 8 for k in range(1, 51)}) for q in range(20, 60)]
    ),
    "wider-and-wider": lambda: [line(q, {k: 1.5 for k in range(1, q + 1)}) for q in range(1, 40)],
    "wider-sparse": lambda: [line(q, {q * q: 1.5}) for q in range(1, 60)],
    "not-adjacent": lambda: [line(q % 7, {1: q / 4, 2: 1, 3: q}, f" # D{q}") for q in range(7, 99)],
    "not-adjacent-sparse": lambda: [line(q % 7, {q: q / 4}) for q in range(7, 99)],
    "not-adjacent-and-wider": lambda: [line(q % 7, {k: q / 4 for k in range(1, q // 9 + 3)}) for q in range(7, 99)],
    "documents-later": lambda: [line(q, {1: q}, " # name" if q > 60 else "") for q in range(1, 90)],
    "missing": lambda: [f"1 qid:{q} 1:NaN 2:{q}\n" for q in range(1, 60)],
    "text-ids": lambda: [line(f"query-{q // 3}", {1: q}, f" # {'x' * (q % 80)}é") for q in range(1, 90)],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
@pytest.mark.usefixtures("small_blocks")
def test_text_in_small_blocks(case: str, dtype: type, tmp_path: Path) -> None:
    source = tmp_path / "data.txt"
    source.write_text("".join(CASES[case]()), encoding="utf-8")
    expected = ranktune.read(source, dtype=dtype)
    assert_same(ranktune.convert(source, tmp_path / "made", dtype=dtype), expected)
    assert_same(ranktune.read(tmp_path / "made"), expected)
    assert sorted(path.suffix for path in (tmp_path / "made").iterdir() if path.suffix not in (".npy", ".json")) == []


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
@pytest.mark.usefixtures("small_blocks")
def test_options_and_compressed_text(pack: Any, layout: Any, tmp_path: Path) -> None:
    source = tmp_path / "data.txt"
    source.write_bytes(pack("".join(random_lines(3, 30, 6, 5, 0.5)).encode()))
    options: dict[str, Any] = {"layout": layout, "n_features": 9}
    assert_same(ranktune.convert(source, tmp_path / "made", **options), ranktune.read(source, **options))


@pytest.mark.usefixtures("small_blocks")
def test_sizes_of_queries_beside_the_text(tmp_path: Path) -> None:
    source = tmp_path / "rank.train"
    source.write_text("".join(f"{k % 3} 1:{k / 8}\n" for k in range(100)))
    (tmp_path / "rank.train.query").write_text("60\n40\n")
    assert_same(ranktune.convert(source, tmp_path / "made"), ranktune.read(source))


def test_predictions_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    source = tmp_path / "data.txt"
    source.write_text("".join(f"{k % 3} qid:{k % 5} 1:{k / 8} 2:{k % 4}\n" for k in range(60)))
    with pytest.warns(RankTuneWarning, match=r"data\.txt:\d+: query \d appears again after other queries"):
        made = ranktune.convert(source, tmp_path / "made")
    model = ranktune.RankSVM().fit(made).as_model()
    with pytest.warns(RankTuneWarning, match="appears again"):
        expected = ranktune.predict(model, source)
    assert ranktune.predict(model, tmp_path / "made").tolist() == expected.tolist()


@pytest.mark.parametrize("bad", ["1 qid:2 1:x\n", "1 qid:2 0:1\n", "-1 qid:2 1:1\n"])
@pytest.mark.usefixtures("small_blocks")
def test_a_fault_in_the_source_leaves_nothing(bad: str, tmp_path: Path) -> None:
    source = tmp_path / "data.txt"
    source.write_text("1 qid:1 1:0.5\n" * 100 + bad)
    with pytest.raises(DataError, match=r"data\.txt:101:"):
        ranktune.convert(source, tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


@pytest.mark.parametrize("change", ["longer", "same-size"])
def test_a_source_that_changes_meanwhile(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "data.txt"
    source.write_text("1 qid:1 1:0.5\n" * 100)

    def changing(*arguments: Any, **options: Any) -> Iterator[Any]:
        for number, block in enumerate(line_blocks(*arguments, size=300, **options)):
            yield block
            if number == 2 and change == "longer":
                with open(source, "a") as file:
                    file.write("1 qid:1 1:0.5\n")
            elif number == 2:
                with open(source, "r+") as file:
                    file.write("0")

    monkeypatch.setattr(text_reader, "line_blocks", changing)
    with pytest.raises(DataError, match=r"data\.txt: changed while it was read\. Read it again when nothing writes"):
        ranktune.convert(source, tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


FULL = """
import resource, signal, sys
import ranktune
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
source, output = sys.argv[1:]
ranktune.read(source)  # compiles before the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    ranktune.convert(source, output)
except ranktune.solvers.core.errors.DataError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "data.txt"
    source.write_text("".join(random_lines(0, 300, 6, 5, 1.0)))
    done = subprocess.run([sys.executable, "-c", FULL, source, tmp_path / "made"], capture_output=True, text=True)
    assert "made: cannot be written (File too large). Nothing is left there. Raise the limit" in done.stdout, (
        done.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


def test_progress_after_two_seconds() -> None:
    from ranktune.solvers.data.conversion.convert import ShareReport

    said: list[str] = []
    times = iter([0.0, 1.0, 2.5, 3.0, 4.0])
    report = ShareReport("big.txt", said.append, lambda: next(times))
    for share in (0.1, 0.25, 0.3, 0.8):
        report(share)
    assert said == ["big.txt: 25%, about 8 s left", "big.txt: 80%, about 1 s left"]
