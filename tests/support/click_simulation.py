"""Click logs of simulated users: rankings of documents with grades, and clicks whose probabilities are known.

Every session draws a query, ranks its documents by scores with noise, shows the first page of them, and clicks as its
users do. Source of the way: Joachims, Swaminathan & Schnabel 2017, "Unbiased Learning-to-Rank with Biased Feedback".
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ranktune.solvers.clicks.counts import Impressions
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.data.queries import Queries


@dataclass(frozen=True)
class Users:
    """How users click.

    kind    "position": a document is examined with probability position ** -eta, and clicked where it attracts;
            "trust": what is examined is also clicked without that, the more the higher it stands;
            "cascade": they look from the top, click what attracts, and go away
    eta     how fast examination falls
    noise   the attraction of a document of the lowest grade; that of the highest is 1 - noise
    """

    kind: Literal["position", "trust", "cascade"] = "position"
    eta: float = 1.0
    noise: float = 0.1

    def attraction(self, grades: Floats) -> Floats:
        """Return the probability that a document attracts, by its grade: linear in the gain 2 ** grade - 1."""
        gains = 2.0**grades - 1.0
        return np.asarray(self.noise + (1.0 - 2.0 * self.noise) * gains / max(float(gains.max()), 1.0))

    def rates(self, position: Ints) -> tuple[Floats, Floats]:
        """Return the probabilities of a click on what attracts and on what does not, by position."""
        examined = position.astype(float) ** -self.eta
        if self.kind == "trust":  # epsilon+ and epsilon- as Agarwal et al. 2019 found them, roughly
            return examined * (1.0 - 0.01 * position), examined * 0.3 / position
        return examined, np.zeros(len(position))

    def probabilities(self, attraction: Floats) -> Floats:
        """Return the probabilities of the clicks that `clicks` draws, (n_sessions, n_positions)."""
        if self.kind == "cascade":
            goes_on = np.cumprod(1.0 - attraction, axis=1)
            return np.asarray(attraction * np.hstack([np.ones((len(attraction), 1)), goes_on[:, :-1]]))
        up, down = self.rates(np.arange(1, attraction.shape[1] + 1))
        return np.asarray(down + (up - down) * attraction)

    def clicks(self, attraction: Floats, generator: np.random.Generator) -> Mask:
        """Return the clicks of sessions, (n_sessions, n_positions), on documents of that attraction."""
        attracts = generator.random(attraction.shape) < attraction
        if self.kind == "cascade":
            return np.asarray(attracts & (np.cumsum(attracts, axis=1) == 1))
        rates = np.where(attracts, *self.rates(np.arange(1, attraction.shape[1] + 1)))
        return np.asarray(generator.random(attraction.shape) < rates)


def simulated(
    queries: Queries,
    users: Users,
    n_sessions: int,
    generator: np.random.Generator,
    *,
    scores: Floats,
    spread: float = 1.0,
    page: int = 10,
) -> Impressions:
    """Return the log of sessions, one a second, with a query each.

    Parameters
    ----------
    queries : Queries
        Data with grades; documents have the numbers of their rows.
    users : Users
        How they click.
    n_sessions : int
        How many there are.
    generator : numpy.random.Generator
        Draws all that is drawn.
    scores : ndarray of shape (n_documents,)
        Those of the ranking that is shown.
    spread : float, default=1.0
        Standard deviation of the noise that is added to them in each session; without it no document changes place.
    page : int, default=10
        The most documents that a session shows.
    """
    attraction, parts, session = users.attraction(queries.grades), [], generator.permutation(n_sessions)
    drawn = generator.multinomial(n_sessions, np.full(queries.n_queries, 1.0 / queries.n_queries))
    for number, (n, sessions) in enumerate(zip(drawn, np.split(session, np.cumsum(drawn)[:-1]), strict=True)):
        rows = np.arange(queries.starts[number], queries.starts[number + 1])
        noisy = scores[rows] + spread * generator.normal(size=(n, len(rows)))
        shown = rows[np.argsort(-noisy, axis=1, kind="stable")[:, :page]]
        position = np.broadcast_to(np.arange(1, shown.shape[1] + 1), shown.shape)
        clicked = users.clicks(attraction[shown], generator)
        columns = np.full_like(shown, number), shown, position, clicked, np.broadcast_to(sessions[:, None], shown.shape)
        parts.append(np.stack([column.ravel() for column in columns]))
    query, document, position, click, session = np.concatenate(parts, axis=1)
    return Impressions(
        query,
        document,
        position,
        click.astype(float),
        session,
        1000 * session,
        None,
        [str(name) for name in queries.query_ids],
        [str(row) for row in range(queries.n_documents)],
        [str(number) for number in range(n_sessions)],
    )
