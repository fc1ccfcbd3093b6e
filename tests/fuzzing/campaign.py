"""Many faults or signals in all stages of studies, several in a row into each study: what came of them, as a table.

`python -m tests.fuzzing.campaign FOLDER CASES SEED [faults|signals|clocks [commands]]` injects that many, appends each
to FOLDER/KINDS.jsonl, and goes on after those that are there. A fault that did not come is drawn again. The home of
what was lost is kept. With `commands` they come in the stages of tests.fuzzing.other_commands. A folder in memory, such
as one in /dev/shm, saves the time that disks take.
"""

import json
import shutil
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from tests.fuzzing.ledger import table
from tests.fuzzing.native import CLOCKS, FINE, KINDS, NONE, SIGNALS, STAGES, Came, Fault, NativeFaults
from tests.fuzzing.other_commands import CommandFaults

RARE = ("lanes", "joblib")
"""Stages in which a fault costs the start of processes: a fourth as many."""
ROUNDS = 12
"""How often a fault is drawn that does not come."""
SETS = {"faults": KINDS, "signals": SIGNALS, "clocks": CLOCKS}


def drawn(cases: int, seed: int, kinds: Sequence[str], stages: Sequence[str] = STAGES) -> list[Fault]:
    """Return faults of all kinds in all stages, at random places; as many of each pair as can be, few in RARE."""
    generator = np.random.default_rng(seed)
    pairs = [(stage, kind) for kind in kinds for stage in stages for _ in range(1 if stage in RARE else 4)]
    order = [pairs[k] for _ in range(0, cases, len(pairs)) for k in generator.permutation(len(pairs))]
    return [Fault(stage, kind, generator.random(), int(generator.integers(2**31))) for stage, kind in order[:cases]]


def injected(bench: NativeFaults, faults: Sequence[Fault]) -> Iterator[Came]:
    """Inject each fault, those of following stages into one study; yield what came of each, last of all `no fault`.

    Which of them share a study depends on nothing but the faults.
    """
    waiting = {stage: deque([(fault, 0) for fault in faults if fault.stage == stage]) for stage in bench.stages}
    groups = cycle([[stage for stage in bench.stages if stage not in bench.alone], *([stage] for stage in bench.alone)])
    while any(waiting.values()):
        taken = [waiting[stage].popleft() for stage in next(groups) if waiting[stage]]
        if not taken:
            continue
        results = bench.outcomes([fault for fault, _ in taken])
        for k, (fault, rounds) in enumerate(taken):
            came = results[k] if k < len(results) else None  # the study ended before
            if came is not None and (came.outcome != NONE or rounds == ROUNDS):
                yield came
                continue
            place = 0.7**rounds * np.random.default_rng([fault.seed, rounds]).random()
            again = fault if came is None else fault._replace(place=place)
            waiting[fault.stage].append((again, rounds + (came is not None)))


def main(folder: Path, cases: int, seed: int, what: str = "faults", *commands: str) -> None:
    """Print what was lost, and tables of outcomes: a row a stage, and a row a kind of fault."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{what}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {line["seed"] for line in lines}
    bench = CommandFaults(folder) if commands else NativeFaults(folder)
    faults = [fault for fault in drawn(cases, seed, SETS[what], bench.stages) if fault.seed not in done]
    with path.open("a", buffering=1) as file:
        for fault, outcome, said in injected(bench, faults):
            lines.append({"row": fault.stage, **fault._asdict(), "outcome": outcome, "said": said[-400:]})
            file.write(json.dumps(lines[-1]) + "\n")
            if outcome not in FINE:
                print(f"{outcome}: {fault}: {said}", flush=True)
                shutil.copytree(bench.home, folder / f"bad-{fault.seed}", dirs_exist_ok=True)
    print(", ".join(f"{stage} {count}" for stage, count in bench.operations.items()), "operations")
    bench.close()
    for row in ("stage", "kind"):
        print(table(Counter((line[row], line["outcome"]) for line in lines), row), end="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
