"""Pages say what is true of them: their code is run, their links lead somewhere, and all of them are linked."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

import ranktune
import ranktune.solvers
import ranktune.tuner
from ranktune.docs.generated import python_page
from ranktune.docs.pages import FOLDER, blocks
from ranktune.docs.scripts import scripts


def name_of(page: Path) -> str:
    return page.relative_to(FOLDER).with_suffix("").as_posix()


GENERATED = {"reference/python", "reference/command_line", "reference/study_file", "examples/index"}
GENERATED |= {f"benchmarks/{path.stem}" for path in FOLDER.glob("benchmarks/about/*.md")}
"""Pages that a build writes."""
EXAMPLES = {f"examples/{script.parent.name}/{script.stem}" for script in scripts()}
"""Pages of the gallery, which a build writes too."""
PAGES = [
    path
    for path in sorted(FOLDER.rglob("*.md"))
    if name_of(path) not in GENERATED and path.parent.name not in ("about", "examples")
]
NAMES = [name_of(path) for path in PAGES]
PARSED = {"console", "python", "output", "text", "toml"}
"""Fences that are run, that show what was printed, that nothing runs, and that are read."""

FENCE = re.compile(r"^(`{3,}|:{3,})([^\n`]*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
DOCUMENT = re.compile(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`")
MACHINE = re.compile(r"(?<![\w.:}$])/(?:tmp|home|work|root)/")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_code_is_run_or_marked_as_text(page: Path) -> None:
    text = page.read_text()
    fences = [(match[2].strip(), match[3]) for match in FENCE.finditer(text)]
    languages = [language for language, _ in fences if not language.startswith("{")]
    assert set(languages) <= PARSED
    shown = [block for block in blocks(text) if not block.hidden]
    assert len(shown) == sum(language in ("console", "python") for language in languages)
    assert all(block.steps for block in shown), "a console fence without a line that begins with $"
    outputs = sum(step.output is not None for block in shown for step in block.steps if step.language == "python")
    assert outputs == languages.count("output"), "an output that belongs to no code"
    for language, body in fences:
        if language == "toml":
            tomllib.loads(body)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_pages_files_and_headings(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for target, anchor in LINK.findall(text):
        if "://" in target:
            continue
        result = (page.parent / target).resolve() if target else page
        assert result.is_file(), f"{target} is no file"
        assert not anchor or anchor[1:] in headings(result), f"{target}{anchor} is no heading"
    for target in DOCUMENT.findall(text):
        assert document(page, target) in {*NAMES, *GENERATED, *EXAMPLES}, f"{target} is no page"


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = set()
    for page in PAGES:
        for _, language, body in FENCE.findall(page.read_text()):
            if language.strip() == "{toctree}":
                entries = [line for line in body.splitlines() if line and not line.startswith(":")]
                listed |= {document(page, re.sub(r"^.*<(.+)>$", r"\1", entry)) for entry in entries}
    assert listed == {*NAMES, *GENERATED} - {"index"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_page_has_a_path_of_a_machine(page: Path) -> None:
    assert not MACHINE.findall(page.read_text())


def test_the_reference_lists_every_public_name() -> None:
    listed = set(python_page().split())
    for module in (ranktune, ranktune.solvers, ranktune.tuner):
        assert {name for name in module.__all__ if not name.startswith("_")} <= listed


def test_every_command_is_shown_in_a_page() -> None:
    from ranktune.command_line.app import app

    texts = "\n".join(page.read_text() for page in PAGES)
    names = {command.name or str(getattr(command.callback, "__name__", "")) for command in app.registered_commands}
    shown = {name for name in names if re.search(rf"ranktune(?: --[\w-]+)* {re.escape(name)}\b", texts)}
    assert names - shown == set()


def test_the_glossary_has_the_columns_of_a_leaderboard() -> None:
    terms = set(re.findall(r"^(\S.*)\n  \S", (FOLDER / "explanation/glossary.md").read_text(), re.MULTILINE))
    assert {"vali", "again", "test", "us/doc", "cost"} <= {word for term in terms for word in term.split(", ")}


def document(page: Path, target: str) -> str:
    """The name of the document that a target of a page means."""
    if target.startswith("/"):
        return target[1:]
    return str((page.parent / target).resolve().relative_to(FOLDER))


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and MyST make them of its headings."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_pages_are_short_and_guides_begin_with_a_command() -> None:
    """Apart from what is typed and printed; the picture of a guide follows, where it has one."""
    assert sum(len(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).split()) for page in PAGES) <= 30_000
    guides = [page for page in PAGES if page.parent.name == "howto" and page.stem != "index"]
    heads = [re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL).partition("```")[0] for page in guides]
    assert len(guides) > 10 and max(len(head.split()) for head in heads) < 50
