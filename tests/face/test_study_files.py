"""What few studies need has no option: study files and Python have it, and the old option is answered with the line."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

import ranktune
from ranktune import api
from ranktune.arguments import NewStudyRuntime, TuneArguments
from ranktune.command_line.app import app
from ranktune.command_line.messages import file_fields
from ranktune.solvers.core.declared import DeclaredField, declared
from ranktune.solvers.core.errors import ParameterError
from tests.support.commands import called, study_file

GIVEN = {
    "levels": "5", "position": "rank", "group_by_time": "day", "click_columns": "document=sku", "propensities": "p.csv",
    "preset": "elasticrank", "permutations": "3", "group": "visit", "gap": "7d", "repeats": "2", "outer": "3",
    "full": "", "until": "0.001", "acquisition": "ei", "costs": "bm25*=2", "monotone": "price=-1",
    "refit": "", "like": "earlier", "artifacts": "arrays", "extend": "", "trial_timeout": "60.5", "trial_memory": "2GB",
}  # fmt: skip
"""What options that are gone were given."""
BESIDE: dict[str, dict[str, Any]] = {
    "group": {"time": "day"},
    "click_columns": {"clicks": ["log.csv"]},
    "propensities": {"clicks": ["log.csv"]},
}
"""Fields without which they are refused."""
TABLES = {"space", "first", "reading"}
"""Fields that never were options."""
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
FIELDS = {field.name: field for field in file_fields(COMMANDS["tune"])}


class Enough(ParameterError):
    """The study would begin now."""


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what studies would begin with: their settings, and how they run."""
    seen: list[dict[str, Any]] = []

    def begin(study: ranktune.Study, sources: object, given: NewStudyRuntime, deadline: object) -> None:
        runtime = [field.name for field in declared(NewStudyRuntime) if not field.setting.python_only]
        seen.append(api.settings_of(study) | {name: getattr(given, name) for name in runtime})
        raise Enough("enough")

    monkeypatch.setattr(api, "_run", begin)
    return seen


def option_of(field: DeclaredField) -> str:
    word = (field.setting.options or (f"--{field.name.replace('_', '-')}",))[0]
    return word.replace("--", "--no-") if field.default is True else str(word)


def test_every_field_without_an_option_is_looked_at() -> None:
    assert FIELDS.keys() == GIVEN.keys() | TABLES


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("sign", [" ", "="])
def test_the_answer_to_an_old_option_is_a_line_of_a_study_file(
    name: str, sign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: list[dict[str, Any]]
) -> None:
    monkeypatch.chdir(tmp_path)
    option, text = option_of(FIELDS[name]), GIVEN[name]
    words = f"{option}{sign}{text}".split() if text else [option]
    done = called("tune", "shop.csv", *words, "--trials", "3", env={"COLUMNS": "2000"})
    assert done.exit_code == 2 and f"No such option: {option}." in done.output
    line = re.search(r'study files: write (.*) and data = "FILE" into STUDY.toml', done.output)
    assert line is not None and f"In Python it is {name}= of ranktune.tune." in done.output, done.output
    beside = BESIDE.get(name, {})
    study_file(Path("s.toml"), data="shop.csv", **beside)
    with Path("s.toml").open("a") as file:
        file.write(line[1])
    assert isinstance(called("tune", "s.toml", "--trials", "3").exception, Enough)
    assert begun[0]["trials"] == 3 and begun[0]["data"] == "shop.csv"
    with pytest.raises(Enough):
        ranktune.run("s.toml", extend=name == "extend")
    value = api.study_file("s.toml")[name]
    with pytest.raises(Enough):
        ranktune.tune("shop.csv", trials=3, name="s", **beside, **{name: value})
    assert value != FIELDS[name].default
    assert begun[0][name] == begun[1][name] == begun[2][name] and begun[0] == begun[2]


@pytest.mark.parametrize("name", ["trial_memory", "extend"])
def test_commands_without_a_study_file_name_the_argument_alone(name: str) -> None:
    option = f"--{name.replace('_', '-')}"
    done = called("retune", "shop", "new.csv", option, "4GB", env={"COLUMNS": "2000"})
    assert f"No such option: {option}. In Python it is {name}= of ranktune.retune." in done.output
    assert name in {field.name for field in file_fields(COMMANDS["resume"])} and not file_fields(COMMANDS["predict"])


def test_options_take_precedence_over_a_file(tmp_path: Path, begun: list[dict[str, Any]]) -> None:
    (tmp_path / "train.txt").write_text("")
    path = study_file(
        tmp_path / "mine.toml", data="train.txt", metric="map", trials=7, jobs=2, solvers=["RankSVM"], seed=5
    )
    called("tune", path, "--metric", "ndcg@10", "--jobs", "1", "--solver", "RidgeRanker", "--missing", "zero")
    called("tune", path, env={"RANKTUNE_STORAGE": "postgresql://h/r"})
    (first, second) = begun
    wanted = {"metric": "ndcg@10", "jobs": 1, "solvers": ("RidgeRanker",), "reading": {"missing": "zero"}}
    assert first.items() >= wanted.items() and (first["trials"], first["seed"], first["name"]) == (7, 5, "mine")
    assert first["data"] == str(tmp_path / "train.txt")
    assert (second["metric"], second["jobs"], second["storage"]) == ("map", 2, "postgresql://h/r")


def test_a_file_without_data_is_of_the_embedded_example(tmp_path: Path, begun: list[dict[str, Any]]) -> None:
    called("tune", study_file(tmp_path / "s.toml", trials=1))
    assert begun[0]["data"] == "api-search"


def test_python_takes_precedence_over_a_file(tmp_path: Path, begun: list[dict[str, Any]]) -> None:
    path = study_file(tmp_path / "s.toml", jobs=2, trial_memory="1GB")
    with pytest.raises(Enough):
        ranktune.run(path, jobs=1)
    assert (begun[0]["jobs"], begun[0]["trial_memory"]) == (1, "1GB")


def test_costs_may_be_a_text_or_a_table_with_groups(tmp_path: Path, begun: list[dict[str, Any]]) -> None:
    called("tune", study_file(tmp_path / "s.toml", costs="bm25=2, age=1"))
    group = '[costs]\nbm25 = 2\nembedding = { features = ["emb_*"], cost = 20 }\n'
    (tmp_path / "s.toml").write_text(group)
    called("tune", tmp_path / "s.toml")
    assert begun[0]["costs"] == {"bm25": 2.0, "age": 1.0}
    assert begun[1]["costs"] == {"bm25": 2, "embedding": {"features": ["emb_*"], "cost": 20}}


def test_a_field_that_no_study_has_is_named_with_the_file(tmp_path: Path) -> None:
    path = study_file(tmp_path / "s.toml", metrics="map")
    for error in (called("tune", path).exception, called("tune", path, "--metric", "map").exception):
        assert isinstance(error, ParameterError)
        assert str(error).startswith(f"{path}: a study has no field 'metrics'. Did you mean 'metric'")


def test_what_a_study_may_be_asked_is_declared_once() -> None:
    known = {field.name for field in declared(TuneArguments)}
    assert FIELDS.keys() < known and len(known) > 60
