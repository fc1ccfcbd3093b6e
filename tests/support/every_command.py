"""Every command of the command line, with words that let it do something on small data: its files, and its arguments.

`used` fails where a command is new and has no words here.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from ranktune.command_line.app import app
from tests.support.commands import called

QUERIES, DOCUMENTS = 40, 8


class Place:
    """A folder with data, a click log, a log of lists, studies and a pass, whose names are made from given texts."""

    def __init__(self, folder: Path, texts: Sequence[str], file: str = "data") -> None:
        self.folder, self.texts = folder, texts
        self.home, self.data, self.new = folder / "runs", folder / f"{file}.csv", folder / f"new {file}.csv"
        self.log, self.lists, self.toml = folder / f"{file} log.csv", folder / f"{file}.jsonl", folder / "study.toml"
        self.folds = folder / "folds"
        self.model = str(self.home / "s" / "model.json")
        self._write_data()
        solver = ("--solver", "RidgeRanker", "--trials", 2, "--jobs", 1, "--sampler", "random", "--home", self.home)
        self.short = solver
        declared = {"name": "r", "data": str(self.data), "solvers": ["RidgeRanker"], "trials": 2, "sampler": "random"}
        self.toml.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in declared.items()))

    def make(self) -> None:
        """Run the studies that the commands are about."""
        first = ("tune", self.data, "--name", "s", *self.short)
        for words in (first, ["v" if word == "w" else word for word in self.used("retune")[0]]):
            done = called(*words)
            assert done.exit_code in (0, 10, 11), (words, done.output, done.exception)

    def _write_data(self) -> None:
        for path, seed in ((self.data, 1), (self.new, 2)):
            self._write_table(path, seed)
        generator = np.random.default_rng(3)
        with self.log.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["session", "query", "document", "position", "clicked"])
            for session in range(200):
                query = session % QUERIES
                for position, document in enumerate(generator.permutation(DOCUMENTS), start=1):
                    clicked = generator.random() < 0.6 / position
                    lines.writerow([session, self.query(query), self.document(document), position, int(clicked)])
        rows = [
            {"query": self.query(k % QUERIES), "documents": [self.document(0), self.document(1)], "teams": ["A", "B"],
             "method": "team-draft", "clicks": [1 + k % 2] if k % 3 else [], "user": self.texts[k % len(self.texts)]}
            for k in range(60)
        ]  # fmt: skip
        self.lists.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def query(self, number: int) -> str:
        """Return the id of a query."""
        return f"q{number}{self.texts[number % len(self.texts)]}"

    def document(self, number: int) -> str:
        """Return the id of a document."""
        return f"d{number}{self.texts[number % len(self.texts)]}"

    def features(self) -> list[str]:
        """Return the names of the features of numbers."""
        return [f"f{k}{text}" for k, text in enumerate(self.texts)]

    def _write_table(self, path: Path, seed: int) -> None:
        generator = np.random.default_rng(seed)
        with path.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["qid", "docid", "grade", *self.features(), f"kind{self.texts[0]}"])
            for row in range(QUERIES * DOCUMENTS):
                x = generator.normal(size=len(self.texts)).round(3)
                grade = int(np.digitize(x[0] + 0.5 * generator.normal(), [0.3, 1.2]))
                kind = self.texts[row % len(self.texts)]
                lines.writerow([self.query(row // DOCUMENTS), self.document(row % DOCUMENTS), grade, *x, f"k{kind}"])

    def used(self, command: str) -> list[Sequence[object]]:
        """Return words with which a command is used."""
        home, text, out = ("--home", self.home), self.texts[0], self.folder / "out"
        words: dict[str, list[Sequence[object]]] = {
            "tune": [(self.data, "--name", "t", *self.short), (self.toml, "--jobs", 1, *home)],
            "resume": [("s", "--trials", 3, "--jobs", 1, *home), ("s", "--join", *home)],
            "show": [
                home,
                ("s", *home),
                (text, "--live", "--port", 0, *home),
                ("s", "v", "--page", f"{out}.html", *home),
            ],
            "retune": [
                ("s", self.new, "--as", "w", "--jobs", 1, "--trials", 2, *home),
                ("s", "--rollback", "v", *home),
                ("s", "--history", "--page", f"{out}.html", *home),
            ],
            "watch": [("s", self.new, *home)],
            "one-pass": [(self.data, "-o", self.folder / "pass", "--configurations", 4)],
            "clicks": [(self.log, "-o", f"{out}.csv")],
            "interleave": [
                (f"column:{self.features()[0]}", self.model, self.new, "-o", f"{out}.jsonl"),
                ("--judge", self.lists),
            ],
            "predict": [(self.model, self.new), (self.model, self.new, "-o", f"{out}.txt")],
            "evaluate": [(self.model, self.new, "--against", f"column:{self.features()[0]}")],
            "explain": [
                (self.model, self.new),
                (self.model, self.new, "--query", self.query(1)),
                (self.model, self.new, "--effect-of", self.features()[0]),
            ],
            "export": [
                (self.model, "--format", "json"),
                (self.model, "--format", "solr", "--replay", self.new, "-o", f"{out}-files"),
                (self.model, "--format", "solr", "-o", f"{out}.json"),
            ],
            "data": [(self.data,), (self.data, "-o", f"{out}-data")],
            "solvers": [(), (text,), ("--warm", "RidgeRanker", "--jobs", 1)],
            "reproduce": [(text,)],
            "docs": [(), (text,), ("--search", text)],
        }
        missing = set(commands()) ^ set(words)
        assert not missing, f"give words for {missing}"
        return [(command, *each) for each in words[command]]


def commands() -> list[str]:
    """Return the names of all commands, from their table."""
    return list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
