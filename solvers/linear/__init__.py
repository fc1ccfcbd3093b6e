"""Solvers that learn one weight a feature."""
