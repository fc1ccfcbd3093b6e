"""Mutated inputs of every reader, and what came of reading them, compared with a plain reader of the format.

`python -m tests.fuzzing.mutation COUNT [SEED]` reads that many of each format and prints the table of outcomes.
"""

import bz2
import gzip
import io
import json
import math
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ranktune.solvers.core.arrays import dense
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import toml_fields
from tests.fuzzing.ledger import Ledger, table
from tests.fuzzing.plain_readers import JUDGED, READERS, RefusedError, Row

VALUES = (0.5, -2.0, 1e-310, 5e-324, 1e308, 0.1, 123456789012345680.0, -0.25, 3.0, 1e-7, 333.3333333333333)
TOKENS = (
    b"qid:", b"1:", b"2:0.5", b"nan", b"NULL", b"1e999", b"-", b"+", b".", b"e", b"#", b"\n", b"\r", b"\t", b" ", b"\0",
    b":", b"0", b"1_0", b"0x1", b"999999999999", b"\xef\xbb\xbf", b"\xff", b",", b'"', b"'", b";", b"{", b"}", b"[",
    b"]", b"true", b"null", b"1e-330", b"12345678901234567890", b"01", b"grade", b"label", b"inf", b"-0",
    b"\xc3\xa9", b",,",
)  # fmt: skip
"""What is put into inputs."""
MORE_TOKENS = (
    *TOKENS, b"\xef\xbc\x91", b"9007199254740993", b"1" * 310, b"9007199254740992.0", b', "a": 1', b'"grade": 1, ',
    b"qid", b'{"name": "a", "value": 1}, ', b"weight", b"a=1,", b"q0 0 d1 2\n", b"\xc2\xa0",
)  # fmt: skip
FEW_BELOW = 1_000_000
"""Inputs of smaller numbers are made of TOKENS alone."""


APART = ("elastic.jsonl", "solr.jsonl")
"""Formats in which an absent feature is 0."""
FRAME = pd.DataFrame([(*pair, float(row)) for row, pair in enumerate(JUDGED)], columns=["qid", "docid", "f"])


class Outcome(StrEnum):
    """What came of reading an input."""

    EQUAL = "read alike"
    REFUSED = "refused"
    LENIENT = "read, the plain reader refuses"
    WRONG = "read otherwise"
    TRACEBACK = "traceback"


@dataclass(frozen=True)
class Input:
    """A mutated input: its format, the seed that makes it, and its bytes."""

    kind: str
    seed: int
    content: bytes


