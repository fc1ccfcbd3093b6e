"""Which library wrote a file, and its model as one of RankTune."""

from __future__ import annotations

import re
from pathlib import Path

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.models.other_libraries.base import LibraryModel
from ranktune.solvers.models.other_libraries.catboost import read_catboost
from ranktune.solvers.models.other_libraries.lightgbm import read_lightgbm
from ranktune.solvers.models.other_libraries.xgboost import read_xgboost
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree

HEAD = 1 << 14
"""So many bytes of a file tell what it is."""
_DUMPS = {
    "XGBoost": re.compile(
        rb'(?s)\[?\s*{\s*"(nodeid|leaf)"|\[\s*"|(booster\[0\]:\s*)?(0:(\[[^\]]+\] yes=|leaf=)|digraph {)'
        rb'|{.*"model/xgboost\+json"|{\s*("objective"\s*:\s*"[^"]*",\s*)?"splits"'
    ),
    "LightGBM": re.compile(rb'{\s*("name"\s*:\s*"tree"|"average_output")'),
}
"""What dump_model and get_dump write begins so, also for Elasticsearch. It lacks some of what a score is made of."""
_CATBOOST = re.compile(rb'\s*{\s*"(ctr_data|features_info|oblivious_trees)"')


def read_other(path: Path, head: bytes) -> LibraryModel | None:
    """Return the model in a file that begins with head, None where none of the libraries wrote it.

    Raises ModelFormatError for a model that is damaged, or of a kind that is not read.
    """
    start = head.lstrip()
    if start.startswith(b"CBM1"):
        raise ModelFormatError(
            f"{path} is a binary model of CatBoost, which only CatBoost reads. Save the model as JSON: "
            'CatBoost().load_model(FILE), then save_model("model.json", format="json").'
        )
    for library, dump in _DUMPS.items():
        if dump.match(start):
            raise ModelFormatError(
                f"{path} is a dump of a model of {library}, which lacks parts of the model. Save the model by "
                f"save_model, and give that file."
            )
    if start.startswith((b"tree\n", b"tree\r\n")):
        return read_lightgbm(path)
    if _CATBOOST.match(head):
        return read_catboost(path)
    by_xgboost = start[:1] == b"{" and b'"learner"' in head and b'"ranktune-model"' not in head
    return read_xgboost(path) if by_xgboost or path.suffix.lower() == ".ubj" else None


def model_in(path: Path) -> TreeModel | None:
    """Return the model of another library in a file, None where the file is of another kind or cannot be read.

    Its score is the sum of the values of its trees; the base of the library is the first of them.

    Raises ModelFormatError as read_other does, and for trees that compare anything but numbers.
    """
    read = read_other(path, _head(path))
    if read is None:
        return None
    if read.columns.computed or read.levels:
        raise ModelFormatError(
            f"{path} has splits by categories, or takes 0 for missing, which trees of RankTune do not. It can be "
            f"evaluated, or be a baseline. For other uses, train it in {read.library} without them."
        )
    trees = joined([one_tree([], [], [], [], [read.base], []), read.trees]) if read.base else read.trees
    return TreeModel(trees, read.n_features, read.library, feature_names=read.names)


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, none where it is no file or cannot be read."""
    if not path.is_file():  # a pipe would wait
        return b""
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""
