"""Solvers that learn from one query, or one pair, at a time."""
