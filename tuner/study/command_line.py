"""What may be written down of a command line: an allow-list, since any other word may be a secret or hold one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

SHOWN = frozenset(
    "--acquisition --also --count --data --dataset --document --drop --executor --features --figures --folds --format "
    "--grade --group-by-time --home --host --jobs --metric --missing --model --name --outer --output --permutations "
    "--plan --port --qid --qrels --repeats --sampler --seed --serve --solver --test --timeout --trees --trial-memory "
    "--trial-timeout --trials --until --vali --wait --weight --within -f -o".split()
)
"""Options whose values are written down."""
FLAGS = frozenset(
    "--extend --follow --full --join --json --no-refit --optuna --refit --verbose --zero-based -v".split()
)
"""Options without a value: the word after one is not its value."""
HIDDEN = "***"
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
            known = name in SHOWN or name in FLAGS
            shown.append(_plain(name) + (f"={_plain(value) if known else HIDDEN}" if sign else ""))
            hides = not known and not sign
        else:
            shown.append(HIDDEN if hides else _plain(word))
            hides = False
    return " ".join(shown)


def _plain(word: str) -> str:
    return HIDDEN if _MAY_BE_SECRET.search(word) else word
