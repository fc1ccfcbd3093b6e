"""What lies in or beside the data is used or mentioned: files of LightGBM, columns of query ids of frames."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ranktune
from ranktune.solvers import LambdaMART, RankSVM
from ranktune.solvers.core.errors import DataError
from ranktune.streaming import convert

TEXT = "1 1:0.5\n0 1:0.25\n0 1:0.5\n2 1:1\n"
CSV = "1,0.5\n0,0.25\n0,0.5\n2,1\n"


@pytest.mark.parametrize(("name", "content"), [("train.txt", TEXT), ("rank.train", TEXT), ("train.csv", CSV)])
def test_weights_and_positions_beside_a_file_belong_to_its_documents(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / f"{name}.query").write_text("2\n2\n")
    (tmp_path / f"{name}.weight").write_text("1\n2.5\n1\n0.5\n")
    (tmp_path / f"{name}.position").write_text("0\n1\n0\n1\n")
    queries = ranktune.read(tmp_path / name)
    assert queries.document_weights is not None and queries.document_weights.tolist() == [1.0, 2.5, 1.0, 0.5]
    assert queries.positions is not None and queries.positions.tolist() == [0, 1, 0, 1]
    (tmp_path / f"{name}.weight").write_text("1\n2.5\n1\n")
    with pytest.raises(DataError, match=rf"{name}.weight: must hold a number for each of the 4 documents"):
        ranktune.read(tmp_path / name)
    with pytest.raises(DataError, match=f"{name}.weight"):
        convert(tmp_path / name, tmp_path / "folder")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", ["qid", "group_id", "Query_ID"])
@pytest.mark.parametrize("solver", [RankSVM, LambdaMART])
def test_a_column_of_query_ids_is_no_feature(make: Any, name: str, solver: Any) -> None:
    generator = np.random.default_rng(0)
    frame = make({"a": generator.normal(size=40), "b": generator.normal(size=40), name: np.repeat(np.arange(4), 10)})
    y = np.tile([0, 1], 20)
    with pytest.raises(DataError, match=rf"X has a column '{name}'.*and the queries by qid=X\['{name}'\]"):
        solver().fit(frame, y)
    if name.lower() != "group_id":
        with pytest.raises(DataError, match=rf"X has a column '{name}'"):
            solver().fit(frame, y, qid=frame[name])
    assert solver().fit(frame[["a", "b"]], y, qid=np.asarray(frame[name])).n_features_in_ == 2


def records(columns: dict[str, Any]) -> Any:
    return pd.DataFrame(columns).to_records(index=False)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, records])
def test_no_form_of_a_table_hides_a_column_of_query_ids(make: Any) -> None:
    table = make({"a": [0.5, 1.0, 0.25], "qid": [1, 1, 2]})
    y, qid = [0, 1, 0], [1, 1, 2]
    for use in (
        lambda: RankSVM().fit(table, y), lambda: RankSVM().fit(table, y, qid=qid),
        lambda: ranktune.read((table, y, qid)), lambda: ranktune.Queries.from_arrays(table, y),
    ):  # fmt: skip
        with pytest.raises(DataError, match="X has a column 'qid'"):
            use()
