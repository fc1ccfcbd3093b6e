"""The check of an export: it sees what agrees, and what does not."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import EVALUATORS, SYNTAX, agreement, check_evaluator, ranks_alike
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import parts_of
from ranktune.solvers.models.linear import LinearModel
from tests.support.export_samples import NAMES, SAMPLES, blend, trees


def queries(features: int = 5, rows: int = 60) -> Queries:
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(rows, features)), 1) * (generator.random((rows, features)) < 0.7)
    return Queries.from_arrays(X, np.zeros(rows), qid=generator.integers(0, 9, rows), feature_names=NAMES[:features])


@pytest.mark.parametrize("format", EVALUATORS)
@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_what_was_exported_agrees(format: str, model: Model) -> None:
    if not FORMATS[format].holds(parts_of(model)):
        pytest.skip(f"{format} does not hold it")
    result = agreement(model, format, export(model, format), queries())
    assert result.same == result.queries == 9
    assert result.difference < 1e-6


@pytest.mark.parametrize("model", [trees(), blend()], ids=["trees", "blend"])
def test_data_of_any_kind(model: Model) -> None:
    content = export(model, "python")
    plain = queries()
    as_sparse = replace(plain, features=sparse.csr_array(plain.features))
    turned = [3, 1, 4, 0, 2]
    names = tuple(NAMES[k] for k in turned)
    swapped = replace(plain, features=np.ascontiguousarray(plain.features[:, turned]), feature_names=names)
    nameless = replace(plain, feature_names=None)
    for data in (plain, as_sparse, swapped, nameless):
        assert agreement(model, "python", content, data).difference <= 1e-15
    with pytest.raises(DataError, match="3 features"):
        agreement(model, "python", content, replace(queries(3), feature_names=None))


def test_what_differs_is_seen() -> None:
    model = LinearModel(np.array([1.0, -2.0]), "RankSVM")
    wrong = export(LinearModel(np.array([1.0, 2.0]), "RankSVM"), "python")
    data = Queries.from_arrays([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [2.0, 0.0]], np.zeros(4), qid=[1, 1, 2, 2])
    result = agreement(model, "python", wrong, data)
    assert (result.queries, result.same, result.difference) == (2, 1, 4.0 / 3.0)


def test_orders_alike() -> None:
    a = np.array
    assert ranks_alike(a([3.0, 2.0, 1.0]), a([0.3, 0.2, 0.1]))
    assert not ranks_alike(a([3.0, 2.0, 1.0]), a([0.3, 0.1, 0.2]))
    assert ranks_alike(a([2.0, 2.0, 1.0]), a([0.1, 0.2, 0.0]))  # alike for the model
    assert ranks_alike(a([3.0, 2.0]), a([0.5, 0.5]))  # alike for the export: they stay as they stood
    assert ranks_alike(-np.arange(100.0), np.zeros(100)) and not ranks_alike(a([2.0, 3.0]), a([0.5, 0.5]))
    assert ranks_alike(a([1.0]), a([-1.0])) and ranks_alike(np.zeros(0), np.zeros(0))


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - EVALUATORS.keys() - SYNTAX.keys()))
def test_formats_that_nothing_here_can_check(format: str) -> None:
    with pytest.raises(ParameterError, match=f"nothing here can check {format}: only onnx, .* can be checked"):
        check_evaluator(format)


def test_without_onnxruntime_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ParameterError, match="pip install onnxruntime"):
        check_evaluator("onnx")
    check_evaluator("python")
