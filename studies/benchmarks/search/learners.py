"""Models of scikit-learn with their parameters: the cross-validated share of errors on one of its data sets.

svc         a support vector machine on breast_cancer: the kernel decides which parameters there are
boosting    a few rounds of boosted trees on digits
networks    a logistic regression or a network with one or two layers on wine

The folds are the same for every trial.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.core.space import Value
from ranktune.studies.benchmarks.search.programs import examples

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

FOLDS = 4


def errors(make: Callable[[], BaseEstimator], data: str, at_most: int = 10_000) -> float:
    """Return the share of errors of a model on the held-out examples of each fold; at_most examples are used."""
    X, y = (array[:at_most] for array in examples(data))  # in random order
    wrong = 0
    for fold in range(FOLDS):
        test = np.arange(len(y)) % FOLDS == fold
        with warnings.catch_warnings():  # of fits that do not converge
            warnings.simplefilter("ignore")
            wrong += int(np.sum(make().fit(X[~test], y[~test]).predict(X[test]) != y[test]))
    return wrong / len(y)


def svc(trial: Trial) -> float:
    """Return the errors of a support vector machine on standardised features."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    kernel = trial.suggest_categorical("kernel", ["linear", "rbf", "poly"])
    chosen: dict[str, Value] = {"kernel": kernel, "C": trial.suggest_float("C", 1e-3, 1e3, log=True)}
    if kernel != "linear":
        chosen["gamma"] = trial.suggest_float("gamma", 1e-5, 1e1, log=True)
    if kernel == "poly":
        chosen["degree"] = trial.suggest_int("degree", 2, 5)
        chosen["coef0"] = trial.suggest_float("coef0", 0.0, 2.0)
    return errors(lambda: make_pipeline(StandardScaler(), SVC(**chosen, max_iter=20_000)), "breast_cancer")


def boosting(trial: Trial) -> float:
    """Return the errors of 10 rounds of boosted trees on 400 examples."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    chosen = {
        "learning_rate": trial.suggest_float("learning_rate", 1e-2, 1.0, log=True),
        "max_leaf_nodes": trial.suggest_int("max_leaf_nodes", 2, 64, log=True),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 50),
        "l2_regularization": trial.suggest_float("l2_regularization", 1e-6, 1e2, log=True),
        "max_features": trial.suggest_float("max_features", 0.1, 1.0),
        "max_bins": trial.suggest_int("max_bins", 3, 64, log=True),
    }
    make = HistGradientBoostingClassifier
    return errors(lambda: make(max_iter=10, early_stopping=False, random_state=0, **chosen), "breast_cancer", 400)


def networks(trial: Trial) -> float:
    """Return the errors of a logistic regression or a small network on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    penalty = trial.suggest_float("penalty", 1e-5, 1e2, log=True)
    if trial.suggest_categorical("model", ["logistic", "network"]) == "logistic":
        return errors(lambda: make_pipeline(StandardScaler(), LogisticRegression(C=1.0 / penalty)), "wine")
    widths = [trial.suggest_int("width0", 2, 32, log=True)]
    if trial.suggest_int("layers", 1, 2) == 2:
        widths.append(trial.suggest_int("width1", 2, 32, log=True))
    chosen: dict[str, Value | list[int]] = {
        "hidden_layer_sizes": widths, "alpha": penalty, "max_iter": 30, "random_state": 0,
        "learning_rate_init": trial.suggest_float("rate", 1e-4, 1e-1, log=True),
        "activation": trial.suggest_categorical("activation", ["relu", "tanh"]),
    }  # fmt: skip
    return errors(lambda: make_pipeline(StandardScaler(), MLPClassifier(**chosen)), "wine")


LEARNERS_OF: Mapping[str, Callable[[Trial], float]] = {"svc": svc, "boosting": boosting, "networks": networks}
"""Losses by the name of their problem."""
