"""The layout shows the architecture: packages, import arrows, public names.

Run as a program, it prints the graph of packages: python -m tests.contracts.test_layout
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ranktune
import ranktune.solvers
from ranktune.solvers.names import SOLVERS
from tests.support.commands import output_of
from tests.support.paths import FOLDERS, ROOT, parsed

LAYERS = {
    "solvers": (
        ("registry",),
        ("custom", "distillation"),
        ("boosting", "joint"),
        ("linear",),
        ("online", "optimizers"),
        ("base", "losses", "export", "explanation"),
        ("clicks.features", "clicks.judging"),
        ("clicks.reading",),
        ("clicks", "rankings"),
        ("data.sources",),
        ("data.conversion",),
        ("data.readers.tables",),
        ("data.readers", "data.api_search"),
        ("data.readers.parsing",),
        ("models", "metrics"),
        ("data",),
        ("data.columns",),
        ("formats",),
        ("abilities", "names"),
        ("core",),
    ),
    "tuner": (
        ("runner", "one_pass"),
        ("search", "drift"),
        ("retuning",),
        ("selection",),
        ("deployment",),
        ("storage",),
        ("study",),
        ("samplers", "workers"),
        ("evaluation",),
        ("policy", "interleaving"),
        ("gp", "statistics"),
        ("splits",),
        ("policy.policy",),
    ),
    "studies": (("laboratory",), ("benchmarks",), ("papers",), ("api_search",)),
    "dashboards": (("web",), ("views",), ("terminal",), ("records", "figures")),
}
"""From top to bottom: a package may import those of the lines below it, and none beside it. A package inside of
another that is not listed belongs to it."""

MAY_IMPORT = {
    "solvers": set[str](),
    "tuner": {"solvers"},
    "studies": {"solvers", "tuner"},
    "dashboards": {"solvers", "tuner"},
    "face": {"solvers", "tuner", "studies", "dashboards"},
}
"""The folders that a folder may import besides itself; face is ranktune itself."""

WHOLE_TOOL = {(("studies", "benchmarks"), ("face",))}
"""Benchmarks compare the whole tool with others, so that they call it as its users do."""

MOST_MODULES = 14
"""Modules of a package, __init__ and __main__ apart."""
MOST_LINES = 400
"""Lines of a file."""
LONGER = {"solvers/data/queries.py": 423, "solvers/losses/smoothed/kernels.py": 406}
"""Files that are longer, which may only become shorter."""
MOST_IMPORTS = 25
"""Modules of the project that a module imports, in functions too."""
TABLES_OF_NAMES = {("solvers",), ("face",)}
"""Modules that import names to give them on: how many they are is no matter."""

TOP_SOLVERS = {"ElasticRank", "GBDTRanker", "LambdaMART", "RankSVM", "Ranker"}
"""Solvers at the top: the most common one of each kind. All solvers are in ranktune.solvers."""
MOST_NAMES = 19
"""Other names at the top, so that a reader sees all that RankTune does on one screen. Solvers do not count: they are
one kind of name, estimators with the same methods, and the reference shows them under their own heading."""

Module = tuple[str, ...]
"""Folder, package or module of the folder, and so on: ("solvers", "core", "arrays")."""


def module_of(file: Path) -> Module:
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = ("face", *parts[2:]) if parts[:2] == ("tuner", "ranktune") else parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@cache
def modules() -> dict[Module, Path]:
    return {module_of(file): file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))}


def resolved(name: str) -> Module | None:
    """The module of the repository that an imported dotted name is or is in, if any."""
    parts = tuple(name.split(".")[1:])
    parts = parts if parts[:1] and parts[0] in FOLDERS else ("face", *parts)
    while parts and parts not in modules():
        parts = parts[:-1]
    return parts or None


def imported(node: ast.AST, *, anywhere: bool) -> Iterator[str]:
    """The dotted names that are imported, but for type checking alone; with anywhere, inside of functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.ClassDef) and not anywhere:
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        else:
            yield from imported(child, anywhere=anywhere)


