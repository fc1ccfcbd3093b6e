"""What may be written down: command lines and addresses without the passwords that they may hold."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from ranktune.solvers.core.errors import HIDDEN, ParameterError

# Of a command line an allow-list, since any other word may be a secret or hold one.

SHOWN = frozenset(
    "--also --click-column --clicks --data --dataset --document --drop --executor --features --figures --folds "
    "--format --grade --group-by-time --home --host --jobs --metric --missing --model --name --output --page --plan "
    "--port --propensities --qid --qrels --replay --sampler --seed --serve --solver --test --timeout --trees --trials "
    "--vali --wait --weight --within -f -o".split()
)
"""Options whose values are written down."""
FLAGS = frozenset("--join --json --live --verbose --warm --zero-based -v".split())
"""Options without a value: the word after one is not its value."""
_MAY_BE_SECRET = re.compile(r"://|:[^/]*@|pass\w*=|token=|secret", re.IGNORECASE)
"""URLs and connection strings, which can hold a password in several places."""


def command_line(arguments: Sequence[str] | None = None) -> str:
    """Return the command line of this process, or of given arguments, as text that may be kept and shown.

    Of a command of RankTune that is its words, the names of its options and the values of those in SHOWN; of another
    program its name.
    """
    words = list(getattr(sys, "argv", [])) if arguments is None else list(arguments)
    if not words:
        return ""
    folder, program = os.path.split(words[0])
    if program == "__main__.py" and os.path.basename(folder) == "ranktune":
        program = "ranktune"
    if program.removesuffix(".exe") != "ranktune":
        return _plain(program)
    shown, hides = ["ranktune"], False
    for word in words[1:]:
        if word.startswith("-") and word != "-":
            name, sign, value = word.partition("=")
            is_shown = name in SHOWN or name in FLAGS
            shown.append(_plain(name) + (f"={_plain(value) if is_shown else HIDDEN}" if sign else ""))
            hides = not is_shown and not sign
        else:
            shown.append(HIDDEN if hides else _plain(word))
            hides = False
    return " ".join(shown)


def _plain(word: str) -> str:
    return HIDDEN if _MAY_BE_SECRET.search(word) else word


# The address of an MLflow server. MLflow finds user and password in MLFLOW_TRACKING_USERNAME and
# MLFLOW_TRACKING_PASSWORD, or in ~/.mlflow/credentials.

VARIABLE = "MLFLOW_TRACKING_URI"
_SCHEMES = ("", "http", "https", "file", "sqlite", "postgresql", "mysql", "mssql", "databricks", "databricks-uc")


def check_tracking(uri: str) -> None:
    """Raise ParameterError, which shows no password, unless MLflow takes such an address."""
    parts = _split(uri)
    if parts is None or parts.scheme.partition("+")[0] not in _SCHEMES or (parts.scheme == "" and ":" in uri):
        start = uri.partition(":")[0][:20]
        raise ParameterError(
            f"mlflow='{start}...': it must be the address of an MLflow server or database, such as "
            "http://127.0.0.1:5000 or sqlite:///mlflow.db."
        )
    if parts.scheme in ("http", "https") and not parts.hostname:
        raise ParameterError(f"mlflow='{shown_tracking(uri)}' names no host. Give one, as http://127.0.0.1:5000.")


def shown_tracking(uri: str) -> str:
    """Return a valid address without its password."""
    parts = _split(uri)
    if parts is None or not parts.password:
        return uri
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{HIDDEN}{at}{host}").geturl()


def known_tracking(uri: str) -> str:
    """Return an address that was saved without its password with the password that the environment has for it."""
    address = os.environ.get(VARIABLE, "")
    if address and shown_tracking(address) == shown_tracking(uri):
        return address
    return uri


def credentials(uri: str) -> tuple[str, dict[str, str]]:
    """Return the address of an HTTP server without user and password, and these as the variables that MLflow reads."""
    parts = _split(uri)
    if parts is None or parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return uri, {}
    variables = {"MLFLOW_TRACKING_USERNAME": parts.username, "MLFLOW_TRACKING_PASSWORD": parts.password}
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return plain, {name: unquote(value) for name, value in variables.items() if value and value != HIDDEN}


def without_password(text: str, uri: str) -> str:
    """Return a message without the password of an address."""
    parts = _split(uri)
    secret = None if parts is None else parts.password
    for form in {secret, unquote(secret)} if secret else ():
        text = text.replace(form, HIDDEN)
    return text


def _split(uri: str) -> SplitResult | None:
    """Return the parts of an address, None if it is not valid."""
    try:
        parts = urlsplit(uri)
        _ = parts.port  # it is parsed when it is read
    except ValueError:
        return None
    return parts if uri and uri.isprintable() else None
