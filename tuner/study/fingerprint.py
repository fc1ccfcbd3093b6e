"""What makes two declarations the same study: their settings, and the queries; noted in the record too.

The home folder of a study says what was declared. A record that several hosts reach has to say it as well: another home
may hold another study of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.study import StudyDirection

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.extending import Difference

DECLARED = "declared"
"""User attribute of a record: what was declared."""
_FREE = ("name", "trials", "timeout", "until", "solvers", "space")
_PLACES = ("data", "vali", "test", "reading")


def setting_differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between the fields of two studies that a study may not change.

    More trials or time, or less, are the same study; what is searched has a comparison of its own.
    """
    return [
        Difference(f"{name} is {there[name]!r} there, {value!r} here")
        for name, value in here.items()
        if name in there and name not in _FREE and there[name] != value
    ]


def claim(record: optuna.Study, study: Study, digest: str) -> None:
    """Note in a record whose it is: the study's settings, and the digest of the queries that its trials learn from.

    Raises StudyError that names every difference where it is another study's.
    """
    settings = {name: value for name, value in study.as_dict().items() if name not in (*_FREE, *_PLACES)}
    noted = record.user_attrs.get(DECLARED)
    found = setting_differences(noted["settings"], settings) if noted else []
    if noted and noted["data"] != digest:
        found.append(Difference("the digest of its data differs"))
    if record.direction != StudyDirection.MAXIMIZE:
        found.append(Difference(f"direction is '{record.direction.name.lower()}' there, 'maximize' here"))
    if found:
        raise StudyError(
            f"the record of study '{record.study_name}' is another study's: {'; '.join(one.text for one in found)}. "
            "Choose another name (--name), or repeat its settings."
        )
    if noted is None:
        record.set_user_attr(DECLARED, {"settings": settings, "data": digest})
