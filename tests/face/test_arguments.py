"""A setting is declared once: Python, the command line, Study and TOML agree on its name, default and help."""

import inspect
import os
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import ranktune
from ranktune import api
from ranktune.arguments import ResumeArguments, RunArguments, TuneArguments, WorkArguments
from ranktune.command_line.app import app
from ranktune.command_line.options import has_option, takes_options
from ranktune.solvers.core.declared import DeclaredField, declared
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import Settings, toml_fields

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CALLS = {"tune": TuneArguments, "run": RunArguments, "resume": ResumeArguments, "work": WorkArguments}
FUNCTIONS: dict[str, Any] = {"tune": api.tune, "run": api.run, "resume": api.resume, "work": api.work}
PYTHON_ONLY = {"progress", "verbose"}
DECLARED = [(command, parameter) for command, declaration in CALLS.items() for parameter in declared(declaration)]


@pytest.mark.parametrize(("command", "declared_field"), DECLARED, ids=lambda value: getattr(value, "name", value))
def test_a_declared_field_is_an_argument_and_an_option(command: str, declared_field: DeclaredField) -> None:
    argument = inspect.signature(FUNCTIONS[command]).parameters[declared_field.name]
    required = declared_field.default is MISSING
    assert argument.default == (inspect.Parameter.empty if required else declared_field.default)
    words = " ".join((FUNCTIONS[command].__doc__ or "").split())
    assert f"{declared_field.name} : " in words and " ".join(declared_field.setting.help.split()) in words
    assert declared_field.setting.python_only == (declared_field.name in PYTHON_ONLY)
    if command not in COMMANDS:
        return
    options = {parameter.name: parameter for parameter in COMMANDS[command].params}
    if declared_field.setting.python_only or not has_option(CALLS[command], declared_field):
        assert declared_field.name not in options or declared_field.name == "verbose"  # the commands have their own
        return
    option = options[declared_field.name]
    assert option.help == declared_field.setting.help
    assert option.required == required
    assert required or option.default == (None if declared_field.default in ((), {}) else declared_field.default)
    assert (option.param_type_name == "argument") == declared_field.setting.positional
    if not declared_field.setting.positional:
        expected = declared_field.setting.options or ("--" + declared_field.name.replace("_", "-"),)
        assert tuple(option.opts) == expected


@pytest.mark.parametrize("declared_field", [*declared(Settings)], ids=lambda parameter: parameter.name)
def test_a_setting_is_a_field_of_study_and_a_key_of_toml(declared_field: DeclaredField, tmp_path: Path) -> None:
    assert declared_field.name in Study().as_dict()
    (tmp_path / "s.toml").write_text("[space]\n" if declared_field.name == "space" else "")
    default = getattr(Study.from_dict(toml_fields(tmp_path / "s.toml")), declared_field.name)
    assert default == getattr(Study(name="s"), declared_field.name)
    (argument,) = (field for field in declared(TuneArguments) if field.name == declared_field.name)
    assert argument.setting == replace(declared_field.setting, python=argument.setting.python)
    assert argument.default == declared_field.default or declared_field.name == "data"
    assert " ".join(declared_field.setting.help.split()) in " ".join((Study.__doc__ or "").split())
    (tmp_path / "s.toml").write_text(f"{declared_field.name} = 1979-05-27\n")  # a date: of no setting's type
    with pytest.raises(ParameterError, match=f"{declared_field.name}="):
        Study.from_dict(toml_fields(tmp_path / "s.toml"))


def test_study_declares_only_the_fields_it_fills_in() -> None:
    assert [field.name for field in fields(Study)] == [*(f.name for f in fields(Settings)), "custom", "after"]
    with pytest.raises(ParameterError, match="custom=3: it must be a table"):
        Study(custom=3)  # type: ignore[arg-type]


def test_none_stands_for_the_default_of_a_setting(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing"):
        ranktune.tune("missing.txt", name=None, also=None, space=None, reading=None, home=tmp_path)  # type: ignore[arg-type]


def test_an_option_is_read_from_its_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTUNE_STORAGE", "postgresql://before")
    results: list[dict[str, Any]] = []
    small = typer.Typer()

    @small.command()
    @takes_options(WorkArguments)
    def command(given: dict[str, Any]) -> None:
        results.append(given)

    assert CliRunner().invoke(small, ["--name", "n"]).exit_code == 0
    assert CliRunner().invoke(small, ["--name", "n", "--storage", "postgresql://after"]).exit_code == 0
    assert [given["storage"] for given in results] == ["postgresql://before", "postgresql://after"]
    assert os.environ["RANKTUNE_STORAGE"] == "postgresql://after"
    assert CliRunner().invoke(small, ["--name", "n", "--jobs", "0"]).exit_code == 2
