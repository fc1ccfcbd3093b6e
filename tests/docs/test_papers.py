"""The page of the papers names what exists, and every paper that can be reproduced."""

import re
from importlib import import_module

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

from ranktune.docs.pages import FOLDER
from ranktune.studies.papers.figures.drawing import FIGURES
from ranktune.studies.papers.published import PAPERS
from tests.support.paths import ROOT

PAGE = (FOLDER / "explanation/papers.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(ranktune(?:\.\w+)+(?::\w+)?)`", PAGE)))
ALIKE = [
    (module, name)
    for module, more in re.findall(r"`(ranktune(?:\.\w+)+):\w+`((?:, `[A-Z]\w+`)+)", PAGE)
    for name in re.findall(r"`(\w+)`", more)
]
"""Names that follow another one of the same module."""


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    module, _, attribute = name.partition(":")
    assert not attribute or hasattr(import_module(module), attribute)
    import_module(module)


@pytest.mark.parametrize(("module", "name"), ALIKE)
def test_names_of_the_same_module_exist(module: str, name: str) -> None:
    assert hasattr(import_module(module), name)


def test_every_paper_is_there_with_its_figures() -> None:
    assert all(f"`{name}`" in PAGE for name in PAPERS)
    assert {f"{figures.__module__}:figures" for figures in FIGURES.values()} <= set(NAMES)
    assert len(NAMES) > 20 and len(ALIKE) > 5


def test_paths_exist() -> None:
    paths = re.findall(r"`((?:studies|docs)/[\w./-]+\.\w+)`", PAGE.replace("PAPER", "solar"))
    assert paths and all((ROOT / path).exists() for path in paths)
