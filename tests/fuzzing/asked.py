"""Commands run in this process on a study that may be damaged: what came of them, what they said and answered."""

import asyncio
import json
import re
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ranktune.dashboards.views.registry import VIEWS
from ranktune.dashboards.web.server import make_app
from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning
from tests.support.commands import called

NAME = "s"
TIMES = re.compile(
    r"seconds|created|begun|ended|time|path|file|folder|report|size|modified|^changed$|^stages$|^fastest$"
)
"""Keys of JSON results that say how long something took, or where it is."""
LONGEST = 1500
"""Characters of a refusal."""


class Outcome(StrEnum):
    """What came of a command on a damaged study."""

    CORRECT = "correct answer"
    REFUSED = "refused in a sentence"
    UNEXPECTED = "unexpected error, one message"
    WARNED = "other answer, and why"
    CHANGED = "other answer, no word"
    LOST = "finished trials lost"
    TRACEBACK = "traceback"


@dataclass(frozen=True)
class Found:
    """What came of a command; answer is None where it gave none."""

    outcome: Outcome
    said: str = ""
    answer: object = None


COMMANDS: Mapping[str, Sequence[str]] = {
    "show": ("show", NAME, "--home", "HOME", "--json"),
    "list": ("show", "--home", "HOME", "--json"),
    "evaluate": ("evaluate", f"HOME/{NAME}/model.json", "DATA", "--json"),
    "predict": ("predict", f"HOME/{NAME}/model.json", "DATA"),
    "report": ("show", NAME, "--home", "HOME", "--page", f"HOME/{NAME}/report.html"),
    "resume": ("resume", NAME, "--home", "HOME", "--json"),
    "dashboard": (),
}
"""Command -> its arguments; the dashboard is asked for its pages without a network."""


def run(command: str, home: Path, data: Path) -> Found:
    """Run a command in this process."""
    if command == "dashboard":
        return _pages(home)
    arguments = [part.replace("HOME", str(home)).replace("DATA", str(data)) for part in COMMANDS[command]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = called(*arguments)
    if "Traceback (most recent call last)" in done.output:
        return Found(Outcome.TRACEBACK, done.output)
    if done.exception is not None and not isinstance(done.exception, SystemExit | RankTuneError):
        return Found(Outcome.TRACEBACK, "".join(traceback.format_exception(done.exception)))
    if done.exit_code == 70:
        return Found(Outcome.UNEXPECTED, done.stderr)
    if done.exit_code != 0:
        said = str(done.exception) if isinstance(done.exception, RankTuneError) else done.stderr
        return Found(Outcome.REFUSED if 0 < len(said.strip()) < LONGEST else Outcome.UNEXPECTED, said)
    said = " ".join([done.stderr, *(f"warning: {w.message}" for w in caught if w.category is RankTuneWarning)])
    return Found(Outcome.CORRECT, said, _answer(command, done.stdout, home))


def _pages(home: Path) -> Found:
    """Ask the dashboard for the list of studies and for the pages of the study."""
    paths = ["/api/studies", f"/study/{NAME}", f"/api/study/{NAME}"]
    paths += [f"/api/view/{NAME}/{key}" for key in VIEWS]
    try:
        answers = asyncio.run(_asked(home, paths))
    except Exception as error:
        return Found(Outcome.TRACEBACK, "".join(traceback.format_exception(error)))
    if any(answer.status_code >= 500 and "Internal Server Error" in answer.text for answer in answers):
        return Found(Outcome.TRACEBACK, " ".join(answer.text[:300] for answer in answers))
    refused = [answer.text[:300] for answer in answers if answer.status_code >= 400]
    shown = [_parsed(answer.text, home) for answer in answers]
    return Found(Outcome.REFUSED, refused[0]) if refused else Found(Outcome.CORRECT, "", shown)


def _parsed(text: str, home: Path) -> object:
    try:
        return stable(json.loads(text), str(home))
    except ValueError:
        return text.replace(str(home), "HOME")


async def _asked(home: Path, paths: Sequence[str]) -> list[Any]:
    import httpx  # here: it takes long to load

    transport = httpx.ASGITransport(make_app(home), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return [await client.get(path) for path in paths]


def _answer(command: str, output: str, home: Path) -> object:
    """Return what a command answered, without what differs between two runs of the same study."""
    if command == "predict":
        return output
    if command == "report":
        return (home / NAME / "report.html").read_text().replace(str(home), "HOME")
    return stable(json.loads(output), str(home))


def stable(value: Any, home: str) -> Any:
    """Return a JSON value without what differs between two runs of one study."""
    if isinstance(value, dict):
        return {name: stable(item, home) for name, item in value.items() if not TIMES.search(name)}
    if isinstance(value, list):
        return [stable(item, home) for item in value]
    return value.replace(home, "HOME") if isinstance(value, str) else value


def pieces(answer: object) -> set[str]:
    """Return the texts in an answer, in pieces between marks of HTML and JSON."""
    if isinstance(answer, str):
        return set(re.split(r'[<>"\n]', answer))
    values = answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ()
    return {piece for value in values for piece in pieces(value)}
