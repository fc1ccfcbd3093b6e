"""Models that libraries load from Java and score, or that are refused before they are written."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from xml.etree import ElementTree

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.export import export
from ranktune.solvers.export.check import check_syntax
from ranktune.solvers.export.pmml import FIELDS
from ranktune.solvers.export.source import ExportedModel, source_of
from ranktune.solvers.models.linear import LinearModel
from tests.engines.cells import GRID, Cell, noted
from tests.engines.nodes import Refused, Score, scoring, version_of

LIBRARIES = {
    "ranklib": ("ranklib", "RankLibScores"),
    "pmml": ("pmml", "PmmlScores"),
    "pmml4s": ("pmml", "Pmml4sScores"),
    "vespa": ("vespa", "VespaScores"),
    "onnx": ("onnx", "OnnxScores"),
    "lightgbm": ("lightgbm", "LightGbmScores"),
}
"""Library -> the format that it loads, and what runs it."""


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Iterator[tuple[str, Score]]:
    """A library, and what scores documents by models in its format."""
    name: str = request.param
    with scoring(LIBRARIES[name][1], name) as score:
        yield name, score


@pytest.mark.parametrize("made", GRID)
def test_a_library_loads_it_and_scores_alike_or_it_is_refused(
    made: Callable[[], Cell], library: tuple[str, Score], request: pytest.FixtureRequest
) -> None:
    (name, score), cell = library, made()
    format = LIBRARIES[name][0]
    if format == "lightgbm":  # to which such values are 0
        cell = cell._replace(X=np.where(np.abs(cell.X) < 1e-35, 0.0, cell.X))
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            content = export(cell.model, format, name="cell")
    except ParameterError as error:
        assert format in str(error)
        return
    source = source_of(cell.model, format, "cell", "")
    assert bool(said) == (format == "pmml" and len(source.names) > FIELDS)
    names, rows = names_in(source, content), cell.X if format == "lightgbm" else cell.X[:, source.columns]
    scores = score(in_schema(str(content)) if format == "vespa" else content, names, rows)
    cell.check(scores)
    if name in ("ranklib", "pmml", "vespa"):  # the others are run by other tests too
        noted(f"{name} {version_of(name)}", request.node.callspec.id.partition("-")[2], cell, scores)


def names_in(source: ExportedModel, content: str | bytes) -> Sequence[str]:
    """What an export calls the features."""
    if source.format == "ranklib":
        return [str(column + 1) for column in source.columns.tolist()]
    if source.format == "pmml":
        fields = ElementTree.fromstring(content).iter("{http://www.dmg.org/PMML-4_4}DataField")
        return [field.attrib["name"] for field in fields]
    return [str(k) for k in range(source.model.n_features)] if source.format == "lightgbm" else source.names


def in_schema(profile: str) -> str:
    """A profile in a schema that has the fields of its attributes."""
    fields = sorted({*re.findall(r"attribute\((\w+)\)", profile)})
    lines = "".join(f"    field {field} type double {{\n      indexing: attribute\n    }}\n" for field in fields)
    return f"schema cell {{\n  document cell {{\n{lines}  }}\n{profile}}}\n"


@pytest.mark.engines
def test_vespa_refuses_what_the_check_of_its_syntax_refuses() -> None:
    model = LinearModel(np.array([5.15e-8]), "RankSVM", feature_names=("price",))
    profile, changes = str(export(model, "vespa", name="cell")), {"expression: ": "expression: }", " * ": " * * "}
    with scoring("VespaScores", "vespa") as score:
        assert score(in_schema(profile), ["price"], np.ones((1, 1))).tolist() == [5.15e-8]
        for old, new in (changes | {"5.15e-08": "5.15e", "second": "third", "default {": "default default {"}).items():
            assert old in profile
            with pytest.raises(DataError, match="vespa does not load the model"):
                check_syntax("vespa", profile.replace(old, new))
            with pytest.raises(Refused):
                score(in_schema(profile.replace(old, new)), ["price"], np.ones((1, 1)))
