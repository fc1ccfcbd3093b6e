"""The rules by which simulated studies decide, as far as they are varied: constants of the policy, and the sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Self

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.studies.laboratory.suggestions import SIMULATED, THOMPSON
from ranktune.tuner.policy.policy import POLICY, Policy

SAMPLER = "sampler"


@dataclass(frozen=True)
class DecisionRules:
    """What a study decides by.

    Attributes
    ----------
    policy : Policy
    sampler : str
        One of those that are simulated.
    """

    policy: Policy = POLICY
    sampler: str = THOMPSON

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rules of a text such as choice.ahead=0.5,sampler=random. Raises ParameterError for any other."""
        self = cls()
        for part in text.split(","):
            name, _, value = part.partition("=")
            if name == SAMPLER:
                self = replace(self, sampler=_known(value, SIMULATED, "sampler"))
            else:
                self = replace(self, policy=_varied(self.policy, name, value))
        return self

    @property
    def of_trials(self) -> Self:
        """The same rules without what decides only after the last trial."""
        choice = replace(self.policy.choice, ahead=POLICY.choice.ahead, alpha=POLICY.choice.alpha)
        return replace(self, policy=replace(self.policy, choice=choice, blend=POLICY.blend))


def constants() -> list[str]:
    """Return the names of the numbers of a policy, such as choice.ahead."""
    names = []
    for field in fields(Policy):
        part = getattr(POLICY, field.name)
        own = [each.name for each in fields(part)] if is_dataclass(part) else []
        names += [f"{field.name}.{each}" for each in own if isinstance(getattr(part, each), int | float)]
        names += [] if own else [field.name]
    return names


def _varied(policy: Policy, name: str, text: str) -> Policy:
    """Return the policy with another value of one of its constants."""
    group, _, own = _known(name, [*constants(), SAMPLER], "rule").rpartition(".")
    part = getattr(policy, group) if group else policy
    is_whole = isinstance(getattr(part, own), int)
    try:
        changed: Json = {own: int(text) if is_whole else float(text)}
    except ValueError:
        kind = "a whole number" if is_whole else "a number, or inf"
        raise ParameterError(f"{name}={text}: it must be {kind}.") from None
    return replace(policy, **({group: replace(part, **changed)} if group else changed))


def _known(name: str, known: Sequence[str], kind: str) -> str:
    if name not in known:
        raise ParameterError(f"there is no {kind} '{name}'. {nearest(name, known)}")
    return name
