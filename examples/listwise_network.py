"""A network of PyTorch that learns from whole queries, tuned beside the solvers of RankTune.

python examples/listwise_network.py                 on generated data
python examples/listwise_network.py train.txt       on your own
ranktune tune train.txt --solver listwise_network:ListwiseNetwork --solver standard        (in this folder)

What RankTune needs of a class: fit(X, y) that may take qid, predict(X), a search space, save(path) and load(path).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

import ranktune
from ranktune.solvers import Float, Int


class ListwiseNetwork:
    """One hidden layer, trained by the cross-entropy of ListNet: softmax of scores against softmax of grades by query.

    Parameters
    ----------
    width : int, default=16
        Hidden units.
    learning_rate : float, default=0.01
        Step size of Adam.
    epochs : int, default=60
        Steps, each on all queries.
    weight_decay : float, default=0.001
        Penalty on the weights.
    random_state : int or None, default=None
        Seed of the first weights; None is 0.
    """

    space = (
        Int("width", 4, 64, log=True),
        Float("learning_rate", 1e-3, 1e-1, log=True),
        Int("epochs", 20, 200, log=True),
        Float("weight_decay", 1e-5, 1.0, log=True),
    )

    def __init__(
        self,
        width: int = 16,
        learning_rate: float = 0.01,
        epochs: int = 60,
        weight_decay: float = 1e-3,
        random_state: int | None = None,
    ) -> None:
        self.width, self.learning_rate, self.epochs = width, learning_rate, epochs
        self.weight_decay, self.random_state = weight_decay, random_state

    def fit(self, X: Any, y: Any, qid: Any) -> Self:
        """Learn from documents, (n_documents, n_features), with their grades and queries."""
        X = _dense(X)
        self.mean, self.scale = X.mean(axis=0), X.std(axis=0) + 1e-9
        inputs, query = self._inputs(X), torch.as_tensor(np.unique(qid, return_inverse=True)[1])
        target = _log_softmax(torch.as_tensor(y, dtype=torch.float32), query).exp()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state or 0)
            self.network = _network(X.shape[1], self.width)
        optimizer = torch.optim.AdamW(self.network.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        for _ in range(self.epochs):
            optimizer.zero_grad()
            loss = -(target * _log_softmax(self.network(inputs)[:, 0], query)).sum() / (query.max() + 1)
            loss.backward()
            optimizer.step()
        return self

    def predict(self, X: Any) -> Any:
        """Return the scores of documents, (n_documents,)."""
        with torch.no_grad():
            return self.network(self._inputs(_dense(X)))[:, 0].numpy().astype(np.float64)

    def save(self, path: Path) -> None:
        """Write the weights and the scaling."""
        scaling = {"mean": torch.as_tensor(self.mean), "scale": torch.as_tensor(self.scale)}
        torch.save({**self.network.state_dict(), **scaling}, path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the network in a file; torch.load reads numbers only."""
        state = torch.load(path, weights_only=True)
        mean, scale = state.pop("mean").numpy(), state.pop("scale").numpy()
        model = cls(width=len(state["0.bias"]))
        model.mean, model.scale, model.network = mean, scale, _network(len(mean), model.width)
        model.network.load_state_dict(state)
        return model

    def _inputs(self, X: Any) -> torch.Tensor:
        return torch.as_tensor((X - self.mean) / self.scale, dtype=torch.float32)


def _network(n_features: int, width: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(n_features, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))


def _log_softmax(scores: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of the softmax of scores among the documents of each query, (n_documents,)."""
    count = int(query.max()) + 1
    highest = torch.full((count,), -torch.inf).scatter_reduce(0, query, scores.detach(), "amax")
    shifted = scores - highest[query]
    return shifted - torch.zeros(count).index_add(0, query, shifted.exp()).log()[query]


def _dense(X: Any) -> Any:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _generated() -> tuple[Any, Any, Any]:
    """Return 200 queries whose grades depend on a product of two features, which no linear model sees."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 6))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * generator.normal(size=2000), [0.5, 1.5])
    return X, y, np.repeat(np.arange(200), 10)


def main() -> None:
    """Tune the network beside two solvers of RankTune, and print the leaderboard."""
    ranktune.register_solver("ListwiseNetwork", ListwiseNetwork)
    data = sys.argv[1] if len(sys.argv) > 1 else _generated()
    result = ranktune.tune(data, solvers=["ListwiseNetwork", "LambdaMART", "RankSVM"], trials=20)
    for row in result.leaderboard:
        print(f"{row.solver:20} {row.test.mean if row.test else float('nan'):.4f}")
    print(result.model)


if __name__ == "__main__":
    main()
