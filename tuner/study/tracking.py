"""The address of an MLflow server: what is valid, and how it is written down without its password.

MLflow finds user and password in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or in ~/.mlflow/credentials.
"""

from __future__ import annotations

import os
from urllib.parse import SplitResult, unquote, urlsplit

from ranktune.solvers.core.errors import ParameterError

HIDDEN = "***"
VARIABLE = "MLFLOW_TRACKING_URI"
_SCHEMES = ("", "http", "https", "file", "sqlite", "postgresql", "mysql", "mssql", "databricks", "databricks-uc")


def check_tracking(uri: str) -> None:
    """Raise ParameterError, which shows no password, unless MLflow knows such an address."""
    parts = _split(uri)
    if parts is None or parts.scheme.partition("+")[0] not in _SCHEMES or (parts.scheme == "" and ":" in uri):
        raise ParameterError(
            f"mlflow='{_start(uri)}...': it must be the address of an MLflow server or database, such as "
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
    given = os.environ.get(VARIABLE, "")
    if given and shown_tracking(given) == shown_tracking(uri):
        return given
    return uri


def credentials(uri: str) -> tuple[str, dict[str, str]]:
    """Return the address of an HTTP server without user and password, and these as the variables that MLflow reads."""
    parts = _split(uri)
    if parts is None or parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return uri, {}
    found = {"MLFLOW_TRACKING_USERNAME": parts.username, "MLFLOW_TRACKING_PASSWORD": parts.password}
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return plain, {name: unquote(value) for name, value in found.items() if value and value != HIDDEN}


def without_password(text: str, uri: str) -> str:
    """Return a message without the password of an address."""
    parts = _split(uri)
    secret = None if parts is None else parts.password
    for one in {secret, unquote(secret)} if secret else ():
        text = text.replace(one, HIDDEN)
    return text


def _split(uri: str) -> SplitResult | None:
    """Return the parts of an address, None if it is not valid."""
    try:
        parts = urlsplit(uri)
        _ = parts.port  # it is parsed when it is read
    except ValueError:
        return None
    return parts if uri and uri.isprintable() else None


def _start(uri: str) -> str:
    return uri.partition(":")[0][:20]