def original(kind: str, generator: np.random.Generator) -> bytes:
    """Return a small, valid input of a format."""
    n = int(generator.integers(4, 14))
    X = generator.choice(VALUES, size=(n, 3))
    grades, queries = generator.integers(0, 3, n), np.sort(generator.integers(1, 5, n))
    frame = pd.DataFrame({"qid": queries, "grade": grades, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    if kind.startswith("text"):
        lines = [
            f"{grade} qid:{query} {' '.join(f'{k}:{v!r}' for k, v in enumerate(x, 1))} # d{row}\n".encode()
            for row, (grade, query, x) in enumerate(zip(grades, queries, X.tolist(), strict=True))
        ]
        if kind == "text.gz":
            return gzip.compress(b"".join(lines), mtime=0)
        if kind == "text.bz2":
            return bz2.compress(b"".join(lines[: n // 2])) + bz2.compress(b"".join(lines[n // 2 :]))
        return b"".join(lines)
    if kind in ("csv", "tsv"):
        return str(frame.to_csv(index=False, sep="," if kind == "csv" else "\t")).encode()
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in frame.to_dict("records")).encode()
    rows = list(zip(grades.tolist(), queries.tolist(), X.tolist(), strict=True))
    if kind == "elastic.jsonl":
        logs = [[{"name": name, "value": v} for name, v in zip("abc", x, strict=True)] for *_, x in rows]
        hits = [
            {"_id": f"d{k}", "_source": {"qid": q, "grade": y}, "fields": {"_ltrlog": [{"e": logs[k]}]}}
            for k, (y, q, _) in enumerate(rows)
        ]
        return "".join(json.dumps(hit) + "\n" for hit in hits).encode()
    if kind == "solr.jsonl":
        answers = [{"qid": q, "grade": y, "[features]": "a={},b={},c={}".format(*x)} for y, q, x in rows]
        return "\n".join(map(json.dumps, answers)).encode()
    if kind == "run":
        return "".join(f"q{q} Q0 d{k} {k} {x[0]!r} tag\n" for k, (_, q, x) in enumerate(rows)).encode()
    if kind == "qrels":
        pairs = zip(JUDGED, generator.integers(0, 3, len(JUDGED)).tolist(), strict=True)
        return "".join(f"{q} 0 {d} {grade}\n" for (q, d), grade in pairs).encode()
    buffer = io.BytesIO()
    if kind == "npz":
        (np.savez if n % 2 else np.savez_compressed)(buffer, X=X, y=grades, qid=queries)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(frame), buffer, write_page_checksum=True, compression="none")
    else:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table)
    return buffer.getvalue()


def mutated(content: bytes, generator: np.random.Generator, tokens: Sequence[bytes] = TOKENS) -> bytes:
    """Return content with one to three changes."""
    for _ in range(int(generator.integers(1, 4))):
        at = int(generator.integers(len(content) + 1))
        match int(generator.integers(7)):
            case 0 if at < len(content):
                changed = bytearray(content)
                changed[at] ^= 1 << int(generator.integers(8))
                content = bytes(changed)
            case 1:
                content = content[:at] + content[at + int(generator.integers(1, 5)) :]
            case 2:
                content = content[:at] + generator.bytes(int(generator.integers(1, 5))) + content[at:]
            case 3:
                other = int(generator.integers(len(content) + 1))
                content = content[:at] + content[min(at, other) : max(at, other)][:40] + content[at:]
            case 4 if generator.random() < 0.3:
                content = content[:at]
            case _:
                content = content[:at] + tokens[int(generator.integers(len(tokens)))] + content[at:]
    return content


def inputs(kind: str, count: int, seed: int) -> list[Input]:
    """Return that many mutated inputs; the number of each is its seed."""
    results = []
    for number in range(seed, seed + count):
        generator = np.random.default_rng([number, *kind.encode()])
        tokens = TOKENS if number < FEW_BELOW else MORE_TOKENS
        results.append(Input(kind, number, mutated(original(kind, generator), generator, tokens)))
    return results


def outcome(given: Input, folder: Path) -> tuple[Outcome, str]:
    """Read an input; return what came of it, and an explanation where it is wrong."""
    path = folder / f"data.{given.kind}".replace("data.text", "data.txt")
    path.write_bytes(given.content)
    try:
        expected: list[Row] | None = READERS[given.kind](given.content)
        why = ""
    except RefusedError as error:
        expected, why = None, str(error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options: ReadOptions = {"dtype": np.float64} if given.kind.startswith("text") else {}
            if given.kind == "qrels":
                queries = catalogue.read(FRAME, qrels=path)
            else:
                queries = catalogue.read(path, graded=given.kind != "run", **options)
    except RankTuneError as error:
        return Outcome.REFUSED, str(error)
    except Exception:
        return Outcome.TRACEBACK, traceback.format_exc()
    rows = rows_of(queries)
    if expected is None:  # perhaps what was changed does not matter
        generator = np.random.default_rng([given.seed, *given.kind.encode()])
        expected = READERS[given.kind](original(given.kind, generator))
    names = queries.feature_names or tuple(str(k + 1) for k in range(queries.n_features))
    absent = math.nan if queries.feature_names and given.kind not in APART else 0.0
    wanted = [(row.grade, row.query, tuple(row.features.get(name, absent) for name in names)) for row in expected]
    alike = len(rows) == len(wanted) and all(map(_same, rows, wanted))
    alike = alike and (queries.feature_names is None or {key for row in expected for key in row.features} == {*names})
    if alike:
        return Outcome.EQUAL, ""
    return (Outcome.LENIENT, why) if why else (Outcome.WRONG, f"{rows}\nplainly\n{wanted}")


def rows_of(queries: Queries) -> list[tuple[float, str, tuple[float, ...]]]:
    """Return grade, query and features of each document, in the order of the file."""
    X, ids = dense(queries.features), np.repeat(queries.query_ids.astype(object), queries.lengths)
    rows = [
        (float(g), str(q), tuple(map(float, x))) for g, q, x in zip(queries.grades, ids.tolist(), X, strict=True)
    ]  # fmt: skip
    order = range(len(rows)) if queries.rows is None else np.argsort(queries.rows).tolist()
    return [rows[at] for at in order]


def _same(row: tuple[float, str, tuple[float, ...]], other: tuple[float, str, tuple[float, ...]]) -> bool:
    return row[:2] == other[:2] and len(row[2]) == len(other[2]) and np.array_equal(row[2], other[2], equal_nan=True)


def model_outcome(seed: int, folder: Path) -> tuple[Outcome, str]:
    """Damage a saved model; it must score as before, or be refused."""
    generator = np.random.default_rng([seed, 1])
    path = folder / "model.json"
    weights = generator.choice(VALUES[:2], size=4)
    LinearModel(weights, "RankSVM").save(path)
    path.write_bytes(mutated(path.read_bytes(), generator))
    try:
        scores = load_model(path).predict(np.eye(4))
    except RankTuneError as error:
        return Outcome.REFUSED, str(error)
    except Exception:
        return Outcome.TRACEBACK, traceback.format_exc()
    return (Outcome.EQUAL, "") if scores.tolist() == weights.tolist() else (Outcome.WRONG, str(scores))


def study_outcome(seed: int, folder: Path) -> tuple[Outcome, str]:
    """Damage a declaration of a study; it must say what TOML says, or be refused."""
    import tomllib

    generator = np.random.default_rng([seed, 2])
    path = folder / "study.toml"
    text = 'data = "a.csv"\ntrials = 20\nmetric = "ndcg@10"\nsolvers = ["RankSVM"]\nseed = 3\nfolds = 4\n'
    path.write_bytes(mutated(text.encode(), generator))
    try:
        study = Study.from_dict(toml_fields(path))
    except RankTuneError as error:
        return Outcome.REFUSED, str(error)
    except Exception:
        return Outcome.TRACEBACK, traceback.format_exc()
    plain = tomllib.loads(path.read_bytes().decode())
    wrong = [
        name for name, value in plain.items() if name in ("trials", "seed", "folds") and getattr(study, name) != value
    ]
    return (Outcome.WRONG, str(wrong)) if wrong else (Outcome.EQUAL, "")


OTHERS: Mapping[str, object] = {"model": model_outcome, "study.toml": study_outcome}


def tried(kind: str, count: int, seed: int, folder: Path) -> tuple[Counter[Outcome], list[str]]:
    """Read that many mutated inputs of a format; return the counts of outcomes, and what is wrong."""
    result: Counter[Outcome] = Counter()
    bad = []
    for number in range(seed, seed + count):
        if kind == "model":
            came, said = model_outcome(number, folder)
        elif kind == "study.toml":
            came, said = study_outcome(number, folder)
        else:
            came, said = outcome(inputs(kind, 1, number)[0], folder)
        result[came] += 1
        if came not in (Outcome.EQUAL, Outcome.REFUSED):
            bad.append(f"{came}: {kind} {number}: {said.strip()[-600:]}")
    return result, bad


def main(count: int, seed: int = 0) -> None:
    """Print what is wrong, and the table of outcomes: a row a format."""
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        for kind in (*READERS, *OTHERS):
            result, bad = tried(kind, count, seed, Path(folder))
            print("\n".join(bad[:8]), flush=True)
            ledger.counts.update({(kind, str(outcome)): times for outcome, times in result.items()})
    print(table(ledger.counts, "format"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
