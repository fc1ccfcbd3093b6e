"""Solvers that the user registered: how they are fitted, and which estimators of other libraries are converted."""
