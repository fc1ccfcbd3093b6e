"""Solvers that the user registered: how they are fitted, and what of other libraries becomes our own models."""
