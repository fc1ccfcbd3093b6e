"""Models of RankLib: an independent walk through the XML in single precision scores as what is read."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.other_libraries.ranklib import read_ranklib

HEAD = "## LambdaMART\n## No. of trees = 2\n## Learning rate = 0.1\n\n"


def tree_text(generator: np.random.Generator, depth: int, side: str = "") -> str:
    """A random tree as RankLib writes it, with white space between tags."""
    pos = f' pos="{side}"' if side else ""
    if depth == 0:
        return f"<split{pos}>\n<output> {generator.normal()!s} </output>\n</split>"
    test = f"<feature> {generator.integers(1, 5)} </feature>\n<threshold> {np.float32(generator.normal())} </threshold>"
    left, right = (tree_text(generator, depth - 1, branch) for branch in ("left", "right"))
    return f"<split{pos}>\n{test}\n{left}\n{right}\n</split>"


def ensemble(generator: np.random.Generator, n: int = 3) -> str:
    trees = "".join(f'<tree id="{k}" weight="0.1">\n{tree_text(generator, k)}\n</tree>\n' for k in range(1, n + 1))
    return f"<ensemble>\n{trees}</ensemble>\n"


def walked(node: ElementTree.Element, row: np.ndarray) -> float:
    output = node.find("output")
    if output is not None:
        return float(output.text or "")
    value = np.float32(row[int(node.findtext("feature", "")) - 1])
    side = "left" if value <= np.float32(node.findtext("threshold", "")) else "right"
    return walked(next(child for child in node.findall("split") if child.get("pos") == side), row)


def scored(text: str, X: np.ndarray) -> np.ndarray:
    root = ElementTree.fromstring(text)
    roots = [(tree.find("split"), float(tree.get("weight", ""))) for tree in root.findall("tree")]
    return np.array([sum(walked(split, row) * weight for split, weight in roots if split is not None) for row in X])


def written(folder: Path, text: str) -> Path:
    path = folder / "model.txt"
    path.write_text(text)
    return path


def test_trees_score_as_a_walk_through_the_xml(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    text = ensemble(generator)
    model = read_ranklib(written(tmp_path, HEAD + text))
    X = generator.normal(size=(200, model.n_features))
    limits = [np.float32(element.text) for element in ElementTree.fromstring(text).iter("threshold")]
    X[: len(limits)] = np.array(limits, dtype=np.float64)[:, None]  # a document at a threshold goes left
    X[len(limits) : 2 * len(limits)] = np.nextafter(X[: len(limits)], np.inf)  # and so does what rounds to it
    np.testing.assert_allclose(model.predict(X), scored(text, X), rtol=1e-12)


def test_a_forest_is_the_mean_of_its_ensembles(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    parts = [ensemble(generator, 2), ensemble(generator, 3)]
    model = read_ranklib(written(tmp_path, "## Random Forests\n## No. of bags = 2\n\n" + "".join(parts)))
    X = generator.normal(size=(50, model.n_features))
    np.testing.assert_allclose(model.predict(X), np.mean([scored(part, X) for part in parts], axis=0), rtol=1e-12)


@pytest.mark.parametrize("head", ["## Coordinate Ascent\n## Restart = 5", "## Linear Regression\n## Lambda = 1.0E-10"])
def test_weights_are_read(head: str, tmp_path: Path) -> None:
    model = read_ranklib(written(tmp_path, f"{head}\n0:7.5 1:0.25 4:-1.5E-2"))
    assert isinstance(model, LinearModel)
    assert model.weights.tolist() == [0.25, 0.0, 0.0, -0.015]


DEEP = "<ensemble>" + "<split>" * 3000 + "</split>" * 3000 + "</ensemble>"
ENTITIES = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><ensemble><tree>&a;</tree></ensemble>'


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (HEAD + ENTITIES, "declares a document type"),
        (HEAD + DEEP, "nested more than"),
        (HEAD + "<ensemble><tree></tree></ensemble>", "a tree has no split"),
        (HEAD + "<ensemble></ensemble>", "holds no trees"),
        (HEAD + ensemble(np.random.default_rng(0))[:-30], "no whole model"),
        (HEAD + "<ensemble><tree><split><feature>1</feature></split></tree></ensemble>", "lacks its feature or a side"),
        (HEAD + "<tree><split><output>1</output></split></tree>", "no whole model"),
        (
            HEAD + "<ensemble><tree><split><output>nan</output></split></tree></ensemble>",
            "no whole model|not finite",
        ),
        ("## Coordinate Ascent\n1:0.5 word", "not pairs"),
        ("## Coordinate Ascent\n1:1e999", "not finite"),
        ("## Coordinate Ascent\n", "not pairs"),
        (
            "## RankNet\n1:0.5",
            "model of RankLib's 'RankNet', .* Score the documents with RankLib, and give",
        ),
    ],
)
def test_damaged_and_hostile_files_are_refused(text: str, match: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=match):
        read_ranklib(written(tmp_path, text))
