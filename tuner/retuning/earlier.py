"""What a study takes over from the study that it retunes: its trials, the delivered configuration, and where it is.

HOME/NAME/earlier.npz has it: plain arrays and one JSON text. It is written before the first trial, so that a study that
was killed goes on by the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from optuna.trial import FrozenTrial, TrialState, create_trial

from ranktune.solvers.core.arrays import Floats, JsonView
from ranktune.solvers.core.errors import Damaged, StudyError
from ranktune.solvers.core.files.archives import write_archive
from ranktune.solvers.core.space import Value
from ranktune.tuner.retuning.portfolio import DeliveredConfiguration, FittedQueryIds
from ranktune.tuner.retuning.versions import Delivery
from ranktune.tuner.samplers.first import alike
from ranktune.tuner.samplers.history import EARLIER, PARTIAL, SECONDS, VARIANCE
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.splits.seals import is_written, read_sealed_arrays, write_sealed
from ranktune.tuner.statistics.comparisons import LEAST, Movement, movement, sampling_variance

FILE = "earlier.npz"
MOST = 100
"""Trials that are taken over at most: the latest."""


@dataclass(frozen=True)
class EarlierTrial:
    """A trial on earlier data.

    Attributes
    ----------
    params : mapping
        By flat name.
    value, variance : float
        The mean of the metric, and the variance of that over the queries; 0 where it is not known.
    extra : float
        Noise variance beyond that of other trials, such as that of one that was stopped early.
    cost : float
        What the samplers read as its cost; 0 where it is not known.
    path : bool
        Whether it went along a path of values.
    """

    params: JsonView
    value: float
    variance: float = 0.0
    extra: float = 0.0
    cost: float = 0.0
    path: bool = False

    def moved(self, by: Movement) -> FrozenTrial:
        """Return the trial as samplers read it once its data have moved; a search adds the distributions."""
        value, extra = self.value + by.shift, self.extra + by.variance
        attrs = {VARIANCE: self.variance, PARTIAL: extra, SECONDS: self.cost}
        trial = create_trial(
            state=TrialState.PRUNED if extra else TrialState.COMPLETE,
            value=value,
            user_attrs={EARLIER: True} | {name: number for name, number in attrs.items() if number},
            intermediate_values={0: value} if extra else {},
        )
        trial.params = dict(self.params)
        return trial


@dataclass(frozen=True, eq=False)
class Earlier:
    """What is known of the study that is retuned.

    Attributes
    ----------
    incumbent : Delivery
        The model that was current.
    after : str
        The study whose trials these are: the latest.
    delivered : Configuration
        What the incumbent was fitted with.
    observed : sequence of Observed
        The trials.
    per_query : mapping of int to array of shape (n_queries,)
        By place among the trials, what those scored that are evaluated again: the measured ones.
    fitted : Fitted
        The queries that the incumbent may have been fitted to.
    """

    incumbent: Delivery
    after: str
    delivered: DeliveredConfiguration
    observed: Sequence[EarlierTrial]
    per_query: Mapping[int, Floats] = field(default_factory=dict)
    fitted: FittedQueryIds = field(default_factory=FittedQueryIds)

    def place(self, params: Mapping[str, Value]) -> int | None:
        """Return the place of the measured trial of this configuration, None if it is none of them."""
        return next((k for k in self.per_query if alike(self.observed[k].params, params)), None)

    def movement(self, finished: Iterable[tuple[FrozenTrial, Floats | None]]) -> Movement:
        """Return how far the values of measured trials moved to those of finished ones, with their values by query."""
        again: dict[int, tuple[FrozenTrial, Floats | None]] = {}
        for trial, values in finished:
            place = self.place(trial.params)
            if place is not None and trial.value is not None and trial.state != TrialState.FAIL:
                again.setdefault(place, (trial, values))
        places = [k for k in self.per_query if k in again]
        old = np.array([self.observed[k].value for k in places])
        new = np.array([again[k][0].value for k in places], dtype=np.float64)
        whole = [k for k in places if again[k][1] is not None]
        values_again = [values for k in whole if (values := again[k][1]) is not None]
        partial = [float(again[k][0].user_attrs.get(PARTIAL, 0.0)) for k in places]
        sampling = sampling_variance([self.per_query[k] for k in whole], values_again)
        return movement(old, new, sampling + (float(np.mean(partial)) if partial else 0.0))

    def awaited(self) -> Awaited:
        """Return the trials as they wait for a search."""
        return Awaited(self)

    def save(self, folder: Path) -> None:
        """Write it into the folder of the study that goes on."""
        header = {
            "incumbent": asdict(self.incumbent),
            "after": self.after,
            "delivered": asdict(self.delivered),
            "observed": [asdict(one) for one in self.observed],
        }
        arrays = {f"values{place}": values for place, values in self.per_query.items()}
        write_sealed(folder / FILE, write_archive({**self.fitted.arrays(), **arrays}, header, small=True))


def load_earlier(folder: Path) -> Earlier | None:
    """Return what a study took over, None where it retunes no other. Raises StudyError for a damaged file."""
    path = folder / FILE
    if not is_written(path):
        return None
    try:
        header, arrays = read_sealed_arrays(path)
        fitted = FittedQueryIds.from_arrays(arrays)
        values = {int(name.removeprefix("values")): np.asarray(array, np.float64) for name, array in arrays.items()}
        observed = [typed(EarlierTrial, one) for one in header["observed"]]
        delivered = typed(DeliveredConfiguration, header["delivered"])
        incumbent = header.get("incumbent") or {"version": "", "study": header["study"], "model": header["model"]}
        return Earlier(Delivery(**incumbent), header["after"], delivered, observed, values, fitted)
    except (Damaged, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            f"cannot read {path}: {error} Restore it from a backup, or retune under another name."
        ) from None


class Awaited:
    """Earlier trials that wait until the measured ones among them were evaluated again."""

    def __init__(self, earlier: Earlier) -> None:
        self._earlier, self._given = earlier, False
        self._finished: list[tuple[FrozenTrial, Floats | None]] = []

    def finish(self, trial: FrozenTrial, values: Floats | None) -> list[FrozenTrial]:
        """Note a finished trial; return the earlier ones once the last measured one has finished."""
        if self.measured(trial.params) is not None:
            self._finished.append((trial, values))
        done = len(self._finished) == len(self._earlier.per_query)
        return self.ready() if done else []

    def measured(self, params: Mapping[str, Value]) -> EarlierTrial | None:
        """Return the measured trial of a configuration, None if it is none of them."""
        place = self._earlier.place(params)
        return None if place is None else self._earlier.observed[place]

    def ready(self, least: int = LEAST) -> list[FrozenTrial]:
        """Return the earlier trials as far as they moved, the first time that so many measured ones have finished."""
        if self._given or len(self._finished) < least:
            return []
        self._given, by = True, self._earlier.movement(self._finished)
        return [one.moved(by) for one in self._earlier.observed] if by.carried else []
