"""Results of long runs, as JSON lines, and their table: what was injected or tried, and what came of it.

`python -m tests.fuzzing.ledger FILE...` prints the table of those lines in Markdown.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Ledger:
    """Counts outcomes by row, and appends each case to a file if one is given."""

    path: Path | None = None
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, row: str, outcome: str, case: str, said: str = "") -> None:
        """Note one case: the row of the table, what came of it, what it was, and what was said."""
        self.counts[row, outcome] += 1
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"row": row, "outcome": outcome, "case": case, "said": said[-400:]}) + "\n")


def table(counts: Mapping[tuple[str, str], int], title: str) -> str:
    """Return counts by row and outcome in Markdown, with sums."""
    outcomes = list(dict.fromkeys(outcome for _, outcome in sorted(counts, key=lambda key: key[1])))
    rows = list(dict.fromkeys(row for row, _ in sorted(counts)))
    lines = [[title, *outcomes, "all"]]
    for row in rows:
        row_counts = [counts.get((row, outcome), 0) for outcome in outcomes]
        lines.append([row, *map(str, row_counts), str(sum(row_counts))])
    sums = [sum(counts.get((row, outcome), 0) for row in rows) for outcome in outcomes]
    lines.append(["all", *map(str, sums), str(sum(sums))])
    body = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([body[0], "|---" + "|---:" * (len(outcomes) + 1) + "|", *body[1:]])


def read(paths: Iterable[Path]) -> Counter[tuple[str, str]]:
    """Return the counts of the lines of files."""
    result: Counter[tuple[str, str]] = Counter()
    for path in paths:
        for line in path.read_text().splitlines():
            case = json.loads(line)
            result[case["row"], case["outcome"]] += 1
    return result


if __name__ == "__main__":
    print(table(read(map(Path, sys.argv[1:])), "what"))