@cache
def graph(*, anywhere: bool = True) -> dict[Module, frozenset[Module]]:
    """Module -> the modules of the repository that it imports."""
    edges = {}
    for module, file in modules().items():
        names = imported(parsed(file), anywhere=anywhere)
        results = {resolved(name) for name in names if name.split(".")[0] == "ranktune"}
        edges[module] = frozenset(target for target in results if target is not None and target != module)
    return edges


def listed() -> set[Module]:
    return {(folder, *name.split(".")) for folder, lines in LAYERS.items() for line in lines for name in line}


def package_of(module: Module) -> Module:
    """The innermost listed package of a module, or the module itself where it stands alone in its folder."""
    if module[0] == "face":
        return module[:1]
    return next((module[:n] for n in range(len(module), 1, -1) if module[:n] in listed()), module[:2])


def packages() -> dict[Module, set[Module]]:
    """Package, or module that stands alone in its folder -> those that it imports."""
    edges: dict[Module, set[Module]] = {}
    for module, targets in graph().items():
        package = package_of(module)
        edges.setdefault(package, set()).update({package_of(target) for target in targets} - {package})
    return edges


def test_every_package_stands_in_the_layers() -> None:
    assert {package for package in packages() if len(package) >= 2} == listed()


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_down(folder: str) -> None:
    lines = enumerate(LAYERS[folder])
    level: dict[Module, int] = {(folder, *name.split(".")): depth for depth, line in lines for name in line}
    wrong = []
    for package, targets in packages().items():
        for target in targets if package[0] == folder else ():
            inside = target[0] == folder and package in level
            upwards = inside and (target not in level or level[target] <= level[package])
            across = target[0] != folder and target[0] not in MAY_IMPORT[folder]
            if upwards or (across and (package, target) not in WHOLE_TOOL):
                wrong.append(f"{'/'.join(package)} imports {'/'.join(target)}")
    assert wrong == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    lazy = {module: {target for target in targets if len(target) > 2} for module, targets in graph().items()}
    assert list(TopologicalSorter(lazy).static_order())


def test_packages_stay_small() -> None:
    counts: dict[str, int] = {}
    for file in modules().values():
        package = file.parent.relative_to(ROOT).as_posix()
        counts[package] = counts.get(package, 0) + (not file.name.startswith("__"))
    assert {package: n for package, n in counts.items() if n > MOST_MODULES} == {}


def test_files_stay_readable() -> None:
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in modules().values()}
    assert {name: count for name, count in lines.items() if count > LONGER.get(name, MOST_LINES)} == {}


def test_modules_import_few_others() -> None:
    counts = {"/".join(module): len(used) for module, used in graph().items() if module not in TABLES_OF_NAMES}
    assert {name: count for name, count in counts.items() if count > MOST_IMPORTS} == {}


@pytest.mark.parametrize(
    ("package", "libraries"),
    [(("solvers",), {"optuna", "skopt", "joblib", "typer", "rich"}), (("tuner", "gp"), {"optuna", "skopt", "joblib"})],
    ids=lambda value: "/".join(value) if isinstance(value, tuple) else "",
)
def test_solvers_and_the_gaussian_process_import_no_tuning_library(package: Module, libraries: set[str]) -> None:
    used = {
        name.split(".")[0]
        for module, file in modules().items()
        if module[: len(package)] == package
        for name in imported(parsed(file), anywhere=True)
    }
    assert "numpy" in used
    assert not used & libraries


