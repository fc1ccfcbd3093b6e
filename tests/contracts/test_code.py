"""What the code keeps to, as far as a program can see it: few parameters, few untyped values, plain words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import FOLDERS, ROOT, parsed

MOST_PARAMETERS = 12
MOST_ANY = 400
PRIVATE_WORDS = re.compile(r"\btold\b(?! apart)")
"""A word that was used in many meanings, each of which has a term. "not told apart" is a value in result files."""

FILE_FORMATS = (ROOT / "tuner" / "selection" / "evidence.py",)
"""Where it is the name of an array in files."""


def product() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_no_function_but_a_constructor_has_many_parameters() -> None:
    assert not [
        f"{file.relative_to(ROOT)}: {node.name}"
        for file in product()
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__"
        if len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > MOST_PARAMETERS
    ]


def test_few_values_are_of_any_type() -> None:
    assert 0 < sum(len(re.findall(r"\bAny\b", file.read_text())) for file in product()) < MOST_ANY


def test_the_words_are_those_of_the_field() -> None:
    files = [*product(), *sorted((ROOT / "tests").rglob("*.py")), *ROOT.glob("*.md")]
    assert not [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        if file not in (Path(__file__), *FILE_FORMATS)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if PRIVATE_WORDS.search(line)
    ]
