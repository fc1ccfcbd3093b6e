"""Addresses of MLflow: what is valid, and that no password is written anywhere."""

from pathlib import Path

import pytest

from ranktune.solvers.core.errors import ParameterError, without_secrets
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import make_folder
from ranktune.tuner.study.secrets import (
    check_tracking,
    command_line,
    credentials,
    known_tracking,
    shown_tracking,
    without_password,
)

HTTP = "http://me:p%40ss@host:5000/mlflow"
DATABASE = "postgresql+psycopg://me:secret@host/db"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        (HTTP, "http://me:***@host:5000/mlflow"),
        (DATABASE, "postgresql+psycopg://me:***@host/db"),
        ("http://host:5000", "http://host:5000"),
        ("sqlite:///mlflow.db", "sqlite:///mlflow.db"),
        ("databricks", "databricks"),
    ],
)
def test_an_address_is_written_without_its_password(uri: str, shown: str) -> None:
    check_tracking(uri)
    assert shown_tracking(uri) == shown == shown_tracking(shown)
    assert Study(mlflow=uri).as_dict()["mlflow"] == shown


@pytest.mark.parametrize("uri", ["http://me:se/cret@host", "gopher://me:secret@x", "http://", "", "me:secret@host"])
def test_what_is_no_address_is_refused_without_its_password(uri: str) -> None:
    with pytest.raises(ParameterError, match="mlflow=") as refused:
        Study(mlflow=uri)
    assert "cret" not in str(refused.value)


def test_user_and_password_of_a_server_become_what_mlflow_reads() -> None:
    plain, variables = credentials(HTTP)
    assert plain == "http://host:5000/mlflow"
    assert variables == {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "p@ss"}
    assert credentials(shown_tracking(HTTP)) == (plain, {"MLFLOW_TRACKING_USERNAME": "me"})
    assert credentials(DATABASE) == (DATABASE, {})
    assert without_password("cannot use me:p%40ss or p@ss", HTTP) == "cannot use me:*** or ***"


def test_a_saved_address_finds_its_password_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert known_tracking(shown_tracking(HTTP)) == shown_tracking(HTTP)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", HTTP)
    assert known_tracking(shown_tracking(HTTP)) == HTTP
    assert known_tracking("http://other:5000") == "http://other:5000"


def test_a_study_may_go_on_with_another_server(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, "s")
    folder.declare(Study(name="s", mlflow=HTTP), {"": "1"})
    assert "ss@" not in (tmp_path / "s" / "study.json").read_text()
    folder.check_settings(Study(name="s"))
    folder.check_settings(Study(name="s", mlflow="http://other:5000"))


CLEAR = (
    "ranktune tune train.txt --test test.txt --metric ndcg@10 --solver RankSVM --jobs 2",
    "ranktune tune train.txt --full --join data2",
    "ranktune evaluate model.json test.csv --metric=map -o out.txt",
)
URLS = (
    "postgresql://me:SECRET@h/db",
    "postgresql://h/db?user=me&password=SECRET",
    "postgresql://h/db?password=SECRET&user=me",
    "postgresql://:SECRET@h/db",
    "postgresql:///db?host=h&passfile=/home/me/SECRET",
    "postgresql://h/db?sslpassword=SECRET",
    "host=h dbname=db user=me password=SECRET",
    "host=h password = 'SECRET' user=me",
    r"password='it\'s SECRET' host=h",
    "postgresql://me:SEC/SECRET@h/db",
    "postgresql://me:it's:SECRET@h/db",
    "postgresql://o'me:SEC@SECRET@h/db",
    """{'url': "postgresql://me:SECRET"x'@h/db"}""",
)
TEXTS = (
    "password: SECRET",
    "{'api_token': 'SEC SECRET'}",
    '{"password":"SEC\\"SECRET","a":1}',
    "Client_Secret = SECRET;a",
)


@pytest.mark.parametrize("text", CLEAR)
def test_what_is_allowed_is_shown(text: str) -> None:
    program, *words = text.split()
    assert command_line([f"/usr/bin/{program}", *words]) == text
    assert command_line(["/lib/ranktune/__main__.py", *words]) == text


@pytest.mark.parametrize("url", URLS)
def test_secrets_are_hidden_wherever_they_stand(url: str) -> None:
    for words in (["--storage", url], [f"--storage={url}"], [url], ["--name", url], [f"--name={url}"], ["--new", url]):
        shown = command_line(["ranktune", "tune", "a.txt", *words])
        assert shown.startswith("ranktune tune a.txt ")
        assert "SECRET" not in shown, shown
    assert "SECRET" not in without_secrets(f"cannot connect to {url}: refused")


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_of_settings_are_hidden(text: str) -> None:
    assert "SECRET" not in without_secrets(text) and "***" in without_secrets(text)


def test_only_names_of_other_options_and_programs_are_shown() -> None:
    assert command_line(["ranktune", "dashboard", "mine", "--token", "abc"]) == "ranktune dashboard mine --token ***"
    assert command_line(["ranktune", "list", "--token=a", "--json", "mine"]) == "ranktune list --token=*** --json mine"
    assert command_line(["/home/me/script.py", "--key", "abc"]) == "script.py"
    assert command_line([]) == ""