def test_public_names_exist_and_are_sorted() -> None:
    assert ranktune.__all__ == sorted(ranktune.__all__)
    others = set(ranktune.__all__) - set(SOLVERS.names)
    assert len(others) <= MOST_NAMES and set(ranktune.__all__) - others == TOP_SOLVERS
    assert all(getattr(ranktune, name) is getattr(ranktune.solvers, name) for name in TOP_SOLVERS)
    assert all(getattr(ranktune, name) is not None for name in ranktune.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ranktune.nonsense


def test_version_is_that_of_the_package_and_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ranktune.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_tables_and_every_sampler_but_that_of_pytorch_need_no_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w-]", dependency, maxsplit=1)[0] for dependency in project["dependencies"]}
    assert {"pyarrow", "scikit-optimize"} <= names
    assert all(project["optional-dependencies"].values())
    pages = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    assert not [page.name for page in pages if re.search(r"ranktune\[[^\]]*(tables|skopt)", page.read_text())]


def test_importing_the_root_loads_no_large_library() -> None:
    loading = "import sys, ranktune, ranktune.command_line.app, ranktune.cli"
    code = f"{loading}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    loaded = output_of(code).split()
    assert "ranktune" in loaded
    assert not {"numpy", "scipy", "numba", "optuna", "sklearn"} & set(loaded)


def test_listing_studies_loads_no_solver() -> None:
    code = "import sys, ranktune.dashboards.terminal.listing; print(*sys.modules)"
    loaded = output_of(code).split()
    assert "ranktune.tuner.study.home" in loaded
    assert not {"optuna", "numba", "numpy", "ranktune.solvers.registry"} & set(loaded)


@pytest.mark.thorough
def test_a_study_of_arrays_loads_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    data = "(np.random.default_rng(0).random((90, 3), dtype=np.float32), np.arange(90) % 3, np.arange(90) // 6)"
    study = f'ranktune.tune({data}, solvers="RidgeRanker", trials=4, jobs=1, home="{tmp_path}")'
    loaded = output_of(f"import sys, numpy as np, ranktune; {study}; print(*sys.modules)").split()
    assert "ranktune.tuner.gp.proposal" in loaded
    assert not {"polars", "scipy.stats", "sklearn", "lightgbm", "plotly"} & set(loaded)


def test_errors_name_arguments_of_python() -> None:
    """The command line shows them as options (`as_options`), so that a message fits both interfaces."""
    options = [
        f"{file.relative_to(ROOT)}:{text.lineno} {text.value!r}"
        for folder in ("solvers", "tuner", "dashboards")
        for file in (ROOT / folder).rglob("*.py")
        if (ROOT / "tuner" / "ranktune") not in file.parents
        for error in ast.walk(parsed(file))
        if isinstance(error, ast.Raise)
        for text in ast.walk(error)
        if isinstance(text, ast.Constant)
        and re.search(r"(?<![\w-])--[a-z]", str(text.value))
        and "ray start" not in str(text.value)
    ]
    assert not options


def print_graph() -> None:
    """Print each folder's packages from top to bottom, each with what it imports."""
    edges = packages()
    for folder, lines in LAYERS.items():
        print(f"{folder}: {' > '.join(' · '.join(line) for line in lines)}")
        for name in (name for line in lines for name in line):
            targets = edges.get((folder, *name.split(".")), ())
            used = sorted("/".join(target) for target in targets if target != (folder,))
            print(f"  {name:12} imports {', '.join(used) or 'nothing of ranktune'}")


def test_the_table_of_folders_names_every_package() -> None:
    """Each row of it has names of one folder; a package inside of a package may be named too."""
    folder, named = "", set[str]()
    for row in re.findall(r"^\|(.*?)\|(.*?)\|.*\|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE):
        folder = row[0].strip(" `") or folder
        named |= {folder + name for name in re.findall(r"`([\w/.]+)`", row[1])}
    packages = {
        file.parent.relative_to(ROOT).as_posix() for each in FOLDERS for file in (ROOT / each).glob("*/__init__.py")
    }
    assert packages <= named
    assert [name for name in named if not list(ROOT.glob(f"{name}*"))] == []


if __name__ == "__main__":
    print_graph()
