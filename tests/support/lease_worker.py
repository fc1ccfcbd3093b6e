"""A process that takes trials: python lease_worker.py WHERE NAME. WHERE is a folder, or the URL of a server.

Prints a line "NUMBER ATTEMPT DELIVERED" for each. The metric of trial k is k at every query.
"""

import sys
import time
from pathlib import Path

import numpy as np

from ranktune.tuner.evaluation.task import Outcome
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.leases import Leases


def outcome_of(number: int) -> Outcome:
    return Outcome({"map": np.full(10, float(number))}, begun=1e9, ended=1e9 + 1.0)


def main(where: str, name: str) -> None:
    storage = open_storage(where if "://" in where else Path(where) / "record.db")
    leases = Leases(storage, "s")
    leases.join(name, "here", 1, 1, "1")
    while True:
        lease = leases.claim(name)
        if lease is not None:
            done = leases.deliver(lease.number, lease.token, outcome_of(lease.number))
            print(lease.number, lease.attempt, done, flush=True)
            continue
        owner = leases.owner()
        if owner is not None and owner.concluded:
            break
        time.sleep(0.01)
    leases.leave(name)
    leases.disconnect()
    storage.engine.dispose()


if __name__ == "__main__":
    main(*sys.argv[1:])
