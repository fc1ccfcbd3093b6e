"""Every view says what it means, in the words of the glossary."""

from __future__ import annotations

import re

import pytest

from ranktune.dashboards.views.meanings import MEANINGS, TERMS, meaning_json
from ranktune.dashboards.views.registry import VIEWS
from tests.support.paths import ROOT


def glossary() -> set[str]:
    text = (ROOT / "docs/explanation/glossary.md").read_text()
    lines = re.findall(r"^([^\s`:#{].*)\n  \S", text, re.MULTILINE)
    return {term for line in lines for term in line.split(", ")}


def test_every_view_has_a_meaning() -> None:
    assert set(MEANINGS) == {view.key for view in VIEWS} | {"compare"}


@pytest.mark.parametrize("key", MEANINGS)
def test_terms_of_a_view_are_explained_and_in_the_glossary(key: str) -> None:
    meaning = meaning_json(key)
    assert len(str(meaning["text"])) > 60
    assert [[term, TERMS[term]] for term in MEANINGS[key].terms] == meaning["terms"]
    assert set(MEANINGS[key].terms) <= glossary()


def test_every_term_is_used_by_a_view() -> None:
    assert set(TERMS) == {term for meaning in MEANINGS.values() for term in meaning.terms}
