"""What is written down of a command line, and texts without passwords."""

from __future__ import annotations

import pytest

from ranktune.solvers.core.errors import without_secrets
from ranktune.tuner.study.secrets import command_line

CLEAR = (
    "ranktune tune train.txt --test test.txt --metric ndcg@10 --solver RankSVM --jobs 2",
    "ranktune tune train.txt --verbose --join data2",
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
    assert command_line(["ranktune", "show", "mine", "--token", "abc"]) == "ranktune show mine --token ***"
    assert command_line(["ranktune", "show", "--token=a", "--json", "mine"]) == "ranktune show --token=*** --json mine"
    assert command_line(["/home/me/script.py", "--key", "abc"]) == "script.py"
    assert command_line([]) == ""


def test_other_text_stays() -> None:
    text = "trial 3: postgresql://me@h/db?sslmode=require, passed = 3, x@y.z, http://h/a?b=c"
    assert without_secrets(text) == text
