"""The health check of a container: python -m ranktune.dashboards.web.health.

A dashboard is healthy if it answers, be it that the token is missing. Other commands are healthy while they run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path

SECONDS = 5.0
"""How long the dashboard has to answer."""
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses to listen at all addresses, and where to ask then."""


def check(command: Sequence[str]) -> int:
    """Return 0 if the command, with its arguments, is healthy, and 1 if it serves pages and does not answer."""
    if "--live" not in command:
        return 0
    host, port = _given(command, "--host", "127.0.0.1"), int(_given(command, "--port", "8765"))
    connection = HTTPConnection(ANYWHERE.get(host, host), port, timeout=SECONDS)
    try:
        connection.request("GET", "/", headers={"Host": "localhost"})
        return int(connection.getresponse().status >= 500)
    except (OSError, HTTPException) as error:
        print(f"the dashboard does not answer at port {port}: {error}", file=sys.stderr)
        return 1
    finally:
        connection.close()


def _given(command: Sequence[str], option: str, default: str) -> str:
    """Return the value of an option, as `--port 80` or `--port=80`."""
    words = [word for part in command for word in (part.split("=", 1) if part.startswith(f"{option}=") else [part])]
    return words[words.index(option) + 1] if option in words[:-1] else default


if __name__ == "__main__":
    sys.exit(check(Path("/proc/1/cmdline").read_text().split("\0")))  # the container's command is its process 1
